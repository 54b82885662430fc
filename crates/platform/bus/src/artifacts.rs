//! Artifacts: what tools return for people. An object store for each tenant, made when its first
//! artifact comes.
//!
//! An object's name is the task and the SHA-256 of its bytes. So a call that is repeated, by
//! whichever gateway, stores the same object once, and what belongs to a task can be told by its
//! name. Objects are stored before the event that refers to them and live longer: they have the
//! trajectories' age and a day. A full store refuses; nothing that an event refers to makes room.

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::object_store::{Config, GetErrorKind, InfoErrorKind, ObjectStore};
use async_nats::jetstream::{ErrorCode, stream};
use autoact_trajectory::{Artifact, NewArtifact, TaskKey, Tenant};
use autoact_wire::store::digest;
use tokio::io::AsyncReadExt;

use crate::connect::Bus;
use crate::error::BusError;

/// Objects outlive the events that refer to them by this long.
const MARGIN: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);
/// What an object takes beyond its bytes, about: its description and the headers of its parts.
const OVERHEAD: usize = 16 * 1024;

const STORE: &str = "store an artifact";
const READ: &str = "read an artifact";

fn bucket_name(tenant: &Tenant) -> String {
    format!("AUTOACT_ARTIFACTS_{tenant}")
}

/// The stream in which a tenant's artifacts lie.
pub(crate) fn stream_name(tenant: &Tenant) -> String {
    format!("OBJ_{}", bucket_name(tenant))
}

/// Whose artifacts a stream holds; `None` for other streams.
pub(crate) fn tenant_of_stream(name: &str) -> Option<Tenant> {
    name.strip_prefix("OBJ_AUTOACT_ARTIFACTS_")?.parse().ok()
}

impl Bus {
    /// Stores a task's artifact, once however often it is called, and returns the reference to it.
    ///
    /// # Errors
    /// [`BusError::Full`] if there is no room; [`BusError::Unavailable`] if the bus does not answer
    /// for as long as it is waited for.
    pub async fn keep_artifact(&self, task: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, BusError> {
        let sha256 = digest(&artifact.data);
        let object = format!("{}/{sha256}", task.id);
        self.put_artifact(&task.tenant, &object, &artifact.data).await?;
        let NewArtifact { kind, media_type, name, text, data } = artifact.clone();
        Ok(Artifact { kind, media_type, name, object, bytes: data.len() as u64, sha256: Some(sha256), text })
    }

    /// Stores the bytes of an artifact under its name.
    pub(crate) async fn put_artifact(&self, tenant: &Tenant, object: &str, data: &[u8]) -> Result<(), BusError> {
        let mut patience = self.patience(STORE);
        while let Err(error) = self.put(tenant, object, data).await {
            match error {
                Refused::Final(error) => return Err(error),
                Refused::Transient(source) => {
                    // the server may have lost its disk, and the store with it
                    self.stores.lock().await.remove(tenant);
                    patience.after(source).await?;
                }
            }
        }
        Ok(())
    }

    async fn put(&self, tenant: &Tenant, object: &str, mut data: &[u8]) -> Result<(), Refused> {
        let store = self.store_of(tenant).await?;
        match store.info(object).await {
            // its name says what it is; one whose storing was interrupted has no description
            Ok(info) if !info.deleted && info.size == data.len() => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == InfoErrorKind::NotFound => {}
            Err(error) => return Err(Refused::Transient(error.into())),
        }
        // looked at before, so that a store that is nearly full is not filled with halves of
        // objects
        let stream = self.context.get_stream(stream_name(tenant)).await.map_err(|error| Refused::Transient(error.into()))?;
        let stream::Info { config, state, .. } = stream.cached_info();
        let needed = state.bytes.saturating_add((data.len() + OVERHEAD) as u64);
        if u64::try_from(config.max_bytes).is_ok_and(|most| most > 0 && needed > most) {
            let source = format!("it holds {} of {} bytes", state.bytes, config.max_bytes).into();
            return Err(Refused::Final(BusError::Full { what: STORE, source }));
        }
        store.put(object, &mut data).await.map(|_| ()).map_err(|error| Refused::Transient(error.into()))
    }

    /// The bytes of a task's artifact.
    ///
    /// # Errors
    /// [`BusError::MissingArtifact`] if they have expired or were deleted.
    pub async fn artifact(&self, task: &TaskKey, artifact: &Artifact) -> Result<Vec<u8>, BusError> {
        let missing = || BusError::MissingArtifact { task: task.clone(), name: artifact.name.clone() };
        let mut patience = self.patience(READ);
        loop {
            match tokio::time::timeout(self.config.patience, self.fetch(&task.tenant, &artifact.object)).await {
                Ok(Ok(Some(data))) if artifact.sha256.is_none_or(|sha256| digest(&data) == sha256) => return Ok(data),
                Ok(Ok(_)) => return Err(missing()),
                Ok(Err(error)) => patience.after(error).await?,
                Err(elapsed) => patience.after(elapsed).await?,
            }
        }
    }

    async fn fetch(&self, tenant: &Tenant, object: &str) -> Result<Option<Vec<u8>>, async_nats::Error> {
        let Some(store) = self.find_store(tenant).await? else { return Ok(None) };
        let mut found = match store.get(object).await {
            Ok(found) => found,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut data = Vec::with_capacity(found.info().size);
        found.read_to_end(&mut data).await?;
        Ok(Some(data))
    }

    async fn find_store(&self, tenant: &Tenant) -> Result<Option<ObjectStore>, async_nats::Error> {
        match self.context.get_object_store(bucket_name(tenant)).await {
            Ok(store) => Ok(Some(store)),
            Err(error) if not_there(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The tenant's store, if it has one.
    pub(crate) async fn existing_store(&self, tenant: &Tenant) -> Result<Option<ObjectStore>, BusError> {
        let mut patience = self.patience(READ);
        loop {
            match self.find_store(tenant).await {
                Ok(store) => return Ok(store),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The tenant's store, made if it is missing.
    async fn store_of(&self, tenant: &Tenant) -> Result<ObjectStore, Refused> {
        let mut stores = self.stores.lock().await;
        if let Some(store) = stores.get(tenant) {
            return Ok(store.clone());
        }
        let bucket = bucket_name(tenant);
        let store = match self.context.get_object_store(&bucket).await {
            Ok(store) => store,
            Err(error) if not_there(&error) => {
                let wanted = Config {
                    bucket: bucket.clone(),
                    description: Some("what tools returned for people, by task and SHA-256".to_owned()),
                    max_age: self.config.max_age.saturating_add(MARGIN),
                    max_bytes: self.config.max_artifact_bytes,
                    num_replicas: self.config.replicas,
                    ..Config::default()
                };
                self.context.create_object_store(wanted).await.map_err(|error| Refused::Transient(error.into()))?
            }
            Err(error) => return Err(Refused::Transient(error.into())),
        };
        stores.insert(tenant.clone(), store.clone());
        Ok(store)
    }
}

/// Why an object was not stored.
enum Refused {
    Final(BusError),
    Transient(async_nats::Error),
}

/// There is no such store yet.
fn not_there(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<async_nats::jetstream::context::GetStreamError>() {
            return matches!(error.kind(), GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NOT_FOUND);
        }
        cause = error.source();
    }
    false
}
