//! Starting the next process, waiting for it, and ending as it ended.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use nix::sys::wait::WaitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal as DeathSignal, getppid, pidfd_open, set_parent_process_death_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use super::error::{LaunchError, Step};
use crate::plan::{ENV, Plan, Stage, this_executable};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl End {
    /// Of one that was waited for; `None` while it only stopped or went on.
    pub(crate) fn of(status: WaitStatus) -> Option<End> {
        match status {
            WaitStatus::Exited(_, code) => Some(End::Exit(code)),
            WaitStatus::Signaled(_, signal, _) => Some(End::Signal(signal as i32)),
            _ => None,
        }
    }

    /// As process 1 reports it, which cannot end by a signal itself.
    pub(crate) fn report(self) -> [u8; 2] {
        match self {
            End::Exit(code) => [b'e', code as u8],
            End::Signal(signal) => [b's', signal as u8],
        }
    }

    pub(crate) fn reported(report: &[u8]) -> Option<End> {
        match report {
            [b'e', code] => Some(End::Exit(i32::from(*code))),
            [b's', signal] => Some(End::Signal(i32::from(*signal))),
            _ => None,
        }
    }

    /// Ends this process in the same way: the exit code, or no return.
    pub(crate) fn pass_on(self) -> i32 {
        match self {
            End::Exit(code) => code,
            End::Signal(signal) => {
                let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 1, 1);
                // this runtime ignores SIGPIPE, and only a new executable can change that without `unsafe`
                if signal == Signal::SIGPIPE as i32 {
                    let _ = Command::new("/bin/sh").arg("-c").arg("kill -PIPE $$").exec();
                }
                if let Ok(signal) = Signal::try_from(signal) {
                    // the runtime's handler of SIGSEGV and SIGBUS takes the first one and removes itself
                    let _ = raise(signal);
                    let _ = raise(signal);
                }
                128 + signal
            }
        }
    }
}

/// Ends this process when the one that started it ends, also if that is killed.
pub(crate) fn end_with_parent() -> Result<(), LaunchError> {
    set_parent_process_death_signal(Some(DeathSignal::KILL)).step("end with the parent process")
}

/// Refuses when the parent ended before [`end_with_parent`].
pub(crate) fn check_parent(plan: &Plan) -> Result<(), LaunchError> {
    let parent = getppid().map(|pid| pid.as_raw_nonzero().get());
    match parent.is_some_and(|parent| i64::from(parent) == i64::from(plan.caller)) {
        true => Ok(()),
        false => Err(LaunchError::Refused("the caller has ended".to_owned())),
    }
}

/// The launcher as the process `stage`, which inherits `pipe`.
pub(crate) fn next(plan: &Plan, stage: Stage, pipe: &OwnedFd, args: Vec<OsString>) -> Result<std::process::Child, LaunchError> {
    // one thread: nothing else can inherit it
    fcntl_setfd(pipe, FdFlags::empty()).step("hand on a pipe")?;
    let plan = plan.of_stage(stage, Some(pipe.as_fd().as_raw_fd()));
    let mut command = plan.command(this_executable()).map_err(|error| LaunchError::Refused(error.to_string()))?;
    command.args(args).spawn().step("start the launcher again")
}

/// The pipe that [`next`] handed on, opened again: its number alone is no descriptor.
pub(crate) fn inherited(plan: &Plan, options: &std::fs::OpenOptions) -> Result<File, LaunchError> {
    let number = plan.pipe.ok_or_else(|| LaunchError::Refused("the launcher got no pipe".to_owned()))?;
    options.open(format!("/proc/self/fd/{number}")).step("open the pipe of the launcher")
}

/// The program with its arguments, and with its own variables only.
pub(crate) fn program(plan: &Plan, args: Vec<OsString>) -> Command {
    let own = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.as_bytes().strip_prefix(ENV.as_bytes())?;
        Some((std::ffi::OsStr::from_bytes(name).to_owned(), value))
    });
    let mut command = Command::new(&plan.program);
    command.args(args).env_clear().envs(own).current_dir(&plan.work);
    command
}

/// Nothing to read from and write to. It is opened while the host's root is still there.
pub(crate) fn null() -> Result<File, LaunchError> {
    File::options().read(true).write(true).open("/dev/null").step("open `/dev/null`")
}

/// Lets go of the caller's input and output, so that they end when the program closes them.
pub(crate) fn leave_streams(null: &File) -> Result<(), LaunchError> {
    dup2_stdin(null).step("leave the standard input")?;
    dup2_stdout(null).step("leave the standard output")
}

/// The program could not be started.
pub(crate) fn not_started(plan: &Plan, source: io::Error) -> LaunchError {
    LaunchError::Start { program: plan.program.display().to_string(), source }
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn handle(process: u32) -> Result<OwnedFd, LaunchError> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| LaunchError::Refused(format!("`{process}` is no process")))?;
    pidfd_open(pid, PidfdFlags::empty()).step("watch a process")
}

/// Waits until one of `ends` is readable or hung up, or `limit` has passed: which ones are.
pub(crate) fn wait_for<const N: usize>(ends: &[&OwnedFd; N], limit: Duration) -> Result<[bool; N], LaunchError> {
    let mut polled = ends.map(|end| PollFd::new(end, PollFlags::IN));
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(&mut polled, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(polled.each_ref().map(|end| !end.revents().is_empty())),
        Err(error) => Err(error).step("wait for a process"),
    }
}
