//! Exit codes that mean something, after sysexits where it has a word for it. `docs/cli.md` lists
//! them.

/// The answer came back approved, or the command did what it was asked.
pub(crate) const OK: u8 = 0;
/// Something failed; the message says what.
pub(crate) const FAILED: u8 = 1;
/// `ask`: an answer came back, but unapproved.
pub(crate) const UNAPPROVED: u8 = 3;
/// `ask`: the group says that there is no answer, and Reflect-Agent agrees.
pub(crate) const NO_ANSWER: u8 = 4;
/// `audit`: something was lost or changed.
pub(crate) const FOUND: u8 = 5;
/// Bad configuration or arguments (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;
/// A service cannot be reached, or says that it is unavailable (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// Stopped by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// The reader of standard output has gone: as a shell shows a program that SIGPIPE ended.
pub(crate) const CLOSED: u8 = 141;

/// Arguments that are of no use, or not together. The text says why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadArguments(pub(crate) String);
