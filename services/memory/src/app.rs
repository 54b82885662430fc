//! The service as a process: opens its store, serves, and closes the store last.

use std::sync::Arc;
use std::time::Duration;

use autoact_service::{Condition, Flag, Service, Setup, StartError};

use crate::config::{MemoryConfig, StoreKind};
use crate::documents;
use crate::door::Door;
use crate::encode::Encoder;
use crate::memories::{Memories, TimeToLive};
use crate::rpc::service;
use crate::server::QdrantServer;
use crate::store::{EmbeddedStore, MemoryStore, QdrantStore, StoreError};

/// The first pause after Qdrant was not there.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest one: how late we may notice that it is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a Qdrant that was there is asked whether it still is.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Expired memories are removed this often, if they are kept for at least twice as long.
const LONGEST_PURGE_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Removing reads all memories: not more often than this.
const SHORTEST_PURGE_PAUSE: Duration = Duration::from_secs(1);

/// The memory service.
#[derive(Debug)]
pub struct MemoryApp;

impl Service for MemoryApp {
    type Config = MemoryConfig;

    const ABOUT: &'static str = "Remembers finished tasks and conversations, and recalls what is like a question; keeps users' documents.";

    fn flags() -> Vec<Flag> {
        vec![
            Flag { name: "store", key: "store", value: "STORE", help: "embedded (files in the data directory) or qdrant" },
            Flag { name: "data-dir", key: "data_dir", value: "DIR", help: "Where the embedded store keeps its files" },
            Flag {
                name: "documents-store",
                key: "documents_store",
                value: "STORE",
                help: "Where users' documents are: embedded or qdrant",
            },
            Flag { name: "documents-dir", key: "documents_dir", value: "DIR", help: "Where embedded documents are kept; empty: nowhere" },
            Flag { name: "qdrant-url", key: "qdrant.url", value: "URL", help: "The Qdrant server's gRPC address" },
        ]
    }

    async fn build(config: MemoryConfig, setup: &mut Setup) -> Result<(), StartError> {
        let door = Door::open(&config, setup).await?;
        let store: Arc<dyn MemoryStore> = match config.store {
            StoreKind::Embedded => {
                let opened = EmbeddedStore::open(&config.data_dir).await;
                let store = Arc::new(opened.map_err(|error| {
                    let fix = error.fix();
                    StartError::new(error).fix(fix)
                })?);
                tracing::info!(data_dir = %config.data_dir.display(), "the embedded store is open");
                let ended = store.ended();
                setup.tasks().spawn_critical("memory store", async move {
                    ended.await;
                    Err::<(), _>(StoreError::Closed)
                });
                store
            }
            StoreKind::Qdrant => {
                let store = Arc::new(QdrantStore::new(&config.qdrant, Encoder::new(None)).map_err(StartError::new)?);
                setup.tasks().spawn("qdrant", keep(Remote::Memories(store.clone()), setup.condition("qdrant")));
                store
            }
        };
        let memories = Memories::new(store.clone(), config.time_to_live());
        setup.tasks().spawn("expired memories", purge(memories.clone(), config.time_to_live()));
        setup.serve(door.before(service(memories)));
        if config.documents_store == StoreKind::Qdrant && config.store != StoreKind::Qdrant {
            let server = QdrantServer::new(&config.qdrant).map_err(StartError::new)?;
            setup.tasks().spawn("qdrant", keep(Remote::Documents(server), setup.condition("qdrant")));
        }
        let documents = documents::open(&config, setup).await?;
        setup.serve(door.before(documents));
        setup.tasks().spawn_until_stopped("close the store", |stopping| async move {
            stopping.cancelled().await;
            store.close().await;
        });
        Ok(())
    }
}

/// Removes again and again what has expired. Nobody is told of it before that either.
async fn purge(memories: Memories, ttl: TimeToLive) {
    let shortest = [ttl.task, ttl.turn].into_iter().flatten().min().unwrap_or(LONGEST_PURGE_PAUSE);
    let mut ticks = tokio::time::interval((shortest / 2).clamp(SHORTEST_PURGE_PAUSE, LONGEST_PURGE_PAUSE));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // not at the start: readers come first then
    ticks.tick().await;
    loop {
        ticks.tick().await;
        match memories.purge().await {
            Ok(0) => {}
            Ok(count) => {
                metrics::counter!("autoact_memories_expired_total").increment(count as u64);
                tracing::info!(count, "memories have expired and are removed");
            }
            Err(error) => tracing::warn!(%error, "expired memories were not removed; trying again later"),
        }
    }
}

/// What needs the server.
enum Remote {
    /// Its collection is made as soon as the server is there.
    Memories(Arc<QdrantStore>),
    /// Their collections are made when files are stored.
    Documents(QdrantServer),
}

impl Remote {
    async fn prepare(&self) -> Result<(), StoreError> {
        match self {
            Remote::Memories(store) => store.prepare().await,
            Remote::Documents(server) => server.check().await,
        }
    }

    async fn check(&self) -> Result<(), StoreError> {
        match self {
            Remote::Memories(store) => store.check().await,
            Remote::Documents(server) => server.check().await,
        }
    }
}

/// Says whether Qdrant is there, and makes the collection of memories as soon as it is.
async fn keep(remote: Remote, condition: Condition) {
    loop {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = remote.prepare().await {
            tracing::warn!(%error, retry_in = ?pause, "Qdrant is not there");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        tracing::info!("Qdrant is there");
        condition.set(true);
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            if let Err(error) = remote.check().await {
                tracing::warn!(%error, "Qdrant is gone");
                break;
            }
        }
        condition.set(false);
    }
}
