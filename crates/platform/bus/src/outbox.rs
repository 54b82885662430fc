//! The outbox: what memory has to hear of lies here until memory has it.
//!
//! A work queue: an entry is removed when whoever delivered it says so, and never before, however
//! long that takes. An entry of a task that waits is not put in twice; one that was delivered may be
//! put in again and is delivered again, so whoever receives it has to recognise it.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use autoact_trajectory::{TaskKey, Tenant};
use bytes::Bytes;
use futures::StreamExt;

use crate::append::{After, Publish};
use crate::connect::Bus;
use crate::error::BusError;
use crate::patience::pause;
use crate::subjects::{outbox_of, outbox_of_conversation, outbox_subject, outbox_task};

/// An entry that its gateway said nothing about for this long is delivered again.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// Entries that gateways hold at a time, for each tenant.
const MAX_PENDING: i64 = 256;

impl Bus {
    /// Puts an entry into the outbox: for a task, and the conversation that it belongs to (empty:
    /// none). Doing it again while it waits changes nothing.
    ///
    /// # Errors
    /// The outbox is full, or the bus cannot be reached.
    pub async fn put_into_outbox(&self, task: &TaskKey, conversation: &str, payload: Vec<u8>) -> Result<(), BusError> {
        let publish = Publish {
            what: "put into the outbox",
            subject: outbox_subject(task, conversation),
            id: format!("{task}-outbox-{}", uuid::Uuid::new_v4().simple()),
            payload: Bytes::from(payload),
            after: After::OnSubject(0),
            task,
        };
        match self.publish(publish).await {
            Ok(_) | Err(BusError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether something of a conversation waits in the outbox: one attempt, no retry.
    ///
    /// # Errors
    /// The bus did not answer.
    pub async fn waits_in_outbox(&self, tenant: &Tenant, conversation: &str) -> Result<bool, BusError> {
        match self.streams.outbox.get_last_raw_message_by_subject(&outbox_of_conversation(tenant, conversation)).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(BusError::unavailable("look into the outbox", error)),
        }
    }

    /// The entries of a tenant that this process takes; whoever reads gets the next one.
    pub fn outbox(&self, tenant: &Tenant) -> Outbox {
        Outbox { bus: self.clone(), tenant: tenant.clone(), messages: None }
    }
}

/// Takes entries one by one.
pub struct Outbox {
    bus: Bus,
    tenant: Tenant,
    messages: Option<Stream>,
}

impl Outbox {
    /// Waits for the next entry, however long it takes; restarts of the server included. Safe to
    /// drop while waiting.
    pub async fn next(&mut self) -> Entry {
        let mut failures = 0;
        loop {
            let error: async_nats::Error = match self.open().await {
                Err(error) => error.into(),
                Ok(messages) => match messages.next().await {
                    Some(Ok(message)) => {
                        let deliveries = message.info().map_or(1, |info| info.delivered);
                        let (message, acker) = message.split();
                        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
                        let (payload, headers) = (message.payload, message.headers.unwrap_or_default());
                        return Entry { task: outbox_task(&message.subject), payload, deliveries, headers, acker };
                    }
                    Some(Err(error)) => error.into(),
                    None => "it has ended".into(),
                },
            };
            failures += 1;
            tracing::debug!(%error, failures, "the outbox was interrupted");
            self.messages = None;
            tokio::time::sleep(pause(failures)).await;
        }
    }

    async fn open(&mut self) -> Result<&mut Stream, BusError> {
        let messages = match self.messages.take() {
            Some(messages) => messages,
            None => {
                // a server that lost its disk has no streams any more: nothing is made in their
                // place
                Box::pin(self.bus.check_streams()).await?;
                let wanted = self.consumer();
                let name = wanted.durable_name.clone().unwrap_or_default();
                let create = |source: async_nats::Error| BusError::Create { name: format!("consumer {name}"), source };
                let consumer: Consumer<Config> =
                    self.bus.streams.outbox.create_consumer(wanted).await.map_err(|error| create(error.into()))?;
                let messages =
                    consumer.stream().max_messages_per_batch(16).expires(Duration::from_secs(30)).heartbeat(Duration::from_secs(5));
                messages.messages().await.map_err(|error| BusError::unavailable("read the outbox", error))?
            }
        };
        Ok(self.messages.insert(messages))
    }

    fn consumer(&self) -> Config {
        Config {
            durable_name: Some(format!("memory-{}", self.tenant)),
            description: Some("gateways tell memory of this tenant's tasks from here".to_owned()),
            filter_subject: outbox_of(&self.tenant),
            deliver_policy: DeliverPolicy::All,
            replay_policy: ReplayPolicy::Instant,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            // without bound: what is given up stays in the queue for ever and nobody hears of it
            max_deliver: -1,
            max_ack_pending: MAX_PENDING,
            max_waiting: 512,
            max_batch: 16,
            max_expires: Duration::from_secs(60),
            num_replicas: self.bus.config.replicas,
            ..Config::default()
        }
    }
}

/// One entry. Dropped without a word it is delivered again.
pub struct Entry {
    task: Option<TaskKey>,
    payload: Bytes,
    deliveries: u32,
    headers: HeaderMap,
    acker: Acker,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("task", &self.task).field("deliveries", &self.deliveries).finish_non_exhaustive()
    }
}

impl Entry {
    /// The task it is about; `None` where its subject names none.
    pub fn task(&self) -> Option<&TaskKey> {
        self.task.as_ref()
    }

    /// What was put in.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// How often it has been delivered, this time included.
    pub fn deliveries(&self) -> u32 {
        self.deliveries
    }

    /// A header that came with it: the trace of whoever put it in.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| value.as_str().to_owned())
    }

    /// It has arrived, or never will: takes it out.
    ///
    /// # Errors
    /// The bus did not answer; it is delivered again.
    pub async fn done(self) -> Result<(), BusError> {
        self.acker.double_ack().await.map_err(|error| BusError::unavailable("take an entry out of the outbox", error))
    }

    /// To be delivered again after `delay`.
    ///
    /// # Errors
    /// The bus did not answer; it is delivered again all the same.
    pub async fn later(self, delay: Duration) -> Result<(), BusError> {
        let sent = self.acker.ack_with(AckKind::Nak(Some(delay))).await;
        sent.map_err(|error| BusError::unavailable("give an entry back", error))
    }
}
