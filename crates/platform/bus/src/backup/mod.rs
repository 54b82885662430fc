//! A second copy of the bus, in files that only grow by what is new. See `docs/audit.md`.

mod error;
mod manifest;
mod read;
mod restore;
mod segment;
mod write;

pub use self::error::BackupError;
pub use self::read::Summary;
pub use self::restore::{Restored, restore};
pub use self::write::{BackedUp, backup};
