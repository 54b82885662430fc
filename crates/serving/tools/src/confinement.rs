//! `sandbox` in an entry of a library: how the program of a tool is confined.

use std::fmt;
use std::path::{Path, PathBuf};

use autoact_sandbox::{LAUNCHER_FAILED, Limits, Sandbox, Tier};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What stands in front of the launcher's own complaints.
const LAUNCHER: &str = "autoact-sandbox:";

/// Whether and how the program of an entry is confined. An entry that does not say it is.
#[derive(Debug)]
pub enum Confinement {
    /// `sandbox = {}`, with what differs from the usual.
    Confined(SandboxEntry),
    /// `sandbox = false`: the program is trusted, and has its caller's rights.
    Trusted,
}

impl Default for Confinement {
    fn default() -> Self {
        Confinement::Confined(SandboxEntry::default())
    }
}

impl<'de> Deserialize<'de> for Confinement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Said;
        impl<'de> Visitor<'de> for Said {
            type Value = Confinement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`false`, or a table such as `{ network = true }`")
            }

            fn visit_bool<E: de::Error>(self, confined: bool) -> Result<Confinement, E> {
                Ok(if confined { Confinement::default() } else { Confinement::Trusted })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Confinement, A::Error> {
                SandboxEntry::deserialize(MapAccessDeserializer::new(map)).map(Confinement::Confined)
            }
        }
        deserializer.deserialize_any(Said)
    }
}

impl Confinement {
    /// The sandbox of a program, if it has one. A program that the entry names by its path may be
    /// read without saying so.
    pub fn sandbox(self, program: &str, base: Option<&Path>, mistakes: &mut Vec<String>) -> Option<Sandbox> {
        match self {
            Confinement::Confined(entry) => Some(entry.sandbox(program, base, mistakes)),
            Confinement::Trusted => None,
        }
    }
}

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
    fn sandbox(self, program: &str, base: Option<&Path>, mistakes: &mut Vec<String>) -> Sandbox {
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
