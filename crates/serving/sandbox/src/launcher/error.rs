//! Why a confinement cannot be built.

use std::io;

use crate::{LAUNCHER_FAILED, NOT_EXECUTABLE, NOT_FOUND};

/// Why the launcher gives up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// The kernel refused a step.
    #[error("cannot {step}: {source}")]
    Step {
        /// What was tried.
        step: String,
        source: io::Error,
    },
    /// The program cannot be executed.
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    /// Something is missing or too much.
    #[error("{0}")]
    Refused(String),
}

impl LaunchError {
    /// The exit code that says so, as shells and `env` have it.
    pub(crate) fn code(&self) -> i32 {
        match self {
            LaunchError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            LaunchError::Start { .. } => NOT_EXECUTABLE,
            LaunchError::Step { .. } | LaunchError::Refused(_) => LAUNCHER_FAILED,
        }
    }
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    fn step(self, step: impl Into<String>) -> Result<T, LaunchError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl Into<String>) -> Result<T, LaunchError> {
        self.map_err(|error| LaunchError::Step { step: step.into(), source: error.into() })
    }
}
