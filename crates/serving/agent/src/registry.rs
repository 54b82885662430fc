//! The adapter registry as an agent sees it: which voice its current version is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_model::{AdapterVersion, LoadError};
use autoact_registry::{Pointer, Registry, RegistryError, VersionId};
use autoact_trajectory::Role;

use crate::config::without_adapter;
use crate::voice::{Adapters, Voice};

/// Why a version is not taken into service.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The registry cannot be read, or the version does not verify.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The adapter cannot be loaded.
    #[error("cannot load the adapter `{name}`")]
    Load {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Box<LoadError>,
    },
    /// The server does not load the adapter.
    #[error("the server does not load the adapter `{name}` from `{path}`: {reason}")]
    Server {
        /// Its name.
        name: String,
        /// Its directory, as the server sees it.
        path: String,
        /// The server's answer.
        reason: String,
    },
    /// The adapter is activated, and the server would apply it to all tokens, without an error.
    #[error(
        "the adapter `{name}` in `{}` is activated (`alora_invocation_tokens`), and no server that loads adapters on request is known \
         to apply such ones; fix: promote one that always acts (`autoact model train --plain`, or `activated = false` in a task)",
        path.display()
    )]
    Activated {
        /// Its name.
        name: String,
        /// Its directory.
        path: PathBuf,
    },
    /// What its judgements are worth cannot be read.
    #[error("cannot use the calibration `{}`: {reason}; fix: write it anew with `autoact eval --calibrate`, or remove it", path.display())]
    Calibration {
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The registry held a version and holds none now, which no rollback does.
    #[error("`{}` has lost its `current.json`; fix: mount the registry again, or promote a version", root.display())]
    Lost {
        /// The registry.
        root: PathBuf,
    },
    /// Loading broke off.
    #[error("loading an adapter broke: {0}")]
    Broke(String),
    /// The model does not complete a token with the adapter.
    #[error("the model does not work with the adapter `{name}`: {reason}")]
    Mute {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What the registry has in service, as far as switching is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) revision: u64,
    pub(crate) version: Option<VersionId>,
}

impl From<Pointer> for Wanted {
    fn from(pointer: Pointer) -> Wanted {
        Wanted { revision: pointer.revision, version: pointer.current().cloned() }
    }
}

/// A registry, the role whose adapters are taken from it, and what they are loaded into.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) role: Role,
    pub(crate) registry: Registry,
    pub(crate) adapters: Arc<Adapters>,
    /// What speaks when nothing is promoted.
    pub(crate) configured: Configured,
}

/// What speaks without a registry.
#[derive(Debug, Clone)]
pub(crate) enum Configured {
    /// The adapter in a directory; empty: the base.
    Dir(PathBuf),
    /// A server's adapter of this name; `None`: the base.
    Served(Option<String>),
}

impl Source {
    pub(crate) fn wanted(&self) -> Result<Wanted, Refusal> {
        Ok(self.registry.pointer()?.into())
    }

    /// The voice that is wanted, loaded beside the one that speaks. Blocks while files are read.
    pub(crate) fn voice(&self, wanted: &Wanted) -> Result<(Voice, Option<AdapterVersion>), Refusal> {
        let Some(id) = &wanted.version else { return configured(&self.adapters, self.role, &self.configured) };
        let version = self.registry.get(id)?;
        if let Some(base) = self.adapters.host().base_digest() {
            version.check_base(base)?;
        }
        let (role, name) = (self.role.as_str(), version.adapter_name(self.role.as_str()));
        version.record(role)?;
        let (voice, adapter) = self.adapters.voice(&name, &version.adapter(role))?;
        // of the bytes that were loaded: a file that changes after a check of its own would not be
        // seen
        version.check_adapter(role, &adapter.digest)?;
        version.check_calibration(role, voice.calibration_digest.as_deref())?;
        Ok((voice, Some(adapter)))
    }
}

/// The voice of the settings.
pub(crate) fn configured(
    adapters: &Arc<Adapters>,
    role: Role,
    configured: &Configured,
) -> Result<(Voice, Option<AdapterVersion>), Refusal> {
    let path: &Path = match configured {
        Configured::Dir(path) if !without_adapter(path) => path,
        Configured::Dir(_) => return Ok((Voice::fixed(None), None)),
        Configured::Served(name) => {
            // a server reports an adapter's name, but no digest
            let version = name.clone().map(|name| AdapterVersion { name, digest: String::new() });
            return Ok((Voice::fixed(name.clone()), version));
        }
    };
    // `models/stem/adapters/plan` is known as `plan`
    let name = path.file_name().map_or_else(|| role.as_str().to_owned(), |name| name.to_string_lossy().into_owned());
    let (voice, version) = adapters.voice(&name, path)?;
    Ok((voice, Some(version)))
}
