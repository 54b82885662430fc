//! Reading a whole stream in order, some hundred messages at a time, from one position to another.
//! Restarts of the server are survived; nothing is removed, and nobody's reading is disturbed.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{HeaderMap, header};
use bytes::Bytes;
use futures::StreamExt;

use crate::audit::{Message, SHA256_HEADER};
use crate::connect::Bus;
use crate::error::BusError;
use crate::patience::Patience;

/// Messages of one request: at most 16 MiB.
const BATCH: usize = 256;
/// The server removes our consumer when we are away for so long.
const INACTIVE: Duration = Duration::from_secs(60);
/// A batch that does not come within this time does not come.
const BATCH_LIMIT: Duration = Duration::from_secs(10);

/// A message as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    pub(crate) payload: Bytes,
    pub(crate) headers: HeaderMap,
}

impl Read {
    pub(crate) fn message(&self) -> Message<'_> {
        Message {
            sequence: self.sequence,
            subject: &self.subject,
            payload: &self.payload,
            id: self.headers.get(header::NATS_MESSAGE_ID).map(|value| value.as_str()),
            sha256: self.headers.get(SHA256_HEADER).map(|value| value.as_str()),
        }
    }
}

/// Reads the messages of a stream after one position, up to another.
pub(crate) struct Scan {
    stream: Stream,
    filter: String,
    after: u64,
    last: u64,
    bus: Bus,
    what: &'static str,
    /// Of a work queue: it has one consumer, and it is not ours.
    one_by_one: bool,
    consumer: Option<Consumer<Config>>,
    waiting: VecDeque<Read>,
}

impl Scan {
    /// `what` completes the sentence "the bus cannot … now".
    pub(crate) fn new(bus: &Bus, stream: &Stream, filter: impl Into<String>, after: u64, last: u64, what: &'static str) -> Scan {
        let (bus, stream, filter) = (bus.clone(), stream.clone(), filter.into());
        Scan { stream, filter, after, last, bus, what, one_by_one: false, consumer: None, waiting: VecDeque::new() }
    }

    /// Asks for each message by itself: for a work queue, whose one consumer is not ours.
    #[must_use]
    pub(crate) fn one_by_one(self) -> Scan {
        Scan { one_by_one: true, ..self }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Read>, BusError> {
        let bus = self.bus.clone();
        let mut patience = Patience::of(&bus, self.what);
        loop {
            if let Some(read) = self.waiting.pop_front() {
                self.after = read.sequence;
                return Ok(Some(read));
            }
            if self.after >= self.last {
                return Ok(None);
            }
            let outcome = match tokio::time::timeout(BATCH_LIMIT, self.fetch()).await {
                Ok(Ok(())) if self.waiting.is_empty() => self.single().await,
                Ok(outcome) => outcome,
                Err(elapsed) => Err(elapsed.into()),
            };
            if let Err(error) = outcome {
                self.consumer = None;
                self.waiting.clear();
                patience.after(error).await?;
            }
        }
    }

    async fn fetch(&mut self) -> Result<(), async_nats::Error> {
        if self.one_by_one {
            return Ok(());
        }
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => self.stream.create_consumer(self.config()).await?,
        };
        let mut batch = consumer.fetch().max_messages(BATCH).messages().await?;
        let mut after = self.after;
        while let Some(message) = batch.next().await {
            let message = message?;
            let sequence = message.info()?.stream_sequence;
            if sequence <= after {
                continue;
            }
            after = sequence;
            if sequence > self.last {
                break;
            }
            let jetstream::Message { message, .. } = message;
            let (subject, payload, headers) = (message.subject.to_string(), message.payload, message.headers.unwrap_or_default());
            self.waiting.push_back(Read { sequence, subject, payload, headers });
        }
        if after > self.last && self.waiting.is_empty() {
            self.after = self.last;
        }
        self.consumer = Some(consumer);
        Ok(())
    }

    /// Nothing came: there is nothing more, or the consumer passes over what a direct request finds.
    async fn single(&mut self) -> Result<(), async_nats::Error> {
        match self.stream.get_first_raw_message_by_subject(&self.filter, self.after + 1).await {
            Ok(found) if found.sequence > self.last => self.after = self.last,
            Ok(found) => {
                let (subject, payload, headers) = (found.subject.to_string(), found.payload, found.headers);
                self.waiting.push_back(Read { sequence: found.sequence, subject, payload, headers });
                self.consumer = None;
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => self.after = self.last,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn config(&self) -> Config {
        Config {
            description: Some("reads the whole stream once".to_owned()),
            filter_subject: self.filter.clone(),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.after + 1 },
            replay_policy: ReplayPolicy::Instant,
            ack_policy: AckPolicy::None,
            inactive_threshold: INACTIVE,
            memory_storage: true,
            num_replicas: 1,
            ..Config::default()
        }
    }
}
