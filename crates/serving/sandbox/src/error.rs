//! Why a sandbox cannot be made.

use std::path::PathBuf;

use crate::tier::Tier;

/// Why a program is not started. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The tier is not available here, but the lesser one is.
    #[error(
        "the sandbox `{}` is not available here: {reason}; `{}` is, which contains less \
         (docs/sandbox.md): set `allow_lesser = true` to run in it",
        Tier::Namespaces,
        Tier::Landlock
    )]
    LesserNotAllowed {
        /// Why the tier that was asked for is not available.
        reason: String,
    },
    /// None of the tiers that the caller accepts is available.
    #[error("no sandbox is available here: {}", reasons.join("; "))]
    Unavailable {
        /// Each tier that was asked for, and why it is not available.
        reasons: Vec<String>,
    },
    /// The current executable does not call [`crate::run_if_launcher`].
    #[error("this executable cannot start a sandbox: its `main` does not begin with `run_if_launcher`")]
    NoLauncher,
    /// There is no such program.
    #[error("there is no program `{program}` in `{searched}`")]
    NoProgram {
        /// The program.
        program: String,
        /// Where it was looked for.
        searched: String,
    },
    /// A path that was granted, or the working directory, cannot be used.
    #[error("cannot use `{path}` in a sandbox: {reason}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A limit makes no sense.
    #[error("`{limit}` is {found}, expected {expected}")]
    Limit {
        /// Its name.
        limit: &'static str,
        /// What would be right.
        expected: String,
        /// Its value.
        found: u64,
    },
    /// Something of ours failed.
    #[error("cannot prepare the sandbox: {0}")]
    Internal(String),
}
