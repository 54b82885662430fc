//! Writing: conditional on what the writer knows, and idempotent.

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, ErrorCode};
use autoact_telemetry::propagate;
use autoact_trajectory::{Digest, Event, EventBody, TaskKey};
use autoact_wire::store;
use bytes::Bytes;
use tokio::time::Instant;

use crate::audit::SHA256_HEADER;
use crate::connect::Bus;
use crate::error::BusError;
use crate::patience::Patience;
use crate::subjects::trajectory_subject;

/// What has to be the last message for a publish to be stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum After {
    /// The one at this sequence on the same subject; 0: none.
    OnSubject(u64),
    /// The one at this sequence of the whole stream; 0: none.
    InStream(u64),
}

/// An event as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Its position.
    pub sequence: u64,
    /// SHA-256 of its bytes.
    pub digest: Digest,
}

/// One conditional publish.
pub(crate) struct Publish<'a> {
    pub(crate) what: &'static str,
    pub(crate) subject: String,
    pub(crate) id: String,
    pub(crate) payload: Bytes,
    pub(crate) after: After,
    pub(crate) task: &'a TaskKey,
}

impl Bus {
    /// Appends an event to its task's trajectory, provided that the task's last event is still the
    /// one at sequence `after` (0: that there is none).
    ///
    /// May be repeated after [`BusError::Unavailable`]: the same event is stored once, and the
    /// repetition returns its place.
    pub async fn append(&self, event: &Event, after: u64) -> Result<Stored, BusError> {
        let started = Instant::now();
        let (task, payload) = (event.key(), Bytes::from((self.encode)(event)?));
        if let EventBody::Submitted(submitted) = &event.body {
            Box::pin(self.store_tools(&task, submitted)).await?;
        }
        let digest = store::digest(&payload);
        // The id contains the content: two gateways that both hold a task write different events
        // under the same index, and the second one must see the conflict, not an acknowledgement of
        // the first one's event.
        let id = format!("{task}-{}-{digest}", event.index);
        let publish = Publish {
            what: "store an event",
            subject: trajectory_subject(&task),
            id,
            payload: payload.clone(),
            after: After::OnSubject(after),
            task: &task,
        };
        let outcome = match self.publish(publish).await {
            // our own earlier attempt may have been stored, its acknowledgement lost and its id
            // forgotten by now
            Err(BusError::Conflict { task, expected, .. }) => match self.last_stored(&task).await? {
                Some((sequence, stored)) if stored == payload => Ok(sequence),
                last => Err(BusError::Conflict { task, expected, found: last.map_or(0, |(sequence, _)| sequence) }),
            },
            outcome => outcome,
        };
        metrics::histogram!("autoact_bus_append_seconds").record(started.elapsed().as_secs_f64());
        outcome.map(|sequence| Stored { sequence, digest })
    }

    /// Publishes and waits for the acknowledgement, again and again while the bus does not answer
    /// and patience lasts.
    pub(crate) async fn publish(&self, publish: Publish<'_>) -> Result<u64, BusError> {
        let patience = self.patience(publish.what);
        publish.send(&self.context, patience).await
    }
}

impl Publish<'_> {
    /// Publishes and waits for the acknowledgement, again and again while the bus does not answer
    /// and patience lasts.
    pub(crate) async fn send(self, context: &Context, mut patience: Patience<'_>) -> Result<u64, BusError> {
        let Publish { what, subject, id, payload, after, task } = self;
        let mut headers = HeaderMap::new();
        propagate::inject(|name, value| headers.insert(name, value));
        // an event's id has it already
        if matches!(after, After::InStream(_)) {
            headers.insert(SHA256_HEADER, store::digest(&payload).to_string());
        }
        let message = PublishMessage::build().headers(headers).payload(payload.clone()).message_id(&id);
        let (message, expected) = match after {
            After::OnSubject(after) => (message.expected_last_subject_sequence(after), after),
            After::InStream(after) => (message.expected_last_sequence(after), after),
        };
        loop {
            let sent = tokio::select! {
                biased;
                sent = publish_once(context, &subject, message.clone()) => sent,
                refused = patience.refusals().of_publishing(&subject) => return Err(refused),
            };
            let error = match sent {
                Ok(sequence) => return Ok(sequence),
                Err(error) => error,
            };
            match classify(&error) {
                Failure::Conflict => return Err(BusError::Conflict { task: task.clone(), expected, found: 0 }),
                Failure::TooLarge => return Err(BusError::MessageTooLarge { bytes: payload.len() }),
                Failure::Full => return Err(BusError::Full { what, source: error.into() }),
                Failure::Transient => patience.after(error).await?,
            }
        }
    }
}

async fn publish_once(context: &Context, subject: &str, message: PublishMessage) -> Result<u64, PublishError> {
    // boxed: kilobytes of state that every future around it would move
    let sent = Box::pin(context.send_publish(subject.to_owned(), message)).await?;
    Ok(sent.await?.sequence)
}

enum Failure {
    Conflict,
    TooLarge,
    Full,
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
        // it keeps what it has and takes nothing more
        Some(ErrorCode::STREAM_STORE_FAILED) => Failure::Full,
        _ => Failure::Transient,
    }
}
