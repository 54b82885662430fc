//! Which confinement is available here.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::launcher::{NOTHING, is_launcher};
use crate::sandbox::Sandbox;

/// How long the trivial program may take: a busy machine, not a working one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// User, mount, process, network, IPC and host name namespaces with a root of their own.
    Namespaces,
    /// Landlock and seccomp in the caller's namespaces: contains less.
    Landlock,
}

impl Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Namespaces => "namespaces",
            Tier::Landlock => "landlock",
        })
    }
}

impl Tier {
    /// What is available to this process: tried once with a trivial program in each tier.
    pub fn probe() -> Result<Tiers, SandboxError> {
        if !is_launcher() {
            return Err(SandboxError::NoLauncher);
        }
        let executable = std::env::current_exe().map_err(|error| SandboxError::Internal(error.to_string()))?;
        Ok(Tiers::of(&executable))
    }
}

/// What is available, and why the rest is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// Why [`Tier::Namespaces`] is not available.
    pub namespaces: Result<(), String>,
    /// Why [`Tier::Landlock`] is not available.
    pub landlock: Result<(), String>,
}

impl Tiers {
    /// What is available to `launcher`, an executable whose `main` begins with
    /// [`crate::run_if_launcher`]. Both tiers are tried once, and the answer is kept.
    pub fn of(launcher: &Path) -> Tiers {
        static TRIED: Mutex<BTreeMap<PathBuf, Tiers>> = Mutex::new(BTreeMap::new());
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        tried.entry(launcher.to_owned()).or_insert_with(|| Tiers::tried(launcher)).clone()
    }

    fn tried(launcher: &Path) -> Tiers {
        Tiers { namespaces: tried(Tier::Namespaces, launcher), landlock: tried(Tier::Landlock, launcher) }
    }

    /// The tier that a program is run in.
    pub fn choose(&self, wanted: Tier, allow_lesser: bool) -> Result<Tier, SandboxError> {
        let unavailable = |tier: Tier, reason: &String| format!("`{tier}`: {reason}");
        match (wanted, &self.namespaces, &self.landlock) {
            (Tier::Namespaces, Ok(()), _) => Ok(Tier::Namespaces),
            (Tier::Landlock, _, Ok(())) => Ok(Tier::Landlock),
            (Tier::Namespaces, Err(_), Ok(())) if allow_lesser => Ok(Tier::Landlock),
            (Tier::Namespaces, Err(reason), Ok(())) => Err(SandboxError::LesserNotAllowed { reason: reason.clone() }),
            (Tier::Landlock, _, Err(reason)) => Err(SandboxError::Unavailable { reasons: vec![unavailable(Tier::Landlock, reason)] }),
            (Tier::Namespaces, Err(first), Err(second)) => {
                let reasons = vec![unavailable(Tier::Namespaces, first), unavailable(Tier::Landlock, second)];
                Err(SandboxError::Unavailable { reasons })
            }
        }
    }
}

/// Starts a program that ends at once.
fn tried(tier: Tier, launcher: &Path) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let sandbox = Sandbox { launcher: Some(launcher.to_owned()), ..Sandbox::default() };
    let no_variables: [(&str, &str); 0] = [];
    let mut command =
        sandbox.command_in(tier, launcher.as_os_str(), NOTHING, no_variables, work.path()).map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if !ends(child.id(), Instant::now() + PATIENCE) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("a trivial program did not end within {} s", PATIENCE.as_secs()));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match complaint.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        _ if output.status.success() => Ok(()),
        Some(line) => Err(line.strip_prefix(crate::launcher::SAYS).unwrap_or(line).to_owned()),
        None => Err(format!("a trivial program ended with {}", output.status)),
    }
}

/// Whether the child `id` ends until `deadline`.
fn ends(id: u32, deadline: Instant) -> bool {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let Some(Ok(ended)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return false };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], limit.as_ref()) {
            Ok(ready) if ready > 0 => return true,
            _ if left.is_zero() => return false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiers(namespaces: bool, landlock: bool) -> Tiers {
        let result = |is: bool| if is { Ok(()) } else { Err("no".to_owned()) };
        Tiers { namespaces: result(namespaces), landlock: result(landlock) }
    }

    #[test]
    fn the_lesser_tier_has_to_be_allowed() {
        assert_eq!(tiers(true, true).choose(Tier::Namespaces, true).unwrap(), Tier::Namespaces);
        assert_eq!(tiers(false, true).choose(Tier::Namespaces, true).unwrap(), Tier::Landlock);
        assert_eq!(tiers(true, true).choose(Tier::Landlock, false).unwrap(), Tier::Landlock);
        let refused = tiers(false, true).choose(Tier::Namespaces, false).unwrap_err();
        assert!(matches!(refused, SandboxError::LesserNotAllowed { .. }), "{refused}");
        for wanted in [Tier::Namespaces, Tier::Landlock] {
            let refused = tiers(false, false).choose(wanted, true).unwrap_err();
            assert!(matches!(refused, SandboxError::Unavailable { .. }), "{refused}");
        }
    }

    #[test]
    fn a_program_that_is_no_launcher_is_told_so() {
        assert!(matches!(Tier::probe(), Err(SandboxError::NoLauncher)));
    }
}
