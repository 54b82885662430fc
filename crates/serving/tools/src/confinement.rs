//! `sandbox` in an entry of a library: how the program of a tool is confined.

use std::path::{Path, PathBuf};

use autoact_sandbox::{LAUNCHER_FAILED, Limits, Sandbox, Tier};
use serde::Deserialize;

/// What stands in front of the launcher's own complaints.
const LAUNCHER: &str = "autoact-sandbox:";

/// `sandbox = {}` has the stronger tier, no network, and the usual limits.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxEntry {
    tier: Tier,
    allow_lesser: bool,
    read: Vec<PathBuf>,
    network: bool,
    limits: Limits,
}

impl Default for SandboxEntry {
    fn default() -> Self {
        let Sandbox { tier, allow_lesser, limits, read, network, launcher: _ } = Sandbox::default();
        SandboxEntry { tier, allow_lesser, read, network, limits }
    }
}

impl SandboxEntry {
    /// The sandbox of a program. One that the entry names by its path may be read without saying so.
    pub fn sandbox(self, program: &str, base: Option<&Path>, mistakes: &mut Vec<String>) -> Sandbox {
        let SandboxEntry { tier, allow_lesser, read, network, limits } = self;
        let mut granted: Vec<PathBuf> = Vec::new();
        for path in read {
            let path = base.map_or_else(|| path.clone(), |base| base.join(&path));
            match std::path::absolute(&path) {
                Ok(path) if path.exists() => granted.push(path),
                _ => mistakes.push(format!("`sandbox.read` names `{}`, which is not there", path.display())),
            }
        }
        if program.contains('/') {
            granted.push(PathBuf::from(program));
        }
        Sandbox { tier, allow_lesser, limits, read: granted, network, launcher: None }
    }
}

/// What the launcher says where it could not run the program.
pub(crate) fn launcher_failure(code: Option<i32>, complaint: &str) -> Option<&str> {
    let line = complaint.lines().find(|line| line.starts_with(LAUNCHER))?;
    (code == Some(LAUNCHER_FAILED)).then_some(line)
}
