//! Whether everything that was stored is still there, as it was stored.
//!
//! Each event names the SHA-256 of the one before it, and the index of tasks, a chain of its own,
//! the one of each ended task's last event. The id of a stored message has the SHA-256 of its
//! bytes. Together they show any change, and any loss but the last events of a task that has not
//! ended: those are compared with a backup. See `docs/audit.md`.

mod artifacts;
mod chain;
mod core;
mod finding;
mod read;

use autoact_trajectory::{Digest, TaskKey};

pub use self::core::Audit;
pub use self::finding::{Finding, Kind, Report};
pub use self::read::{AuditOptions, Progress, audit};

/// A stored message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Its position in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: &'a str,
    /// Its bytes.
    pub payload: &'a [u8],
    /// The id that it was stored with.
    pub id: Option<&'a str>,
    /// The header [`SHA256_HEADER`]: records of the index have it.
    pub sha256: Option<&'a str>,
}

/// The SHA-256 of a record's bytes, beside them.
pub(crate) const SHA256_HEADER: &str = "Autoact-Sha256";

impl Message<'_> {
    /// The index and the SHA-256 in an event's id: `<tenant>/<task>-<index>-<sha256>`.
    fn event_id(&self, task: &TaskKey) -> Option<(u64, Digest)> {
        let rest = self.id?.strip_prefix(&task.to_string())?.strip_prefix('-')?;
        let (index, digest) = rest.split_once('-')?;
        Some((index.parse().ok()?, hexadecimal(digest)?))
    }

    /// The SHA-256 that a record was stored with.
    fn stored_digest(&self) -> Option<Digest> {
        hexadecimal(self.sha256?)
    }
}

/// 64 hexadecimal digits as a digest.
pub(crate) fn hexadecimal(text: &str) -> Option<Digest> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(Digest(digest))
}
