//! `manifest.json`: what belongs to a backup. It is replaced in one step at the end of a run, so an
//! interrupted run leaves the backup as it was.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use autoact_wire::store;
use serde::{Deserialize, Serialize};

use crate::backup::error::BackupError;
use crate::backup::segment::Segment;

/// What this release writes.
const FORMAT: u32 = 1;
const NAME: &str = "manifest.json";

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Runs so far.
    pub(super) runs: u64,
    /// When the last one ended, in seconds since 1970.
    pub(super) time: u64,
    /// Which streams the bus has, by name: another bus has others.
    pub(super) bus: BTreeMap<String, String>,
    /// The last position that was copied, by stream.
    pub(super) positions: BTreeMap<String, u64>,
    /// SHA-256 of the last record of the index.
    pub(super) last_record: Option<String>,
    pub(super) index: Vec<Segment>,
    pub(super) trajectories: Vec<Segment>,
    pub(super) receipts: Vec<Segment>,
    pub(super) tools: Vec<Segment>,
    pub(super) artifacts: Vec<Segment>,
    /// What waited there when the last run ended.
    pub(super) outbox: Vec<Segment>,
    /// Tasks that were removed while the last run copied events.
    pub(super) purged_meanwhile: Vec<String>,
    /// SHA-256 of this object as compact JSON, with this field empty.
    pub(super) sha256: String,
}

impl Manifest {
    /// Reads and checks it; `None` if there is none.
    pub(super) fn load(dir: &Path) -> Result<Option<Manifest>, BackupError> {
        let path = dir.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BackupError::io(&path)(error)),
        };
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| BackupError::damaged(&path, format!("is no manifest: {error}")))?;
        if manifest.format > FORMAT {
            return Err(BackupError::Newer { found: manifest.format, known: FORMAT });
        }
        if manifest.sha256 != manifest.digest() {
            return Err(BackupError::damaged(&path, "is not as it was written: its SHA-256 is another"));
        }
        Ok(Some(manifest))
    }

    /// Writes it, in one step.
    pub(super) fn store(mut self, dir: &Path) -> Result<(), BackupError> {
        self.format = FORMAT;
        self.sha256 = self.digest();
        let (path, new) = (dir.join(NAME), dir.join(format!("{NAME}.new")));
        let text = serde_json::to_vec_pretty(&self).map_err(|error| BackupError::io(&path)(error.into()))?;
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(dir)?.sync_all()
        };
        write().map_err(BackupError::io(&path))
    }

    /// Every file that belongs to the backup.
    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> {
        [&self.index, &self.trajectories, &self.receipts, &self.tools, &self.artifacts, &self.outbox].into_iter().flatten()
    }

    fn digest(&self) -> String {
        let plain = Manifest { sha256: String::new(), ..self.clone() };
        serde_json::to_vec(&plain).map(|text| store::digest(&text).to_string()).unwrap_or_default()
    }
}
