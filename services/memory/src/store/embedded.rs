//! The embedded store: one thread owns the shard and works through a bounded queue.
//!
//! What has queued up is worked off together with one flush at its end, so that many callers share the wait for the disk; nobody is
//! told "remembered" before it.

use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot, watch};

use super::edge::Shard;
use super::{MemoryStore, OpenError, StoreError};
use crate::encode::Encoder;
use crate::remembered::{Kind, Memory, Query, Recalled};

/// Calls that may wait. More than that is turned away: the caller knows better than a long queue what to do.
const QUEUE: usize = 256;
/// Calls that share one flush at most.
const BATCH: usize = 64;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

enum Command {
    Remember(Memory, Reply<()>),
    Recall(Query, Reply<Vec<Recalled>>),
    Forget(Kind, String, Reply<bool>),
    Close,
}

/// Memories in files of this machine, in a Qdrant shard of this process.
#[derive(Debug)]
pub struct EmbeddedStore {
    queue: mpsc::Sender<Command>,
    /// Closed when the owner thread has ended.
    ended: watch::Receiver<()>,
}

impl EmbeddedStore {
    /// Opens or makes the store in a directory.
    pub async fn open(path: &Path, encoder: Encoder) -> Result<EmbeddedStore, OpenError> {
        let (queue, commands) = mpsc::channel(QUEUE);
        let (opened, result) = oneshot::channel();
        let (alive, ended) = watch::channel(());
        let directory = path.to_owned();
        std::thread::Builder::new()
            .name("memory-store".to_owned())
            .spawn(move || {
                own(directory, encoder, opened, commands);
                drop(alive);
            })
            .map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
        let gone = |_| OpenError::Damaged { path: path.to_owned(), reason: "its owner ended while opening it".to_owned() };
        result.await.map_err(gone)??;
        Ok(EmbeddedStore { queue, ended })
    }

    /// Returns when the owner of the store has ended, by [`MemoryStore::close`] or because the engine failed.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.clone();
        // nothing is ever sent: the only change is that the sender goes
        async move { while ended.changed().await.is_ok() {} }
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(command(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy { waiting: QUEUE },
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

#[tonic::async_trait]
impl MemoryStore for EmbeddedStore {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn remember(&self, memory: Memory) -> Result<(), StoreError> {
        self.ask(|reply| Command::Remember(memory, reply)).await
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recalled>, StoreError> {
        self.ask(|reply| Command::Recall(query, reply)).await
    }

    async fn forget(&self, kind: Kind, id: String) -> Result<bool, StoreError> {
        self.ask(|reply| Command::Forget(kind, id, reply)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        if self.queue.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }

    async fn close(&self) {
        if self.queue.send(Command::Close).await.is_ok() {
            self.ended().await;
        }
    }
}

/// The owner thread.
fn own(path: PathBuf, encoder: Encoder, opened: oneshot::Sender<Result<(), OpenError>>, mut commands: mpsc::Receiver<Command>) {
    let shard = match Shard::open(&path, encoder) {
        Ok(shard) => shard,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    if opened.send(Ok(())).is_err() {
        return; // nobody waits for the store any more
    }
    let mut batch = Vec::with_capacity(BATCH);
    while commands.blocking_recv_many(&mut batch, BATCH) > 0 {
        if !work(&shard, batch.drain(..)) {
            return;
        }
    }
}

/// A change that is done but for the flush.
enum Changed {
    Remembered(Reply<()>),
    Forgotten(Reply<bool>),
}

/// Works off what has queued up; false when the store is to end.
fn work(shard: &Shard, batch: impl Iterator<Item = Command>) -> bool {
    let mut changed = Vec::new();
    let mut go_on = true;
    // a caller that has gone away gets no answer: sends to it may fail
    for command in batch {
        match command {
            Command::Remember(memory, reply) => match shard.remember(&memory) {
                Ok(()) => changed.push(Changed::Remembered(reply)),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Forget(kind, id, reply) => match shard.forget(kind, &id) {
                Ok(true) => changed.push(Changed::Forgotten(reply)),
                Ok(false) => drop(reply.send(Ok(false))),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Recall(_, reply) if reply.is_closed() => {}
            Command::Recall(query, reply) => drop(reply.send(shard.recall(&query))),
            Command::Close => {
                go_on = false;
                break;
            }
        }
    }
    if changed.is_empty() {
        return go_on;
    }
    let flushed = shard.flush();
    for change in changed {
        match (change, flushed.clone()) {
            (Changed::Remembered(reply), flushed) => drop(reply.send(flushed)),
            (Changed::Forgotten(reply), flushed) => drop(reply.send(flushed.map(|()| true))),
        }
    }
    if let Err(error) = flushed {
        tracing::error!(%error, "the memory store cannot write; it ends");
        return false;
    }
    go_on
}
