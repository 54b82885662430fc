//! What a caller says about one confined call.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::plan::{ENV, Plan, Stage};
use crate::tier::{Tier, Tiers};

/// Where programs are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What is never granted: a private one is there, or none on purpose.
const NOT_GRANTED: [&str; 5] = ["/", "/proc", "/sys", "/dev", "/tmp"];
/// The least memory that a program and its loader run in.
const LEAST_MEMORY_BYTES: u64 = 4 << 20;
/// The least directory: a few pages.
const LEAST_WORK_BYTES: u64 = 64 << 10;
/// Fewer descriptors do not start a program.
const LEAST_OPEN_FILES: u64 = 8;

/// Bounds on what one call takes. The wall clock and the output are bounded by the caller, who
/// reads the pipes and kills the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Memory of all processes together, as the kernel measures it (PSS, without files); also of
    /// the private data of each.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// The length of one file.
    pub file_bytes: u64,
    /// What the working directory and `/tmp` hold together.
    pub work_bytes: u64,
    /// Open files per process.
    pub open_files: u64,
    /// Processor time per process, in seconds.
    pub cpu_seconds: u64,
}

impl Default for Limits {
    /// Enough for an interpreter, a compiler or a converter; far below what a node has.
    fn default() -> Self {
        Limits { memory_bytes: 512 << 20, processes: 64, file_bytes: 64 << 20, work_bytes: 128 << 20, open_files: 256, cpu_seconds: 60 }
    }
}

impl Limits {
    fn check(&self) -> Result<(), SandboxError> {
        let least = |limit, found, least: u64| match found < least {
            true => Err(SandboxError::Limit { limit, expected: format!("at least {least}"), found }),
            false => Ok(()),
        };
        least("memory_bytes", self.memory_bytes, LEAST_MEMORY_BYTES)?;
        least("processes", self.processes, 1)?;
        least("work_bytes", self.work_bytes, LEAST_WORK_BYTES)?;
        least("open_files", self.open_files, LEAST_OPEN_FILES)?;
        least("cpu_seconds", self.cpu_seconds, 1)
    }

    /// How many files the working directory and `/tmp` hold together: an empty file takes kernel
    /// memory, but no bytes.
    pub(crate) fn work_files(&self) -> u64 {
        (self.work_bytes / 8192).max(256)
    }
}

/// How calls of a program are confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The tier that is wanted.
    pub tier: Tier,
    /// Whether [`Tier::Landlock`] will do where [`Tier::Namespaces`] is wanted and not available.
    pub allow_lesser: bool,
    /// Bounds on what one call takes.
    pub limits: Limits,
    /// What the program may read and execute beside the system's programs and libraries. It has the
    /// same path inside.
    pub read: Vec<PathBuf>,
    /// Whether it has the caller's network. It has none otherwise, not even of its own.
    pub network: bool,
    /// The launcher: an executable whose `main` begins with [`crate::run_if_launcher`]; the current
    /// one by default.
    pub launcher: Option<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox { tier: Tier::Namespaces, allow_lesser: false, limits: Limits::default(), read: Vec::new(), network: false, launcher: None }
    }
}

impl Sandbox {
    /// A command that runs `program` confined, with its standard streams yet to be set. It may
    /// write to `work_dir`, where it starts, and sees the variables `env` and no others.
    ///
    /// Variables and a directory that are set on the command do not reach the program.
    ///
    /// The thread that spawns the command has to outlive the run: the kernel ends the launcher with
    /// it. Killing the launcher ends everything that the program started. `work_dir` must belong to
    /// this call alone; under root it is given to another user, as whom the program then runs.
    pub fn command<P, A, E, K, V>(&self, program: P, args: A, env: E, work_dir: &Path) -> Result<Command, SandboxError>
    where
        P: AsRef<OsStr>,
        A: IntoIterator<Item: AsRef<OsStr>>,
        E: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let tiers = match &self.launcher {
            Some(launcher) => Tiers::of(launcher),
            None => Tier::probe()?,
        };
        self.command_in(tiers.choose(self.tier, self.allow_lesser)?, program.as_ref(), args, env, work_dir)
    }

    /// [`Sandbox::command`] in `tier`, which is not tried before.
    pub(crate) fn command_in<A, E, K, V>(
        &self,
        tier: Tier,
        program: &OsStr,
        args: A,
        env: E,
        work_dir: &Path,
    ) -> Result<Command, SandboxError>
    where
        A: IntoIterator<Item: AsRef<OsStr>>,
        E: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.limits.check()?;
        let env: Vec<(OsString, OsString)> =
            env.into_iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned())).collect();
        let path = env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
        let program = find(program, path)?;
        let work = canonical(work_dir)?;
        if !work.is_dir() {
            return Err(unusable(work_dir, "it is not a directory"));
        }
        let mut read = self.read.iter().map(|path| granted(path)).collect::<Result<Vec<_>, _>>()?;
        read.push(canonical(&program)?);
        // what lies in the working directory is there anyway; a directory has to come before what is in it
        read.retain(|path| !path.starts_with(&work));
        read.sort();
        read.dedup();
        let plan = Plan {
            stage: Stage::Outer,
            tier,
            limits: self.limits,
            read,
            network: self.network,
            work,
            program,
            caller: std::process::id(),
            pipe: None,
        };
        let executable = self.launcher.as_deref().unwrap_or(crate::plan::this_executable());
        let mut command = plan.command(executable).map_err(|error| SandboxError::Internal(error.to_string()))?;
        command.args(args).env_clear();
        for (name, value) in env {
            let mut prefixed = OsString::from(ENV);
            prefixed.push(name);
            command.env(prefixed, value);
        }
        Ok(command)
    }
}

/// The absolute path of `program`, as a shell finds it.
fn find(program: &OsStr, path: &OsStr) -> Result<PathBuf, SandboxError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| unusable(path, error));
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let missing = |searched: &OsStr| SandboxError::NoProgram {
        program: program.to_string_lossy().into_owned(),
        searched: searched.to_string_lossy().into_owned(),
    };
    if Path::new(program).components().count() > 1 {
        let found = absolute(Path::new(program))?;
        return if runs(&found) { Ok(found) } else { Err(missing(found.as_os_str())) };
    }
    let found = std::env::split_paths(path).map(|directory| directory.join(program)).find(|path| runs(path));
    absolute(&found.ok_or_else(|| missing(path))?)
}

fn granted(path: &Path) -> Result<PathBuf, SandboxError> {
    let found = canonical(path)?;
    // what lies below /tmp is a file of the caller; what lies below the others is the kernel's
    let kernel = |denied: &Path| found.starts_with(denied) && denied != Path::new("/") && denied != Path::new("/tmp");
    match NOT_GRANTED.iter().map(Path::new).find(|denied| found == *denied || kernel(denied)) {
        Some(denied) => Err(unusable(path, format!("`{}` is never granted", denied.display()))),
        None => Ok(found),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, SandboxError> {
    let found = path.canonicalize().map_err(|error| unusable(path, error))?;
    match found.to_str() {
        Some(_) if found.components().any(|part| matches!(part, Component::ParentDir)) => Err(unusable(path, "it is not canonical")),
        Some(_) => Ok(found),
        None => Err(unusable(path, "its name is not UTF-8")),
    }
}

fn unusable(path: &Path, reason: impl ToString) -> SandboxError {
    SandboxError::Path { path: path.to_owned(), reason: reason.to_string() }
}
