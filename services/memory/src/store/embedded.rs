//! The embedded store: one thread owns the index and works through a bounded queue of changes;
//! queries run beside it, on what is committed.
//!
//! The changes that have queued up share one commit, so that many callers share the wait for the
//! disk. Nobody is told "remembered" before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Semaphore, TryAcquireError, mpsc, oneshot, watch};

use super::index::Index;
use super::search::Search;
use super::{MemoryStore, OpenError, StoreError};
use crate::asked::{Filter, Query, Recalled};
use crate::remembered::{Key, Memory};
use crate::words::Words;

/// Changes that may wait, and queries that may wait or run. More than that is turned away: the
/// caller knows better than a long queue what to do.
const QUEUE: usize = 256;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

enum Command {
    Remember(Memory, Reply<()>),
    Erase(Vec<Key>, Reply<usize>),
    Close,
}

/// Memories in files of this machine.
pub struct EmbeddedStore {
    queue: mpsc::Sender<Command>,
    /// Closed when the owner thread has ended.
    ended: watch::Receiver<()>,
    search: Search,
    words: Arc<Words>,
    /// A permit for each query that waits or runs.
    queries: Arc<Semaphore>,
    /// A permit for each query that runs: as many as there are processors.
    running: Arc<Semaphore>,
}

impl std::fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedStore").field("closed", &self.queue.is_closed()).finish_non_exhaustive()
    }
}

impl EmbeddedStore {
    /// Opens or makes the store in a directory.
    pub async fn open(path: &Path) -> Result<EmbeddedStore, OpenError> {
        let (queue, commands) = mpsc::channel(QUEUE);
        let (opened, result) = oneshot::channel();
        let (alive, ended) = watch::channel(());
        let words = Arc::new(Words::new());
        let (directory, its_words) = (path.to_owned(), words.clone());
        std::thread::Builder::new()
            .name("memory-store".to_owned())
            .spawn(move || {
                own(directory, &its_words, opened, commands);
                drop(alive);
            })
            .map_err(|source| OpenError::Directory { path: path.to_owned(), source })?;
        let gone = |_| OpenError::Damaged { path: path.to_owned(), reason: "its owner ended while opening it".to_owned() };
        let search = result.await.map_err(gone)??;
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let (queries, running) = (Arc::new(Semaphore::new(QUEUE)), Arc::new(Semaphore::new(processors)));
        Ok(EmbeddedStore { queue, ended, search, words, queries, running })
    }

    /// Returns when the owner of the store has ended, by [`MemoryStore::close`] or because the
    /// engine failed.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.clone();
        // nothing is ever sent: the only change is that the sender goes
        async move { while ended.changed().await.is_ok() {} }
    }

    async fn change<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(command(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy { waiting: QUEUE },
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Reads what is committed, off the async threads.
    async fn read<T: Send + 'static>(&self, work: impl FnOnce(&Search) -> Result<T, StoreError> + Send + 'static) -> Result<T, StoreError> {
        self.check().await?;
        let waiting = self.queries.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => StoreError::Busy { waiting: QUEUE },
            TryAcquireError::Closed => StoreError::Closed,
        })?;
        let running = self.running.clone().acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let search = self.search.clone();
        // the permits go with the query: it runs on when its caller has gone away
        let found = tokio::task::spawn_blocking(move || {
            let found = work(&search);
            drop((running, waiting));
            found
        });
        found.await.map_err(|error| StoreError::Engine(format!("a query did not end: {error}")))?
    }
}

#[tonic::async_trait]
impl MemoryStore for EmbeddedStore {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn remember(&self, memory: Memory) -> Result<(), StoreError> {
        self.change(|reply| Command::Remember(memory, reply)).await
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recalled>, StoreError> {
        let words = self.words.clone();
        self.read(move |search| search.recall(&query, &words)).await
    }

    async fn get(&self, keys: Vec<Key>) -> Result<Vec<Memory>, StoreError> {
        self.read(move |search| search.get(&keys)).await
    }

    async fn scan(&self, filter: Filter) -> Result<Vec<Memory>, StoreError> {
        self.read(move |search| search.scan(&filter)).await
    }

    async fn erase(&self, keys: Vec<Key>) -> Result<usize, StoreError> {
        if keys.is_empty() {
            return Ok(0);
        }
        self.change(|reply| Command::Erase(keys, reply)).await
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
fn own(path: PathBuf, words: &Words, opened: oneshot::Sender<Result<Search, OpenError>>, mut commands: mpsc::Receiver<Command>) {
    let mut index = match Index::open(&path) {
        Ok(index) => index,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    // when nobody waits for the store any more, nobody has its queue either
    let _ = opened.send(Ok(index.search()));
    let mut batch = Vec::with_capacity(QUEUE);
    while commands.blocking_recv_many(&mut batch, QUEUE) > 0 {
        if !work(&mut index, words, batch.drain(..)) {
            break;
        }
    }
    index.close();
}

/// A change that is done but for the commit.
enum Changed {
    Remembered(Reply<()>),
    Erased(Reply<usize>, usize),
}

/// Works off what has queued up; false when the store is to end.
fn work(index: &mut Index, words: &Words, batch: impl Iterator<Item = Command>) -> bool {
    let mut changed = Vec::new();
    let mut go_on = true;
    // a caller that has gone away gets no answer: sends to it may fail
    for command in batch {
        match command {
            Command::Remember(memory, reply) => match index.remember(&memory, words) {
                Ok(()) => changed.push(Changed::Remembered(reply)),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Erase(keys, reply) => match erase(index, &keys) {
                Ok(0) => drop(reply.send(Ok(0))),
                Ok(count) => changed.push(Changed::Erased(reply, count)),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::Close => {
                go_on = false;
                break;
            }
        }
    }
    if changed.is_empty() {
        return go_on;
    }
    let erased = changed.iter().any(|change| matches!(change, Changed::Erased(..)));
    let mut committed = index.commit();
    if erased && committed.is_ok() {
        // a deleted memory's text is in the files until they are written again
        committed = index.purge();
    }
    for change in changed {
        match (change, committed.clone()) {
            (Changed::Remembered(reply), committed) => drop(reply.send(committed)),
            (Changed::Erased(reply, count), committed) => drop(reply.send(committed.map(|()| count))),
        }
    }
    if let Err(error) = committed {
        tracing::error!(%error, "the memory store cannot write; it ends");
        return false;
    }
    go_on
}

/// Removes memories but for the commit; how many there were.
fn erase(index: &mut Index, keys: &[Key]) -> Result<usize, StoreError> {
    let mut erased = 0;
    for key in keys {
        erased += usize::from(index.forget(key)?);
    }
    Ok(erased)
}
