//! Which adapter version is in service, announced: the last announcement is kept, and those to come
//! are heard.
//!
//! The registry's directory is what decides; an announcement is a hint to look there at once, and a
//! record for whoever has no eye on the directory (`nats kv history AUTOACT_ADAPTERS current`). It
//! lies in a key-value bucket; agents listen to the subject of its one key.

use std::collections::BTreeMap;

use async_nats::jetstream::ContextBuilder;
use async_nats::jetstream::kv::{Config, Store};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::config::BusConfig;
use crate::connect::{REQUEST_TIMEOUT, connect_client};
use crate::error::BusError;
use crate::refusal::Refusals;
use crate::streams::ensure_bucket;
use crate::users::ANNOUNCEMENTS;

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
    refusals: Refusals,
}

/// Announcements as they are made: all that an agent needs of the bus for them. It listens to one
/// subject and asks for nothing, so that its NATS user may publish nothing. What was announced
/// before it began it does not hear, nor what is announced while the connection is down.
#[derive(Debug)]
pub struct AdapterNews {
    client: Client,
    messages: Subscriber,
    refusals: Refusals,
}

impl AdapterNews {
    /// Connects, trying for as long as the configuration says, and listens.
    ///
    /// # Errors
    /// Like [`crate::Bus::connect`].
    pub async fn connect(config: &BusConfig) -> Result<AdapterNews, BusError> {
        let deadline = Instant::now() + config.connect_limit;
        let (client, refusals) = connect_client(config, deadline).await?;
        let subscribed = client.subscribe(ANNOUNCEMENTS).await;
        let messages = subscribed.map_err(|error| BusError::unavailable("listen for adapter announcements", error))?;
        Ok(AdapterNews { client, messages, refusals })
    }

    /// The next announcement; `None` when the connection has ended for good.
    ///
    /// # Errors
    /// Something else was said; [`BusError::Forbidden`]: this user may not listen, and hears nothing.
    pub async fn next(&mut self) -> Option<Result<AdapterAnnouncement, BusError>> {
        loop {
            let message = tokio::select! {
                biased;
                message = self.messages.next() => message?,
                refused = self.refusals.any() => return Some(Err(refused)),
            };
            // what is removed from the bucket leaves a mark without content
            if !message.payload.is_empty() {
                return Some(decode(&message.payload));
            }
        }
    }

    /// Ends the connection.
    pub async fn close(self) {
        if let Err(error) = self.client.drain().await {
            tracing::debug!(%error, "the connection to NATS was gone already");
        }
    }
}

impl AdapterBoard {
    /// Connects, trying for as long as the configuration says, and makes the bucket when it is
    /// missing. Touches nothing else on the bus.
    pub async fn connect(config: &BusConfig) -> Result<AdapterBoard, BusError> {
        let deadline = Instant::now() + config.connect_limit;
        let (client, refusals) = connect_client(config, deadline).await?;
        let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        let store = refusals.guard(ensure_bucket(&context, bucket(config), deadline)).await?;
        Ok(AdapterBoard { client, store, refusals })
    }

    /// Says what is in service now; returns once the bus has stored it.
    pub async fn announce(&self, announcement: &AdapterAnnouncement) -> Result<(), BusError> {
        let unavailable = |source: async_nats::Error| BusError::Unavailable { what: "announce an adapter version", source };
        let text = serde_json::to_vec(announcement).map_err(|error| unavailable(error.into()))?;
        let stored = async { self.store.put(KEY, Bytes::from(text)).await.map_err(|error| unavailable(error.into())) };
        self.refusals.guard(stored).await.map(|_| ())
    }

    /// The last announcement.
    pub async fn last(&self) -> Result<Option<AdapterAnnouncement>, BusError> {
        let entry = self.store.get(KEY).await.map_err(|error| BusError::unavailable("read the adapter announcements", error))?;
        entry.map(|text| decode(&text)).transpose()
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
