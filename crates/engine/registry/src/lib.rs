//! The adapter registry: versions of the three adapters on disk, and the version in service.
//!
//! ```text
//! adapters/
//!   current.json                         which version is in service, and those before it
//!   versions/atlas-3fa9c1d2e0/
//!     manifest.json                      base, digests, data, settings, metrics, parent
//!     plan/  tool/  reflect/             one PEFT adapter each; a calibration beside it
//! ```
//!
//! A version is immutable. [`Registry::publish`] fills a directory under a temporary name and
//! renames it, so a listed version is complete. Its id is made of the task's name and a digest of
//! its content, so publishing the same adapters again gives the same version. One small file names
//! the version in service; it is replaced by a rename. [`Registry::promote`] pushes a version on a
//! stack, [`Registry::rollback`] pops it. Readers need no lock and no write permission. Writers
//! exclude each other with a file lock.
//!
//! This crate does not know the services: agents poll [`Registry::pointer`] and load what it names.

mod disk;
mod error;
mod id;
mod manifest;
mod pointer;
mod publish;
mod registry;
mod verify;

pub use disk::{sha256, sha256_file};
pub use error::RegistryError;
pub use id::VersionId;
pub use manifest::{AdapterRecord, BaseRecord, DataRecord, Manifest};
pub use pointer::{MAX_PROMOTIONS, Pointer, Promotion};
pub use publish::{AdapterFiles, NewVersion, adapter_files, calibration};
pub use registry::{Listing, Registry, Version};

/// The agents a version has an adapter for: the names of its directories.
pub const ROLES: [&str; 3] = ["plan", "tool", "reflect"];

/// What Reflect-Agent's judgements are worth with an adapter: a file in the adapter's directory.
pub const CALIBRATION_FILE: &str = "calibration.json";
