//! Writing: conditional on what the writer knows, and idempotent.

use std::fmt::Write;

use async_nats::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use autoact_telemetry::propagate;
use autoact_trajectory::{Event, TaskId};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::connect::Bus;
use crate::error::BusError;
use crate::streams::{index_subject, trajectory_subject};

/// The largest encoded event: a thought or an observation is far below, and nats-server's default bound is 1 MiB with headers.
pub const MAX_EVENT_BYTES: usize = 960 * 1024;
/// With room for the headers.
pub(crate) const MAX_MESSAGE_BYTES: usize = MAX_EVENT_BYTES + 32 * 1024;

/// One conditional publish.
pub(crate) struct Publish<'a> {
    pub(crate) what: &'static str,
    pub(crate) subject: String,
    pub(crate) id: String,
    pub(crate) payload: Bytes,
    pub(crate) after: u64,
    pub(crate) task: &'a TaskId,
}

impl Bus {
    /// Appends an event to its task's trajectory, provided that the task's last event is still the one at sequence `after` (0: that
    /// there is none). Returns the event's sequence.
    ///
    /// May be repeated after [`BusError::Unavailable`]: the same event is stored once, and the repetition returns its sequence.
    pub async fn append(&self, event: &Event, after: u64) -> Result<u64, BusError> {
        let started = Instant::now();
        let payload = Bytes::from(autoact_proto::event::encode(event));
        if payload.len() > MAX_EVENT_BYTES {
            return Err(BusError::TooLarge { bytes: payload.len(), limit: MAX_EVENT_BYTES });
        }
        // The id contains the content: two gateways that both hold a task write different events under the same index, and the
        // second one must see the conflict, not an acknowledgement of the first one's event.
        let id = format!("{}-{}-{}", event.task_id, event.index, fingerprint(&payload));
        let publish = Publish {
            what: "store an event",
            subject: trajectory_subject(&event.task_id),
            id,
            payload: payload.clone(),
            after,
            task: &event.task_id,
        };
        let outcome = match self.publish(publish).await {
            // our own earlier attempt may have been stored, its acknowledgement lost and its id forgotten by now
            Err(BusError::Conflict { task, expected, .. }) => match self.last_stored(&task).await? {
                Some((sequence, stored)) if stored == payload => Ok(sequence),
                last => Err(BusError::Conflict { task, expected, found: last.map_or(0, |(sequence, _)| sequence) }),
            },
            outcome => outcome,
        };
        metrics::histogram!("autoact_bus_append_seconds").record(started.elapsed().as_secs_f64());
        outcome
    }

    /// Enters a task into the listing; doing it again changes nothing.
    pub async fn register(&self, task: &TaskId) -> Result<(), BusError> {
        let publish =
            Publish { what: "list a task", subject: index_subject(task), id: task.to_string(), payload: Bytes::new(), after: 0, task };
        match self.publish(publish).await {
            Ok(_) | Err(BusError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Publishes and waits for the acknowledgement, again and again while the bus does not answer and patience lasts.
    pub(crate) async fn publish(&self, publish: Publish<'_>) -> Result<u64, BusError> {
        let Publish { what, subject, id, payload, after, task } = publish;
        let mut headers = HeaderMap::new();
        propagate::inject(|name, value| headers.insert(name, value));
        let message =
            PublishMessage::build().headers(headers).payload(payload.clone()).message_id(&id).expected_last_subject_sequence(after);
        let mut patience = self.patience(what);
        loop {
            let error = match self.publish_once(&subject, message.clone()).await {
                Ok(sequence) => return Ok(sequence),
                Err(error) => error,
            };
            match classify(&error) {
                Failure::Conflict => return Err(BusError::Conflict { task: task.clone(), expected: after, found: 0 }),
                Failure::TooLarge => return Err(BusError::TooLarge { bytes: payload.len(), limit: MAX_EVENT_BYTES }),
                Failure::Transient => patience.after(error).await?,
            }
        }
    }

    async fn publish_once(&self, subject: &str, message: PublishMessage) -> Result<u64, PublishError> {
        let ack = self.context.send_publish(subject.to_owned(), message).await?.await?;
        Ok(ack.sequence)
    }
}

enum Failure {
    Conflict,
    TooLarge,
    Transient,
}

fn classify(error: &PublishError) -> Failure {
    match error.kind() {
        PublishErrorKind::WrongLastSequence => return Failure::Conflict,
        PublishErrorKind::MaxPayloadExceeded => return Failure::TooLarge,
        _ => {}
    }
    let code = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>())
        .map(async_nats::jetstream::Error::error_code);
    match code {
        // newer servers say it without the number
        Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT) => Failure::Conflict,
        Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM) => Failure::TooLarge,
        _ => Failure::Transient,
    }
}

/// The first 16 hexadecimal digits of the content's SHA-256.
fn fingerprint(payload: &[u8]) -> String {
    Sha256::digest(payload).iter().take(8).fold(String::with_capacity(16), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
