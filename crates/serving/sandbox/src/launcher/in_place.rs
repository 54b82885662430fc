//! The tier without namespaces: the outer process, the supervisor, and the program's own process.
//!
//! The supervisor is nobody's child that the caller knows: killing the launcher, alone or with its
//! process group, leaves it alive long enough to end what the program started.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{set_child_subreaper, setsid};

use super::error::{LaunchError, Step};
use super::process::{self, End};
use super::watch::{Excess, Watch};
use super::{SAYS, identity, limits, restrict, seccomp};
use crate::plan::{Plan, Stage};

/// What programs and libraries are in, and what they read of `/etc` and `/proc`.
const SYSTEM: [&str; 21] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/ssl/certs",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/filesystems",
];
const NETWORK: [&str; 5] = ["/etc/gai.conf", "/etc/hosts", "/etc/protocols", "/etc/resolv.conf", "/etc/services"];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The newest version of Landlock whose rights are all named here.
const NEWEST: ABI = ABI::V6;
/// The pause between two attempts to end everything.
const AGAIN: Duration = Duration::from_millis(1);

/// Starts the supervisor and ends as it ends.
pub(crate) fn outer(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    process::end_with_parent()?;
    process::check_parent(plan)?;
    if let Some(other) = identity::other_than_root()? {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        identity::give(openat(CWD, &plan.work, flags, Mode::empty()).step("open the working directory")?, other)?;
    }
    // its other end breaks when this process is gone
    let (for_supervisor, alive) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("make a pipe")?;
    let null = process::null()?;
    let mut supervisor = process::next(plan, Stage::Supervisor, &for_supervisor, args)?;
    drop(for_supervisor);
    process::leave_streams(&null)?;
    let ended = supervisor.wait().step("wait for the supervisor")?;
    drop(alive);
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
    Ok(signal.map_or(End::Exit(ended.code().unwrap_or(crate::LAUNCHER_FAILED)), End::Signal).pass_on())
}

/// Starts the program, watches what it takes, and ends everything it left when it ends, when it
/// takes too much, and when the outer process is gone.
pub(crate) fn supervise(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    let outer = OwnedFd::from(process::inherited(plan, OpenOptions::new().read(true))?);
    setsid().step("make a session")?;
    set_child_subreaper(Some(rustix::process::getpid())).step("adopt what the program leaves")?;
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let processes = openat(CWD, "/proc", flags, Mode::empty()).step("open `/proc`")?;
    let mut watch = Watch::new(processes, std::process::id(), plan.limits);
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return Err(LaunchError::Refused("this kernel does not list the children of a process in `/proc`".to_owned()));
    }
    let null = process::null()?;
    let next = plan.of_stage(Stage::Program, None).command(crate::plan::this_executable());
    let program = next.map_err(|error| LaunchError::Refused(error.to_string()))?.args(args).spawn().step("start the launcher again")?;
    process::leave_streams(&null)?;
    let ended = process::handle(program.id())?;
    let program = Pid::from_raw(program.id() as i32);
    let end = loop {
        let [ended, gone] = process::wait_for(&[&ended, &outer], Watch::PERIOD)?;
        if gone {
            end_all(&watch, program)?;
            return Ok(crate::LAUNCHER_FAILED);
        }
        let excess = if ended { None } else { watch.memory().or_else(|| watch.too_many()).or_else(|| watch.work(&plan.work)) };
        if ended || excess.is_some() {
            let end = end_all(&watch, program)?;
            // what was written in the last moment counts as well
            break excess.or_else(|| watch.work(&plan.work)).map_or(end, told);
        }
        if let Some(end) = reap(program)?.1 {
            end_all(&watch, program)?;
            break end;
        }
    };
    Ok(end.pass_on())
}

fn told(excess: Excess) -> End {
    eprintln!("{SAYS}{excess}");
    excess.end()
}

/// Kills descendants until there is none: children of a killed one become children of this process.
/// How the program itself ended.
fn end_all(watch: &Watch, program: Pid) -> Result<End, LaunchError> {
    let mut end = None;
    loop {
        let (left, program_end) = reap(program)?;
        end = end.or(program_end);
        if !left {
            return Ok(end.unwrap_or(End::Signal(Signal::SIGKILL as i32)));
        }
        let ended = end.is_some();
        for process in watch.descendants() {
            let process = Pid::from_raw(process as i32);
            if process != program || ended || !has_ended(program) {
                // fails for one that is gone, which is what we want
                let _ = kill(process, Signal::SIGKILL);
            }
        }
        process::wait_for(&[], AGAIN)?;
    }
}

/// Whether the program has ended by itself, and only waits to be reaped.
fn has_ended(program: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    nix::sys::wait::waitid(nix::sys::wait::Id::Pid(program), flags).is_ok_and(|status| status != WaitStatus::StillAlive)
}

/// Reaps all that ended: whether there are children left, and how the program ended if it did.
fn reap(program: Pid) -> Result<(bool, Option<End>), LaunchError> {
    let mut end = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Ok((true, end)),
            Ok(status) if status.pid() == Some(program) => end = End::of(status),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok((false, end)),
            Err(error) => return Err(error).step("wait for the program"),
        }
    }
}

/// Restricts this process and becomes the program.
pub(crate) fn become_program(plan: &Plan, args: Vec<OsString>) -> Result<i32, LaunchError> {
    process::end_with_parent()?;
    process::check_parent(plan)?;
    limits::first_out_of_memory();
    let others = match identity::other_than_root()? {
        Some(_) => 0,
        None => tasks_of_user(),
    };
    // before privileges go: it is found by number, and the user is the one the directory was given to
    let owner = rustix::fs::stat(&plan.work).step("look at the working directory")?.st_uid;
    if rustix::process::geteuid().is_root() {
        identity::change(owner)?;
    }
    limits::set(&plan.limits, others)?;
    restrict::drop_privileges()?;
    process::end_with_parent()?;
    process::check_parent(plan)?;
    let mut program = process::program(plan, args);
    let abi = landlock(plan)?;
    seccomp::in_place(plan.network, abi)?;
    Err(process::not_started(plan, program.exec()))
}

/// Threads of this user that can be seen: the kernel counts them all together.
fn tasks_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let processes = entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let threads = |entry: &std::fs::DirEntry| entry.path().join("task").read_dir().map_or(0, |tasks| tasks.count() as u64);
    processes.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == own)).map(|entry| threads(&entry)).sum()
}

/// Allows the system's files, the granted paths and the working directory, and no others: the
/// version of Landlock that does so.
fn landlock(plan: &Plan) -> Result<ABI, LaunchError> {
    let failed = |error: &dyn std::fmt::Display| LaunchError::Refused(format!("cannot restrict the program with Landlock: {error}"));
    let read = AccessFs::from_read(NEWEST);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev);
    let network = if plan.network { &NETWORK[..] } else { &[] };
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).map_err(|error| failed(&error))?;
    if !plan.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST)).map_err(|error| failed(&error))?;
    }
    let rules = rules.scope(Scope::from_all(NEWEST)).and_then(Ruleset::create).map_err(|error| failed(&error))?;
    let granted = plan.read.iter().map(|path| (path.as_path(), read));
    let system = SYSTEM.iter().chain(network).map(|path| (std::path::Path::new(path), read));
    let devices = DEVICES.iter().map(|path| (std::path::Path::new(path), device));
    let mut rules = Ok(rules);
    for (path, access) in granted.chain(system).chain(devices).chain([(plan.work.as_path(), write)]) {
        // one that is not there needs no rule
        let Ok(file) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        rules = rules.and_then(|rules| rules.add_rule(PathBeneath::new(file, access)));
    }
    let status = rules.and_then(|rules| rules.restrict_self()).map_err(|error| failed(&error))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(LaunchError::Refused("this kernel has no Landlock, or it is switched off".to_owned())),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi),
        (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => {
            Err(LaunchError::Refused("Landlock is not available".to_owned()))
        }
    }
}
