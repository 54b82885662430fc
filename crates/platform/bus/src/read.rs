//! Reading: a task's events so far, and the same followed by those to come.

use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind};
use async_nats::{Message, Subscriber, header};
use autoact_trajectory::{Event, EventBody, TaskKey};
use autoact_wire::store;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use crate::connect::Bus;
use crate::error::BusError;
use crate::subjects::{events_subject, trajectory_subject};

/// For [`BusError::Unavailable`].
const READ: &str = "read a trajectory";
/// A watcher looks this often whether it missed something.
const RECHECK: Duration = Duration::from_secs(2);

impl Bus {
    /// The last event of a task as the leader knows it: what was appended before is seen. `None`
    /// for a task that is not there. If it is the first one, it comes without the task's tools.
    pub async fn last(&self, task: &TaskKey) -> Result<Option<Event>, BusError> {
        match self.last_stored(task).await? {
            Some((sequence, payload)) => decode_head(task, sequence, &payload).map(Some),
            None => Ok(None),
        }
    }

    /// All events of a task so far, in order. Empty for a task that is not there.
    pub async fn load(&self, task: &TaskKey) -> Result<Vec<Event>, BusError> {
        let Some((sequence, payload)) = self.last_stored(task).await? else { return Ok(Vec::new()) };
        let last = self.decode(task, sequence, &payload).await?;
        let mut events = Vec::with_capacity(usize::try_from(last.index).unwrap_or(0).min(1024));
        // the index says how many there are: the last one is here already
        while events.len() as u64 + 1 < last.index {
            let after = events.last().map_or(0, |event: &Event| event.sequence);
            let next = match self.next(task, after).await? {
                Some(event) => event,
                // a replica that lags behind; the leader has it
                None => match self.next_at_leader(task, after).await? {
                    Some(event) => event,
                    None => break,
                },
            };
            if next.sequence >= last.sequence {
                break;
            }
            events.push(next);
        }
        events.push(last);
        Ok(events)
    }

    /// The events of a task after a sequence: those stored, then those to come, until the task
    /// ends. Survives restarts of the server; an error is the last item.
    pub fn read(&self, task: &TaskKey, after: u64) -> impl Stream<Item = Result<Event, BusError>> + Send + 'static {
        let reader = Reader { bus: self.clone(), task: task.clone(), after, live: None, behind: true, ended: false };
        stream::unfold(reader, |mut reader| async move { reader.next().await.map(|item| (item, reader)) })
    }

    /// The first event of a task after a sequence, from any replica.
    pub(crate) async fn next(&self, task: &TaskKey, after: u64) -> Result<Option<Event>, BusError> {
        let subject = trajectory_subject(task);
        let mut patience = self.patience(READ);
        loop {
            match self.streams.trajectories.direct_get_next_for_subject(&subject, Some(after + 1)).await {
                Ok(message) => return self.decode(task, message.sequence, &message.payload).await.map(Some),
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The first message of a task after a sequence, from the leader, as it is stored.
    pub(crate) async fn next_stored(&self, task: &TaskKey, after: u64) -> Result<Option<StreamMessage>, BusError> {
        let subject = trajectory_subject(task);
        let mut patience = self.patience(READ);
        loop {
            match self.streams.trajectories.get_first_raw_message_by_subject(&subject, after + 1).await {
                Ok(message) => return Ok(Some(message)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    async fn next_at_leader(&self, task: &TaskKey, after: u64) -> Result<Option<Event>, BusError> {
        match self.next_stored(task, after).await? {
            Some(message) => self.decode(task, message.sequence, &message.payload).await.map(Some),
            None => Ok(None),
        }
    }

    async fn subscribe_to(&self, task: &TaskKey) -> Result<Subscriber, BusError> {
        let mut patience = self.patience("watch a task");
        loop {
            match self.client.subscribe(events_subject(task)).await {
                Ok(subscriber) => return Ok(subscriber),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// Sequence and bytes of a task's last event, from the leader.
    pub(crate) async fn last_stored(&self, task: &TaskKey) -> Result<Option<(u64, Bytes)>, BusError> {
        let subject = trajectory_subject(task);
        let mut patience = self.patience(READ);
        loop {
            match self.streams.trajectories.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => return Ok(Some((message.sequence, message.payload))),
                // no task of a stream that was made anew is there
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return self.known_streams().map(|()| None),
                Err(error) => patience.after(error).await?,
            }
        }
    }
}

/// A stored event without its tools.
pub(crate) fn head(task: &TaskKey, message: &StreamMessage) -> Result<Event, BusError> {
    decode_head(task, message.sequence, &message.payload)
}

fn decode_head(task: &TaskKey, sequence: u64, payload: &[u8]) -> Result<Event, BusError> {
    let decoded = store::decode_without_tools(&task.tenant, payload, sequence);
    decoded.map_err(|source| BusError::Unreadable { task: task.clone(), sequence, source })
}

/// Follows one task: history by single gets, then the repeated events, which say which event came
/// before, so that a missed one shows.
struct Reader {
    bus: Bus,
    task: TaskKey,
    after: u64,
    live: Option<Subscriber>,
    behind: bool,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Event, BusError>> {
        if self.ended {
            return None;
        }
        let item = self.next_event().await;
        match &item {
            Ok(event) => {
                self.after = event.sequence;
                self.ended = matches!(event.body, EventBody::Finished(_));
            }
            Err(_) => self.ended = true,
        }
        Some(item)
    }

    async fn next_event(&mut self) -> Result<Event, BusError> {
        loop {
            // listen before looking: what is stored in between is seen by one of the two
            let live = match self.live.take() {
                Some(live) => self.live.insert(live),
                None => {
                    let live = self.bus.subscribe_to(&self.task).await?;
                    self.live.insert(live)
                }
            };
            if self.behind {
                match self.bus.next(&self.task, self.after).await? {
                    Some(event) => return Ok(event),
                    None => self.behind = false,
                }
                self.bus.known_streams()?;
            }
            match tokio::time::timeout(RECHECK, live.next()).await {
                Ok(Some(message)) => match position(&message) {
                    Some((sequence, _)) if sequence <= self.after => {}
                    Some((sequence, before)) if before == self.after => {
                        return self.bus.decode(&self.task, sequence, &message.payload).await;
                    }
                    _ => self.behind = true,
                },
                Ok(None) => {
                    self.live = None;
                    self.behind = true;
                }
                // hints may get lost while the connection is down
                Err(_) => self.behind = true,
            }
        }
    }
}

/// The sequence of a repeated event and that of the event before it on its subject.
fn position(message: &Message) -> Option<(u64, u64)> {
    let headers = message.headers.as_ref()?;
    let number = |name| headers.get_last(name)?.as_str().parse().ok();
    Some((number(header::NATS_SEQUENCE)?, number(header::NATS_LAST_SEQUENCE)?))
}
