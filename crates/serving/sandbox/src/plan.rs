//! What the launcher is told, as its second argument.

use std::ffi::OsStr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::sandbox::Limits;
use crate::tier::Tier;

/// The first argument of a launcher. It is not meant to be typed.
pub(crate) const LAUNCHER: &str = "--autoact-sandbox-launcher";
/// Stands before the names of the program's variables on their way through the launcher: none of
/// them, such as `LD_PRELOAD`, must have an effect on the launcher itself. They are no argument,
/// because everybody can read arguments.
pub(crate) const ENV: &str = "AUTOACT_SANDBOX_ENV_";

/// Which process of the launcher this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// What the caller started. It ends as the program ended.
    Outer,
    /// Process 1 of the namespaces: it builds the root and starts the program.
    Init,
    /// Without namespaces: adopts and ends whatever the program leaves behind.
    Supervisor,
    /// Without namespaces: restricts itself and becomes the program.
    Program,
}

/// One confined call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) stage: Stage,
    pub(crate) tier: Tier,
    pub(crate) limits: Limits,
    /// Canonical paths that the program may read and execute, beside the system's.
    pub(crate) read: Vec<PathBuf>,
    pub(crate) network: bool,
    /// The canonical path of the one directory that the program may write to.
    pub(crate) work: PathBuf,
    pub(crate) program: PathBuf,
    /// The process that starts the launcher: the launcher ends when it is gone.
    pub(crate) caller: u32,
    /// A pipe to the process of the launcher that started this one.
    pub(crate) pipe: Option<RawFd>,
}

impl Plan {
    /// The same call, for the next process of the launcher.
    pub(crate) fn of_stage(&self, stage: Stage, pipe: Option<RawFd>) -> Plan {
        Plan { stage, pipe, caller: std::process::id(), ..self.clone() }
    }

    /// The launcher in `executable`, with the program's arguments yet to come.
    pub(crate) fn command(&self, executable: impl AsRef<OsStr>) -> Result<Command, serde_json::Error> {
        let mut command = Command::new(executable);
        command.arg(LAUNCHER).arg(serde_json::to_string(self)?);
        Ok(command)
    }
}

/// The executable of this process, also when its file was replaced meanwhile.
pub(crate) fn this_executable() -> &'static Path {
    Path::new("/proc/self/exe")
}
