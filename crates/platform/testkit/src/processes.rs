//! The processes of a group, found by a mark in their environment: whatever a program starts, its
//! children have it too.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::poll::poll_until;

/// The variable that marks a group's processes. Not one of `AUTOACT_…`: those are settings.
pub const MARK: &str = "TESTKIT_GROUP";

/// A process that bears a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Its id.
    pub pid: i32,
    /// Its program's name, as the system has it (15 characters at most).
    pub name: String,
}

/// A mark no other group has. It begins with this process's id.
pub fn new_mark() -> String {
    format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple())
}

/// The processes with this mark, without this one. Needs `/proc`.
pub fn marked(mark: &str) -> Vec<Marked> {
    of_marks(|found| found == mark)
}

/// Kills what earlier test processes have left: one that was killed itself, as a runner does when its
/// time is over, ends nothing.
pub fn end_orphans() {
    let orphaned = |mark: &str| {
        let test = mark.split_once('-').and_then(|(test, _)| test.parse::<i32>().ok());
        test.is_some_and(|test| kill(Pid::from_raw(test), None) == Err(nix::errno::Errno::ESRCH))
    };
    for process in of_marks(orphaned) {
        signal(process.pid, Signal::SIGKILL);
    }
}

fn of_marks(wanted: impl Fn(&str) -> bool) -> Vec<Marked> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // a process that ended meanwhile, or another user's, has no environment to read
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        let value = |variable: &[u8]| std::str::from_utf8(variable).ok()?.strip_prefix(MARK)?.strip_prefix('=').map(str::to_owned);
        if environment.split(|byte| *byte == 0).filter_map(value).any(|mark| wanted(&mark)) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned();
            found.push(Marked { pid, name });
        }
    }
    found
}

/// Bytes of memory of a process that are resident, those of mapped files included; needs `/proc`.
/// `None` once the process is gone.
pub fn resident(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    Some(kib.parse::<u64>().ok()? << 10)
}

/// Waits until no process has the mark.
pub async fn all_gone(mark: &str, limit: Duration) -> anyhow::Result<()> {
    let gone = poll_until(limit, "every process to end", async || marked(mark).is_empty().then_some(())).await;
    gone.map_err(|error| error.context(format!("still running: {:?}", marked(mark))))
}

/// Asks a child to end, as Kubernetes does. Not by the `kill` program: not every machine has one.
pub fn terminate(child: &std::process::Child) {
    signal(child.id().cast_signed(), Signal::SIGTERM);
}

/// Sends a signal; a process that is gone is no error.
pub fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_killed_test_has_left_is_ended_and_nothing_else() -> anyhow::Result<()> {
        let mut gone = Command::new("true").spawn()?;
        gone.wait()?;
        let sleeping = |mark: String| Command::new("sleep").arg("1000").env(MARK, mark).spawn();
        let (mut orphan, mut ours) = (sleeping(format!("{}-x", gone.id()))?, sleeping(new_mark())?);
        end_orphans();
        assert_eq!(orphan.wait()?.signal(), Some(Signal::SIGKILL as i32));
        assert_eq!(ours.try_wait()?, None);
        ours.kill()?;
        ours.wait()?;
        Ok(())
    }
}
