//! Whether the artifacts that events name are there, with the bytes that were stored.

use std::collections::HashMap;

use async_nats::jetstream::object_store::{InfoErrorKind, ObjectInfo, ObjectStore};
use async_nats::jetstream::stream::Stream;
use autoact_trajectory::{Artifact, Digest, TaskKey, Tenant};
use sha2::{Digest as _, Sha256};

use crate::artifacts::stream_name;
use crate::audit::finding::Kind;
use crate::audit::read::READ;
use crate::connect::Bus;
use crate::error::BusError;
use crate::scan::Scan;

/// The stores of the tenants whose artifacts were looked at.
pub(super) struct Artifacts<'a> {
    bus: &'a Bus,
    /// `None`: the tenant has none.
    stores: HashMap<Tenant, Option<Store>>,
}

struct Store {
    objects: ObjectStore,
    stream: Stream,
}

impl<'a> Artifacts<'a> {
    pub(super) fn new(bus: &'a Bus) -> Artifacts<'a> {
        Artifacts { bus, stores: HashMap::new() }
    }

    /// What is wrong with an artifact of a task. Its parts are read one after another and not kept.
    pub(super) async fn look(&mut self, task: &TaskKey, artifact: &Artifact) -> Result<Option<(Kind, String)>, BusError> {
        let wrong = |kind, what: &str| Some((kind, format!("its artifact `{}` (`{}`) {what}", artifact.name, artifact.object)));
        let missing = || Ok(wrong(Kind::ArtifactMissing, "is not there"));
        if !self.stores.contains_key(&task.tenant) {
            let store = self.open(&task.tenant).await?;
            self.stores.insert(task.tenant.clone(), store);
        }
        let Some(Some(store)) = self.stores.get(&task.tenant) else { return missing() };
        let Some(info) = self.describe(store, &artifact.object).await? else { return missing() };
        let (bytes, digest) = self.read(store, &info).await?;
        if bytes != artifact.bytes {
            return Ok(wrong(Kind::ArtifactChanged, &format!("has {bytes} bytes of {}", artifact.bytes)));
        }
        if artifact.sha256.is_some_and(|sha256| sha256 != digest) {
            return Ok(wrong(Kind::ArtifactChanged, "has other bytes than were stored"));
        }
        Ok(None)
    }

    async fn open(&self, tenant: &Tenant) -> Result<Option<Store>, BusError> {
        let Some(objects) = self.bus.existing_store(tenant).await? else { return Ok(None) };
        let mut patience = self.bus.patience(READ);
        loop {
            match self.bus.context.get_stream(stream_name(tenant)).await {
                Ok(stream) => return Ok(Some(Store { objects, stream })),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    async fn describe(&self, store: &Store, object: &str) -> Result<Option<ObjectInfo>, BusError> {
        let mut patience = self.bus.patience(READ);
        loop {
            match store.objects.info(object).await {
                Ok(info) => return Ok((!info.deleted).then_some(info)),
                Err(error) if error.kind() == InfoErrorKind::NotFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// How many bytes an object has, and their SHA-256. Not by the store's own reader, which waits
    /// for parts that are not there.
    async fn read(&self, store: &Store, info: &ObjectInfo) -> Result<(u64, Digest), BusError> {
        let filter = format!("$O.{}.C.{}", info.bucket, info.nuid);
        let last = self.bus.state(&store.stream).await?.last_sequence;
        let mut parts = Scan::new(self.bus, &store.stream, filter, 0, last, READ);
        let (mut bytes, mut digest) = (0, Sha256::new());
        while let Some(part) = parts.next().await? {
            bytes += part.payload.len() as u64;
            digest.update(&part.payload);
        }
        Ok((bytes, Digest(digest.finalize().into())))
    }
}
