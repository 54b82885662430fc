//! Publishing a version atomically.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use autoact_lora::{Adapter, CONFIG_FILE, WEIGHTS_FILE};
use serde_json::Value;

use crate::disk::{self, io, sha256};
use crate::manifest::FORMAT;
use crate::registry::now;
use crate::{AdapterRecord, BaseRecord, CALIBRATION_FILE, DataRecord, Manifest, ROLES, Registry, RegistryError, Version, VersionId};

/// Prefix of the names of versions during publication; no id begins with it.
const UNFINISHED: &str = ".new-";

/// The content of a version to publish.
#[derive(Debug, Clone, Default)]
pub struct NewVersion {
    /// The name of the task it was trained for; the id begins with it.
    pub task: String,
    /// The base model's name, for people.
    pub base: String,
    /// SHA-256 digest (hex) of the base's weights: `ModelDir::digest`.
    pub base_sha256: String,
    /// A directory with the adapters `plan`, `tool` and `reflect`; they are copied.
    pub adapters: PathBuf,
    /// The version that it was trained from or improves on.
    pub parent: Option<VersionId>,
    /// The data sets, by name.
    pub data: BTreeMap<String, DataRecord>,
    /// The settings of the training.
    pub settings: Value,
    /// The results of the evaluation.
    pub metrics: Value,
}

impl Registry {
    /// Copies the adapters to a new version, after checking that each is valid and belongs to the
    /// base. The id is a digest of the content, so publishing the same adapters for the same task
    /// and base again returns the existing version.
    pub fn publish(&self, new: NewVersion) -> Result<Version, RegistryError> {
        if new.base_sha256.len() != 64 || !new.base_sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RegistryError::InvalidBase { found: new.base_sha256 });
        }
        // before anything is written, so that an invalid version leaves no files
        let digests = ROLES.map(|role| digest(role, &new.adapters.join(role), &new.base_sha256));
        let mut named = Vec::with_capacity(ROLES.len());
        for (role, digest) in ROLES.iter().zip(digests) {
            named.push(((*role).to_owned(), digest?));
            let calibration = calibration(&new.adapters.join(role))?;
            named.extend(calibration.map(|bytes| (format!("{role} calibration"), sha256(&bytes))));
        }
        let id = VersionId::of(&new.task, &new.base_sha256, named);
        let _lock = self.lock()?;
        self.sweep()?;
        match self.get(&id) {
            Ok(version) => {
                self.verify_files(&version)?;
                return Ok(version);
            }
            Err(RegistryError::UnknownVersion { .. }) => {}
            Err(error) => return Err(error),
        }
        let unfinished = Unfinished(self.versions_dir().join(format!("{UNFINISHED}{id}")));
        let manifest = fill(&unfinished.0, new, &id)?;
        let dir = self.versions_dir().join(id.as_str());
        fs::rename(&unfinished.0, &dir).map_err(io("create", &dir))?;
        disk::sync_dir(&self.versions_dir())?;
        Ok(Version { manifest, dir })
    }

    /// Removes directories of interrupted publications; the lock excludes running ones.
    fn sweep(&self) -> Result<(), RegistryError> {
        let dir = self.versions_dir();
        for entry in fs::read_dir(&dir).map_err(io("list", &dir))? {
            let entry = entry.map_err(io("list", &dir))?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_dir_all(entry.path()).map_err(io("remove", &entry.path()))?;
            }
        }
        Ok(())
    }
}

/// A directory in preparation; removed on drop unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fill(dir: &Path, new: NewVersion, id: &VersionId) -> Result<Manifest, RegistryError> {
    let mut adapters = BTreeMap::new();
    for role in ROLES {
        let (from, to) = (new.adapters.join(role), dir.join(role));
        disk::create_dir(&to)?;
        let mut bytes = 0;
        for name in [CONFIG_FILE, WEIGHTS_FILE] {
            let content = fs::read(from.join(name)).map_err(io("read", &from.join(name)))?;
            bytes += content.len() as u64;
            disk::write_synced(&to.join(name), &content)?;
        }
        let calibration = calibration(&from)?;
        if let Some(content) = &calibration {
            disk::write_synced(&to.join(CALIBRATION_FILE), content)?;
        }
        disk::sync_dir(&to)?;
        // the digest of the copy, which is what is published
        adapters.insert(
            role.to_owned(),
            AdapterRecord { sha256: digest(role, &to, &new.base_sha256)?, bytes, calibration_sha256: calibration.as_deref().map(sha256) },
        );
    }
    let manifest = Manifest {
        format: FORMAT,
        id: id.clone(),
        created: now(),
        task: new.task,
        base: BaseRecord { name: new.base, sha256: new.base_sha256 },
        parent: new.parent,
        adapters,
        data: new.data,
        settings: new.settings,
        metrics: new.metrics,
    };
    let path = Registry::manifest_in(dir);
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(|source| RegistryError::Manifest { path: path.clone(), source })?;
    text.push(b'\n');
    disk::write_synced(&path, &text)?;
    disk::sync_dir(dir)?;
    Ok(manifest)
}

/// The bytes of `calibration.json` in an adapter's directory; `None`: it has none. What they say is
/// for the caller to check.
///
/// # Errors
/// The file cannot be read.
pub fn calibration(adapter: &Path) -> Result<Option<Vec<u8>>, RegistryError> {
    let path = adapter.join(CALIBRATION_FILE);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("read", &path)(error)),
    }
}

/// What whoever loads a PEFT adapter has to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterFiles {
    /// The SHA-256 digest (hex), as its version's manifest has it.
    pub digest: String,
    /// Whether it acts only from its invocation tokens on (`alora_invocation_tokens`).
    pub activated: bool,
}

/// Reads the PEFT adapter in a directory.
///
/// # Errors
/// The files cannot be read, or are no adapter.
pub fn adapter_files(path: &Path) -> Result<AdapterFiles, RegistryError> {
    let role = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let adapter = Adapter::load(path).map_err(|source| RegistryError::Adapter { role, path: path.to_owned(), source: Box::new(source) })?;
    Ok(AdapterFiles { digest: adapter.digest, activated: adapter.config.alora_invocation_tokens.is_some() })
}

/// The digest of a valid adapter that belongs to the base.
pub(crate) fn digest(role: &str, path: &Path, base_sha256: &str) -> Result<String, RegistryError> {
    let adapter = Adapter::load(path).map_err(|source| RegistryError::Adapter {
        role: role.to_owned(),
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    match adapter.base_digest {
        Some(found) if found != base_sha256 => {
            Err(RegistryError::AdapterBase { role: role.to_owned(), path: path.to_owned(), expected: base_sha256.to_owned(), found })
        }
        _ => Ok(adapter.digest),
    }
}
