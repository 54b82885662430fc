//! Which adapter version is in service, announced: the last announcement and those to come.
//!
//! The registry's directory is what decides; an announcement is a hint to look there at once, and a
//! record for whoever has no eye on the directory (`nats kv history AUTOACT_ADAPTERS current`). It
//! lies in a key-value bucket, so that a late listener hears the last one.

use std::collections::BTreeMap;

use async_nats::Client;
use async_nats::jetstream::ContextBuilder;
use async_nats::jetstream::kv::{Config, Operation, Store};
use bytes::Bytes;
use futures::{Stream, StreamExt, future};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::config::BusConfig;
use crate::connect::{REQUEST_TIMEOUT, connect_client};
use crate::error::BusError;
use crate::streams::ensure_bucket;

const BUCKET: &str = "AUTOACT_ADAPTERS";
const KEY: &str = "current";
/// Announcements kept: years of them.
const HISTORY: i64 = 64;
/// For [`HISTORY`] announcements of a kilobyte.
const MAX_BYTES: i64 = 1 << 20;

/// A change of what is in service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterAnnouncement {
    /// The registry's count of changes.
    pub revision: u64,
    /// The version in service; none: the adapters the agents were started with.
    pub version: Option<String>,
    /// sha256 of the base it belongs to.
    #[serde(default)]
    pub base_sha256: String,
    /// sha256 of each agent's adapter, as replies name it.
    #[serde(default)]
    pub adapters: BTreeMap<String, String>,
}

/// The bucket of announcements.
#[derive(Debug, Clone)]
pub struct AdapterBoard {
    client: Client,
    store: Store,
}

impl AdapterBoard {
    /// Connects, trying for as long as the configuration says, and makes the bucket when it is
    /// missing. Touches nothing else on the bus.
    pub async fn connect(config: &BusConfig) -> Result<AdapterBoard, BusError> {
        let deadline = Instant::now() + config.connect_limit;
        let client = connect_client(config, deadline).await?;
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        let store = ensure_bucket(&context, bucket(config), deadline).await?;
        Ok(AdapterBoard { client, store })
    }

    /// Says what is in service now; returns once the bus has stored it.
    pub async fn announce(&self, announcement: &AdapterAnnouncement) -> Result<(), BusError> {
        let unavailable = |source: async_nats::Error| BusError::Unavailable { what: "announce an adapter version", source };
        let text = serde_json::to_vec(announcement).map_err(|error| unavailable(error.into()))?;
        self.store.put(KEY, Bytes::from(text)).await.map_err(|error| unavailable(error.into()))?;
        Ok(())
    }

    /// The last announcement.
    pub async fn last(&self) -> Result<Option<AdapterAnnouncement>, BusError> {
        let entry = self.store.get(KEY).await.map_err(|error| BusError::unavailable("read the adapter announcements", error))?;
        entry.map(|text| decode(&text)).transpose()
    }

    /// The last announcement and those to come; an error is the last item.
    pub async fn follow(&self) -> Result<impl Stream<Item = Result<AdapterAnnouncement, BusError>> + Send + Unpin + 'static, BusError> {
        const WHAT: &str = "listen for adapter announcements";
        let watch = self.store.watch_with_history(KEY).await.map_err(|error| BusError::unavailable(WHAT, error))?;
        let announcements = watch.filter_map(|entry| {
            future::ready(match entry {
                Ok(entry) if entry.operation == Operation::Put => Some(decode(&entry.value)),
                Ok(_) => None,
                Err(error) => Some(Err(BusError::unavailable(WHAT, error))),
            })
        });
        Ok(announcements)
    }

    /// Sends what is still buffered and ends the connection.
    pub async fn close(&self) {
        if let Err(error) = self.client.drain().await {
            tracing::debug!(%error, "the connection to NATS was gone already");
        }
    }
}

fn decode(text: &[u8]) -> Result<AdapterAnnouncement, BusError> {
    serde_json::from_slice(text).map_err(|source| BusError::UnreadableAnnouncement { bucket: BUCKET, source })
}

fn bucket(config: &BusConfig) -> Config {
    Config {
        bucket: BUCKET.to_owned(),
        description: "which adapter version is in service".to_owned(),
        history: HISTORY,
        max_bytes: MAX_BYTES,
        num_replicas: config.replicas,
        ..Config::default()
    }
}
