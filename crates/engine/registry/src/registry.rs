//! The registry and its versions.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::{self, Lock, io};
use crate::{Manifest, RegistryError, VersionId};

const VERSIONS: &str = "versions";
const MANIFEST: &str = "manifest.json";
const LOCK: &str = ".lock";

/// A directory of versions.
#[derive(Debug, Clone)]
pub struct Registry {
    root: PathBuf,
}

/// A published version.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its content and origin.
    pub manifest: Manifest,
    /// Its directory.
    pub dir: PathBuf,
}

/// The published versions.
#[derive(Debug, Default)]
pub struct Listing {
    /// Oldest first.
    pub versions: Vec<Version>,
    /// The errors of invalid version directories.
    pub broken: Vec<RegistryError>,
}

impl Version {
    /// Its id.
    pub fn id(&self) -> &VersionId {
        &self.manifest.id
    }

    /// The directory of an agent's adapter.
    pub fn adapter(&self, role: &str) -> PathBuf {
        self.dir.join(role)
    }

    /// The name of an agent's adapter in replies and trajectories: `plan@atlas-3fa9c1d2e0`.
    pub fn adapter_name(&self, role: &str) -> String {
        format!("{role}@{}", self.manifest.id)
    }
}

impl Registry {
    /// The registry in `root`. A directory that is not there yet is an empty registry; it is made
    /// when something is published.
    pub fn open(root: impl Into<PathBuf>) -> Result<Registry, RegistryError> {
        let root = root.into();
        match fs::metadata(&root) {
            Ok(found) if !found.is_dir() => Err(RegistryError::NotADirectory { path: root }),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io("open", &root)(error)),
            _ => Ok(Registry { root }),
        }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything that is published.
    pub fn list(&self) -> Result<Listing, RegistryError> {
        let mut listing = Listing::default();
        for id in self.ids()? {
            match self.get(&id) {
                Ok(version) => listing.versions.push(version),
                Err(error) => listing.broken.push(error),
            }
        }
        listing.versions.sort_by(|a, b| (&a.manifest.created, a.id()).cmp(&(&b.manifest.created, b.id())));
        Ok(listing)
    }

    /// One version.
    pub fn get(&self, id: &VersionId) -> Result<Version, RegistryError> {
        let dir = self.versions_dir().join(id.as_str());
        let path = dir.join(MANIFEST);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !dir.is_dir() => {
                let known = self.ids()?.into_iter().map(String::from).collect();
                return Err(RegistryError::UnknownVersion { id: id.clone(), root: self.root.clone(), known });
            }
            Err(error) => return Err(io("read", &path)(error)),
        };
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|source| RegistryError::Manifest { path: path.clone(), source })?;
        if manifest.id != *id {
            return Err(RegistryError::Misplaced { path, found: manifest.id });
        }
        Ok(Version { manifest, dir })
    }

    /// The names of the published versions, sorted. A version that is being published has a name
    /// that is not an id.
    fn ids(&self) -> Result<Vec<VersionId>, RegistryError> {
        let dir = self.versions_dir();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("list", &dir)(error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io("list", &dir))?;
            if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok())
                && entry.path().is_dir()
            {
                ids.push(id);
            }
        }
        ids.sort();
        Ok(ids)
    }

    pub(crate) fn versions_dir(&self) -> PathBuf {
        self.root.join(VERSIONS)
    }

    pub(crate) fn manifest_in(dir: &Path) -> PathBuf {
        dir.join(MANIFEST)
    }

    /// Makes the directories and keeps other writers out.
    pub(crate) fn lock(&self) -> Result<Lock, RegistryError> {
        disk::create_dir(&self.versions_dir())?;
        Lock::take(&self.root.join(LOCK))
    }
}

/// Now, to the second, as RFC 3339 in UTC.
pub(crate) fn now() -> String {
    let mut now = prost_types::Timestamp::from(std::time::SystemTime::now());
    now.nanos = 0;
    now.to_string()
}
