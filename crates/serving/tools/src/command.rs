//! A tool that is a program: the parameters come on its standard input as one line, its standard
//! output is the observation. Those of a tool with several or typed arguments are a JSON object;
//! single ones can be filled into the program's arguments.
//!
//! Files that it leaves in the directory `ARTIFACTS_DIR` become artifacts when it ends well.
//! `NAME.about` says what the model reads of the file `NAME`.
//!
//! It starts with an empty environment (but for `PATH`, `LANG`, `IDEMPOTENCY_KEY` and what the
//! tool's entry sets) in a temporary working directory, in a process group of its own, which is
//! killed when the program ends or its deadline passes. With a sandbox (`autoact_sandbox`) it starts
//! in a directory of its own that is all it can write to, and nothing of it is left. Without one, a process that left the group (`setsid`) is
//! not killed, but it cannot hold the call up: nobody waits for its end of the pipes, and no thread
//! stays behind.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use autoact_base::error::chain;
use autoact_sandbox::Sandbox;
use autoact_trajectory::{MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, ToolSpec};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::artifacts::{ARTIFACTS_DIR, Collected, collect};
use crate::confinement::launcher_failure;
use crate::pipes::Pipes;
use crate::placeholder::{Argument, fill};
use crate::text::{one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// Where programs are looked for when the entry sets no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Names the call: a program that changes the world can hand it on, so that a call that is repeated
/// takes effect once.
const IDEMPOTENCY_KEY: &str = "IDEMPOTENCY_KEY";
/// How much of the standard error is kept for the message.
const STDERR_BYTES: usize = 4096;
/// How long reading what an ended program left in its pipes may take.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// The pause between two looks at a running program, at first and after output.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two looks at a silent program.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A program as a tool.
pub struct Command {
    spec: ToolSpec,
    program: String,
    args: Vec<Argument>,
    env: BTreeMap<String, String>,
    sandbox: Option<Sandbox>,
}

impl Command {
    /// `program` with its arguments and the variables it shall see, confined if there is a sandbox. A
    /// program without a slash is looked for in `PATH`.
    pub fn new(spec: ToolSpec, program: String, args: Vec<Argument>, env: BTreeMap<String, String>, sandbox: Option<Sandbox>) -> Command {
        Command { spec, program, args, env, sandbox }
    }

    /// Runs it with these files beside it, until it ends or its deadline passes. The files lie in the
    /// directory where a confined program starts.
    pub(crate) fn ended(&self, call: &ToolCall<'_>, files: &[(&str, &[u8])]) -> Result<Ended, ToolError> {
        let deadline = Instant::now() + self.spec.timeout;
        let args = fill(&self.args, call.arguments)?;
        let directory = CallDirectory::new().map_err(|error| ToolError::Internal(format!("cannot make a working directory: {error}")))?;
        for (name, bytes) in files {
            let written = std::fs::write(directory.whole.path().join(name), bytes);
            written.map_err(|error| ToolError::Internal(format!("cannot write to the working directory: {error}")))?;
        }
        let mut running = Running { child: self.start(args, call.key, &directory)? };
        let line = format!("{}\n", one_line(call.params));
        let mut pipes = Pipes::of(&mut running.child, line, self.stdout_bytes(), STDERR_BYTES)?;
        let status = running.wait(deadline, &mut pipes)?;
        drop(running); // ends what the program may have left behind in its group
        // what was written until now lies in the pipes
        pipes.drain(Instant::now() + LAST_OUTPUT);
        let (told, complaint) = pipes.output();
        let Some(status) = status else {
            return Err(ToolError::Timeout { after: self.spec.timeout, written: one_line(&told) });
        };
        if let Some(failure) = self.sandbox.as_ref().and_then(|_| launcher_failure(status.code(), &complaint)) {
            return Err(ToolError::Internal(one_line(failure)));
        }
        Ok(Ended { status, told, complaint, collected: collect(&directory.artifacts) })
    }

    fn start(&self, args: Vec<String>, key: &str, directory: &CallDirectory) -> Result<Child, ToolError> {
        let artifacts = directory.artifacts.display().to_string();
        let mut env: BTreeMap<&str, &str> =
            [("PATH", DEFAULT_PATH), ("LANG", "C.UTF-8"), (ARTIFACTS_DIR, &artifacts), (IDEMPOTENCY_KEY, key)].into();
        env.extend(self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut command = match &self.sandbox {
            None => {
                let mut command = std::process::Command::new(&self.program);
                command.args(args).env_clear().envs(env).current_dir(&directory.work);
                command
            }
            // the program starts in the directory of the call, which is all that it can write to
            Some(sandbox) => {
                let confined = sandbox.command(&self.program, args, env, directory.whole.path());
                confined.map_err(|error| ToolError::Internal(chain(&error)))?
            }
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|source| ToolError::Start { program: self.program.clone(), source })
    }

    /// How much output is kept: blanks vanish later, so that more than the bound is read.
    fn stdout_bytes(&self) -> usize {
        self.spec.max_observation_bytes.saturating_mul(4).saturating_add(4096)
    }
}

impl Tool for Command {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let ended = self.ended(call, &[])?;
        if ended.status.success() {
            return Ok(ended.output());
        }
        let message = ended.complaint.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_else(|| "no message".to_owned());
        Err(ToolError::Failed { status: told_status(ended.status), message: quoted(&message) })
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    fn is_trusted(&self) -> bool {
        self.sandbox.is_none()
    }
}

/// A program that ended by itself.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What was kept of its standard output.
    pub(crate) told: String,
    /// What was kept of its standard error.
    pub(crate) complaint: String,
    /// What it left in its directory for artifacts.
    collected: Collected,
}

impl Ended {
    /// The output of a program that ended well.
    pub(crate) fn output(self) -> ToolOutput {
        output(self.told, self.collected)
    }
}

/// The directory of one call. It goes with it.
struct CallDirectory {
    whole: TempDir,
    /// Where a program starts that is not confined.
    work: PathBuf,
    /// What the program leaves there becomes artifacts.
    artifacts: PathBuf,
}

impl CallDirectory {
    fn new() -> io::Result<CallDirectory> {
        let whole = tempfile::tempdir()?;
        let (work, artifacts) = (whole.path().join("work"), whole.path().join("artifacts"));
        std::fs::create_dir(&work)?;
        std::fs::create_dir(&artifacts)?;
        Ok(CallDirectory { whole, work, artifacts })
    }
}

/// A started program. Dropping it kills its whole process group and reaps it.
struct Running {
    child: Child,
}

impl Running {
    /// How the program ended, or `None` when it did not until the deadline. Its pipes are served
    /// meanwhile.
    fn wait(&mut self, deadline: Instant, pipes: &mut Pipes) -> Result<Option<ExitStatus>, ToolError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let status = self.child.try_wait().map_err(|error| ToolError::Internal(format!("cannot wait for the program: {error}")))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if status.is_some() || left.is_zero() {
                return Ok(status);
            }
            // a child's end wakes nobody without unsafe code, so that a silent program is looked at
            // again and again
            let moved = pipes.serve(pause.min(left))?;
            pause = if moved { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // fails when the group has no member any more, which is what we want
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// What the program told, and what it left in its directory for artifacts.
fn output(mut text: String, collected: Collected) -> ToolOutput {
    let Collected { artifacts, left_out } = collected;
    if !left_out.is_empty() {
        let (files, bytes) = (MAX_ARTIFACTS, MAX_ARTIFACT_BYTES >> 20);
        text.push_str(&format!(" (Not kept, beyond {files} files or {bytes} MiB: {}.)", quoted(&left_out.join(", "))));
    }
    ToolOutput { text, artifacts, ..ToolOutput::default() }
}

pub(crate) fn told_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
