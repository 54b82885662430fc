//! Exit codes that mean something, after sysexits where it has a word for it.

use autoact_datasets::UnknownFormat;
use autoact_registry::RegistryError;

/// The answer came back approved, or the command did what it was asked.
pub(crate) const OK: u8 = 0;
/// Something failed; the message says what.
pub(crate) const FAILED: u8 = 1;
/// `ask`: an answer came back, but unapproved.
pub(crate) const UNAPPROVED: u8 = 3;
/// Bad configuration or arguments (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;
/// A service cannot be reached (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// Stopped by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code of a failure: what the gateway's status or the configuration says.
pub(crate) fn of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(RegistryError::UnknownVersion { .. } | RegistryError::NotADirectory { .. }) = cause.downcast_ref() {
            return USAGE;
        }
        if cause.downcast_ref::<UnknownFormat>().is_some() {
            return USAGE;
        }
        if let Some(status) = cause.downcast_ref::<tonic::Status>() {
            return match status.code() {
                tonic::Code::Unavailable => UNAVAILABLE,
                tonic::Code::InvalidArgument => USAGE,
                _ => FAILED,
            };
        }
    }
    FAILED
}
