//! A client's stream of a task's events: a read of its subject, and nothing else. A client that
//! hangs up drops the read; the task goes on, and a cancellation ends it.

use std::pin::Pin;

use autoact_access::{Principal, Role};
use autoact_trajectory::{Event, EventBody, TaskId};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::tasks::quota::Place;
use crate::tasks::{Application, TaskError, key};

/// What a watcher gets.
#[derive(Debug)]
pub(crate) enum Watched {
    /// A stored event.
    Event(Box<Event>),
    /// Words of an agent as it writes them, encoded as they came over the bus.
    Words(Bytes),
}

pub(crate) type WatchedStream = Pin<Box<dyn Stream<Item = Result<Watched, TaskError>> + Send>>;

impl Application {
    /// The events after a sequence, until the task ends or this gateway does; with the agents'
    /// words if they are wanted.
    pub(crate) async fn watch(&self, who: &Principal, id: &TaskId, after: u64, words: bool) -> Result<WatchedStream, TaskError> {
        who.require(Role::Ask)?;
        let last = self.bus.last(&key(who, id)).await?.ok_or_else(|| TaskError::NotFound(id.clone()))?;
        if matches!(last.body, EventBody::Finished(_)) && last.sequence <= after {
            return Ok(Box::pin(stream::empty()));
        }
        self.follow(who, id, after, words).await
    }

    /// The same for a task that is known to be there.
    pub(crate) async fn follow(&self, who: &Principal, id: &TaskId, after: u64, words: bool) -> Result<WatchedStream, TaskError> {
        let place = self.watcher(who)?;
        let key = key(who, id);
        let events = self.bus.read(&key, after);
        let words: Pin<Box<dyn Stream<Item = Bytes> + Send>> = match words {
            true => Box::pin(self.bus.words(&key).await?),
            false => Box::pin(stream::pending()),
        };
        let watch = Watch { events: Box::pin(events), words, task: id.clone(), after, leaving: self.leaving.clone(), _place: place };
        Ok(Box::pin(stream::unfold(Some(watch), |watch| async move { watch?.next().await })))
    }

    /// A place among those who watch: of all, and of the caller's tenant.
    pub(super) fn watcher(&self, who: &Principal) -> Result<Watching, TaskError> {
        let quota = self.quotas.watch(&who.tenant).map_err(|most| TaskError::WatcherQuota { most })?;
        let all = self.watchers.clone().try_acquire_owned().map_err(|_| TaskError::ManyWatchers { most: self.max_watchers })?;
        Ok(Watching { _all: all, _quota: quota })
    }
}

/// A place among those who watch; given back when dropped.
pub(super) struct Watching {
    _all: OwnedSemaphorePermit,
    _quota: Place,
}

struct Watch {
    events: Pin<Box<dyn Stream<Item = Result<Event, autoact_bus::BusError>> + Send>>,
    words: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    task: TaskId,
    after: u64,
    leaving: CancellationToken,
    /// Its place among those who watch.
    _place: Watching,
}

impl Watch {
    async fn next(mut self) -> Option<(Result<Watched, TaskError>, Option<Watch>)> {
        let event = tokio::select! {
            biased;
            event = self.events.next() => event?,
            Some(words) = self.words.next() => return Some((Ok(Watched::Words(words)), Some(self))),
            () = self.leaving.cancelled() => return Some((Err(TaskError::Leaving { task: self.task, after: self.after }), None)),
        };
        match event {
            Ok(event) => {
                self.after = event.sequence;
                Some((Ok(Watched::Event(Box::new(event))), Some(self)))
            }
            Err(error) => Some((Err(error.into()), None)),
        }
    }
}
