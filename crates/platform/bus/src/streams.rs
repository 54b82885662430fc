//! The streams: made when missing, checked when there.

use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamError, GetStreamErrorKind, RequestErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode, kv};
use autoact_trajectory::{TaskKey, Tenant};
use tokio::time::Instant;

use crate::config::{BusConfig, redacted};
use crate::error::BusError;
use crate::patience::pause;
use crate::tool_bucket;

/// The largest message of the stream, headers included. Far above
/// [`autoact_wire::store::MAX_EVENT_BYTES`]: events of schema version 1 could have 960 KiB, and
/// `migrate` moves them as they are.
const MAX_MESSAGE_BYTES: usize = 992 * 1024;

/// A look at a stream: a server that does not answer at once does not say now.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// So often in a row a cluster has to say that there is no such stream, and the time in between.
const LOOKS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

const TRAJECTORIES: &str = "AUTOACT_TRAJECTORIES";
const QUEUE: &str = "AUTOACT_QUEUE";
const OUTBOX: &str = "AUTOACT_OUTBOX";
pub(crate) const RECEIPTS: &str = "AUTOACT_RECEIPTS";
pub(crate) const INDEX: &str = "AUTOACT_TASK_INDEX";

/// Longer than any retry of an append: within it a repeated message is recognised by its id alone.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The queue holds names only: this many bytes are hundreds of thousands of tasks.
const QUEUE_BYTES: i64 = 64 << 20;
/// Tens of thousands of answers; memory that is away for days does not fill it.
const OUTBOX_BYTES: i64 = 64 << 20;
/// Half a kilobyte for each effect that is done: hundreds of thousands of them.
const RECEIPT_BYTES: i64 = 256 << 20;
/// Receipts outlive the trajectories that they belong to by this long.
const RECEIPT_MARGIN: Duration = Duration::from_secs(24 * 60 * 60);
/// Three records of about 300 bytes a task: a hundred thousand tasks.
const INDEX_BYTES: i64 = 128 << 20;

/// Every event.
pub(crate) const ALL_TRAJECTORIES: &str = "autoact.*.traj.*";
/// Every record of the index.
pub(crate) const ALL_INDEX: &str = "autoact.*.index.*";
/// Every task in the queue.
pub(crate) const ALL_QUEUES: &str = "autoact.*.queue.*";
/// Every receipt.
pub(crate) const ALL_RECEIPTS: &str = "autoact.*.receipt.*";
/// Every entry of the outbox.
pub(crate) const ALL_OUTBOX: &str = "autoact.*.outbox.*.*";
/// Records about the index itself: no tenant and no task can be called so.
pub(crate) const INDEX_MARKS: &str = "autoact.=.index.=";

/// The records of a tenant.
pub(crate) fn index_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.index.*")
}

/// The events of a tenant.
pub(crate) fn trajectories_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.traj.*")
}

pub(crate) fn trajectory_subject(task: &TaskKey) -> String {
    format!("autoact.{}.traj.{}", task.tenant, task.id)
}

/// Where an event is repeated once it is stored.
pub(crate) fn events_subject(task: &TaskKey) -> String {
    format!("autoact.{}.events.{}", task.tenant, task.id)
}

pub(crate) fn queue_subject(task: &TaskKey) -> String {
    format!("autoact.{}.queue.{}", task.tenant, task.id)
}

/// What the queue's consumer of a tenant takes.
pub(crate) fn queue_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.queue.*")
}

/// Every task in the queue.
pub(crate) const ALL_QUEUED: &str = "autoact.*.queue.*";

pub(crate) fn index_subject(task: &TaskKey) -> String {
    format!("autoact.{}.index.{}", task.tenant, task.id)
}

/// All receipts of a task, in order.
pub(crate) fn receipt_subject(task: &TaskKey) -> String {
    format!("autoact.{}.receipt.{}", task.tenant, task.id)
}

/// Stands for the conversation of a task that has none: no conversation can be called so.
const NO_CONVERSATION: &str = "=";

pub(crate) fn outbox_subject(task: &TaskKey, conversation: &str) -> String {
    let conversation = if conversation.is_empty() { NO_CONVERSATION } else { conversation };
    format!("autoact.{}.outbox.{conversation}.{}", task.tenant, task.id)
}

/// What the outbox's consumer of a tenant takes.
pub(crate) fn outbox_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.outbox.*.*")
}

/// What waits there of a conversation.
pub(crate) fn outbox_of_conversation(tenant: &Tenant, conversation: &str) -> String {
    format!("autoact.{tenant}.outbox.{conversation}.*")
}

/// The task of an entry with this subject.
pub(crate) fn outbox_task(subject: &str) -> Option<TaskKey> {
    let mut tokens = subject.split('.').skip(1);
    let tenant = tokens.next()?.parse().ok()?;
    let id = tokens.nth(2)?.parse().ok()?;
    tokens.next().is_none().then_some(TaskKey::new(tenant, id))
}

/// Where a task is told that it was ended from outside.
pub(crate) fn cancel_subject(task: &TaskKey) -> String {
    format!("autoact.{}.cancel.{}", task.tenant, task.id)
}

/// Every task's.
pub(crate) const ALL_CANCELS: &str = "autoact.*.cancel.*";

/// Where the words of a task's agents are told as they are written.
pub(crate) fn words_subject(task: &TaskKey) -> String {
    format!("autoact.{}.words.{}", task.tenant, task.id)
}

/// The task whose subject this is.
pub(crate) fn task_of(subject: &str) -> Option<TaskKey> {
    let mut tokens = subject.split('.').skip(1);
    let tenant = tokens.next()?.parse().ok()?;
    let id = tokens.nth(1)?.parse().ok()?;
    tokens.next().is_none().then_some(TaskKey::new(tenant, id))
}

/// Whether the server drops messages of this stream by itself: as releases before wanted it.
pub(crate) fn drops(config: &Config) -> bool {
    config.discard == DiscardPolicy::Old || !config.max_age.is_zero()
}

/// The same stream with a server that drops nothing by itself.
pub(crate) fn kept(config: &Config) -> Config {
    Config { discard: DiscardPolicy::New, max_age: Duration::ZERO, ..config.clone() }
}

/// Handles of the streams, and of the bucket of tools.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) trajectories: Stream,
    pub(crate) queue: Stream,
    pub(crate) index: Stream,
    pub(crate) outbox: Stream,
    pub(crate) receipts: Stream,
    pub(crate) tools: kv::Store,
}

impl Streams {
    /// Gets them all, or makes them all at the first start; goes on trying until `deadline` while
    /// JetStream is starting. A bus with trajectories of schema version 1 is refused: they have to
    /// be moved first. So is one that lacks a stream after its first start.
    pub(crate) async fn ensure(context: &Context, config: &BusConfig, deadline: Instant) -> Result<Streams, BusError> {
        if is_complete(context, config, deadline).await? {
            // a bus of a release without receipts
            if get(context, config, RECEIPTS, deadline).await?.is_none() {
                tracing::warn!(stream = RECEIPTS, "made a stream that was not there: effects of tasks that run now have no receipts yet");
                ensure(context, config, receipts(config), deadline).await?;
            }
            return Streams::open(context, config, deadline).await;
        }
        let streams = Streams {
            trajectories: ensure(context, config, trajectories(config), deadline).await?,
            queue: ensure(context, config, queue(config), deadline).await?,
            index: ensure(context, config, index(config), deadline).await?,
            outbox: ensure(context, config, outbox(config), deadline).await?,
            receipts: ensure(context, config, receipts(config), deadline).await?,
            tools: Box::pin(ensure_bucket(context, tool_bucket::bucket(config), deadline)).await?,
        };
        // the last one: it says that the others have been made
        ensure(context, config, tombstone(config), deadline).await?;
        Ok(streams)
    }

    /// Gets them, and makes nothing.
    pub(crate) async fn open(context: &Context, config: &BusConfig, deadline: Instant) -> Result<Streams, BusError> {
        Ok(Streams {
            trajectories: open(context, config, trajectories(config), deadline).await?,
            queue: open(context, config, queue(config), deadline).await?,
            index: open(context, config, index(config), deadline).await?,
            outbox: open(context, config, outbox(config), deadline).await?,
            receipts: open(context, config, receipts(config), deadline).await?,
            tools: Box::pin(ensure_bucket(context, tool_bucket::bucket(config), deadline)).await?,
        })
    }

    /// The streams as they were when they were opened.
    pub(crate) fn all(&self) -> [&Stream; 5] {
        [&self.trajectories, &self.queue, &self.index, &self.outbox, &self.receipts]
    }

    /// The name of a stream that is not the one that was opened: it is gone, or was made anew.
    /// `None` also where the server does not say.
    pub(crate) async fn vanished(&self, context: &Context) -> Option<String> {
        for stream in self.all() {
            let opened = stream.cached_info();
            // A server of a cluster that has just come back may lead it before it has read all that the
            // cluster has decided: it then knows of no stream for a moment.
            let looks = if opened.config.num_replicas > 1 { LOOKS } else { 1 };
            let mut missing = 0;
            while missing < looks {
                match tokio::time::timeout(LOOK_LIMIT, context.get_stream(&opened.config.name)).await {
                    Ok(Ok(now)) if now.cached_info().created == opened.created => break,
                    Ok(Ok(_)) => return Some(opened.config.name.clone()),
                    Ok(Err(error)) if not_found(&error) => missing += 1,
                    // it does not say now
                    Ok(Err(_)) | Err(_) => return None,
                }
                if missing < looks {
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                }
            }
            if missing == looks {
                return Some(opened.config.name.clone());
            }
        }
        None
    }
}

/// The server says that there is no such stream.
fn not_found(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

async fn open(context: &Context, config: &BusConfig, wanted: Config, deadline: Instant) -> Result<Stream, BusError> {
    match get(context, config, &wanted.name, deadline).await? {
        Some(stream) => {
            check(&wanted, &stream.cached_info().config)?;
            Ok(stream)
        }
        None => Err(BusError::Vanished { stream: wanted.name }),
    }
}

/// A stream, or `None` if the server says that there is none; goes on trying until `deadline`.
async fn get(context: &Context, config: &BusConfig, name: &str, deadline: Instant) -> Result<Option<Stream>, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match context.get_stream(name).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) => error,
        };
        let no_jetstream = || Err(BusError::NoJetStream { url: redacted(&config.nats.url) });
        match error.kind() {
            _ if not_found(&error) => return Ok(None),
            GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED => return no_jetstream(),
            _ if no_responders(&error) => return no_jetstream(),
            _ if Instant::now() >= deadline => return Err(BusError::Unavailable { what: "reach its streams", source: error.into() }),
            _ => tokio::time::sleep(pause(attempt)).await,
        }
    }
}

fn base(name: &str, subject: &str, config: &BusConfig) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        storage: StorageType::File,
        num_replicas: config.replicas,
        duplicate_window: DUPLICATE_WINDOW,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        ..Config::default()
    }
}

pub(crate) fn trajectories(config: &BusConfig) -> Config {
    Config {
        description: Some("every event of every task; a task is the fold of its events".to_owned()),
        retention: RetentionPolicy::Limits,
        max_bytes: config.max_bytes,
        // The server drops nothing by itself: it knows neither which tasks still run, nor the index,
        // and what it dropped would look like a loss. `Retention` removes the oldest ended tasks
        // long before the stream is full.
        max_age: Duration::ZERO,
        max_message_size: MAX_MESSAGE_BYTES as i32,
        discard: DiscardPolicy::New,
        allow_direct: true,
        // watchers listen to stored events without a consumer each
        republish: Some(Republish {
            source: ALL_TRAJECTORIES.to_owned(),
            destination: "autoact.{{wildcard(1)}}.events.{{wildcard(2)}}".to_owned(),
            headers_only: false,
        }),
        ..base(TRAJECTORIES, ALL_TRAJECTORIES, config)
    }
}

pub(crate) fn queue(config: &BusConfig) -> Config {
    Config {
        description: Some("tasks that are queued or running".to_owned()),
        retention: RetentionPolicy::WorkQueue,
        max_bytes: QUEUE_BYTES,
        max_age: Duration::ZERO,
        // a full queue refuses: a task must not vanish from it
        discard: DiscardPolicy::New,
        ..base(QUEUE, ALL_QUEUES, config)
    }
}

pub(crate) fn outbox(config: &BusConfig) -> Config {
    Config {
        description: Some("ended tasks that memory has yet to hear of".to_owned()),
        retention: RetentionPolicy::WorkQueue,
        max_bytes: OUTBOX_BYTES,
        max_age: Duration::ZERO,
        // a full outbox refuses: what waits in it must not vanish
        discard: DiscardPolicy::New,
        ..base(OUTBOX, ALL_OUTBOX, config)
    }
}

pub(crate) fn receipts(config: &BusConfig) -> Config {
    Config {
        description: Some("what is known of the effects of tools: fences, claims and outcomes".to_owned()),
        retention: RetentionPolicy::Limits,
        max_bytes: RECEIPT_BYTES,
        max_age: config.max_age.saturating_add(RECEIPT_MARGIN),
        max_message_size: MAX_MESSAGE_BYTES as i32,
        // full means that nothing is run that needs a receipt
        discard: DiscardPolicy::New,
        allow_direct: true,
        ..base(RECEIPTS, ALL_RECEIPTS, config)
    }
}

pub(crate) fn index(config: &BusConfig) -> Config {
    Config {
        description: Some("a record of every task's submission and of its end, in order: a chain of hashes".to_owned()),
        retention: RetentionPolicy::Limits,
        max_bytes: INDEX_BYTES,
        // what happened to a task is known longer than its events are kept
        max_age: Duration::ZERO,
        // likewise: `Retention` removes the oldest half when three quarters are full
        discard: DiscardPolicy::New,
        allow_direct: true,
        ..base(INDEX, ALL_INDEX, config)
    }
}

/// The stream that releases with schema version 1 look for first. Its subject is not theirs, so
/// they refuse to start beside this release.
fn tombstone(config: &BusConfig) -> Config {
    Config {
        description: Some("keeps gateways of schema version 1 from starting on this bus".to_owned()),
        retention: RetentionPolicy::Limits,
        max_messages: 1,
        // as the server writes "no bound": another number looks like somebody's change
        max_bytes: -1,
        discard: DiscardPolicy::Old,
        ..base(crate::version_1::TRAJECTORY, "autoact-schema-2", config)
    }
}

/// Whether all streams were made once: the last one is there. Trajectories of schema version 1 are
/// an error.
async fn is_complete(context: &Context, config: &BusConfig, deadline: Instant) -> Result<bool, BusError> {
    let name = crate::version_1::TRAJECTORY;
    let Some(stream) = get(context, config, name, deadline).await? else { return Ok(false) };
    let info = stream.cached_info();
    if info.config.subjects == [crate::version_1::TRAJECTORY_SUBJECTS] {
        return Err(BusError::Version1 { events: info.state.messages });
    }
    Ok(true)
}

pub(crate) async fn ensure(context: &Context, config: &BusConfig, wanted: Config, deadline: Instant) -> Result<Stream, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match get_or_create(context, &wanted).await {
            Ok(stream) => {
                check(&wanted, &stream.cached_info().config)?;
                return Ok(stream);
            }
            Err(Failure::Final(source)) => return Err(BusError::Create { name: wanted.name, source }),
            Err(Failure::NoJetStream) => return Err(BusError::NoJetStream { url: redacted(&config.nats.url) }),
            Err(Failure::Transient(source)) => source,
        };
        if Instant::now() >= deadline {
            return Err(BusError::Unavailable { what: "reach its streams", source: error });
        }
        tracing::warn!(stream = wanted.name, attempt, %error, "JetStream is not ready; trying again");
        tokio::time::sleep(pause(attempt)).await;
    }
}

/// Gets or makes a key-value bucket; goes on trying until `deadline`.
pub(crate) async fn ensure_bucket(context: &Context, wanted: kv::Config, deadline: Instant) -> Result<kv::Store, BusError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        if let Ok(store) = context.get_key_value(&wanted.bucket).await {
            return Ok(store);
        }
        // somebody else may be making it now: looked for again before it is an error
        let error = match context.create_key_value(wanted.clone()).await {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        if Instant::now() >= deadline {
            return Err(BusError::Create { name: wanted.bucket, source: error.into() });
        }
        tracing::debug!(bucket = wanted.bucket, attempt, %error, "the bucket is not there yet; trying again");
        tokio::time::sleep(pause(attempt)).await;
    }
}

enum Failure {
    Final(async_nats::Error),
    Transient(async_nats::Error),
    NoJetStream,
}

async fn get_or_create(context: &Context, wanted: &Config) -> Result<Stream, Failure> {
    match context.get_stream(&wanted.name).await {
        Ok(stream) => return Ok(stream),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_NOT_FOUND => {}
            GetStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED => {
                return Err(Failure::NoJetStream);
            }
            _ if no_responders(&error) => return Err(Failure::NoJetStream),
            _ => return Err(Failure::Transient(error.into())),
        },
    }
    context.create_stream(wanted.clone()).await.map_err(|error| match error.kind() {
        CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response => Failure::Transient(error.into()),
        CreateStreamErrorKind::JetStreamUnavailable => Failure::NoJetStream,
        _ => Failure::Final(error.into()),
    })
}

/// Nobody answers JetStream's API: the server runs without it.
fn no_responders(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(request) = error.downcast_ref::<async_nats::jetstream::context::RequestError>() {
            return request.kind() == RequestErrorKind::NoResponders;
        }
        cause = error.source();
    }
    false
}

/// A stream that means something else is an error; other limits than ours are somebody's decision,
/// and logged.
fn check(wanted: &Config, found: &Config) -> Result<(), BusError> {
    let mismatch = |field, expected: String, found: String| Err(BusError::Mismatch { stream: wanted.name.clone(), field, expected, found });
    if wanted.subjects != found.subjects {
        return mismatch("subjects", wanted.subjects.join(" "), found.subjects.join(" "));
    }
    if wanted.retention != found.retention {
        return mismatch("retention", format!("{:?}", wanted.retention), format!("{:?}", found.retention));
    }
    if wanted.storage != found.storage {
        return mismatch("storage", format!("{:?}", wanted.storage), format!("{:?}", found.storage));
    }
    if wanted.allow_direct && !found.allow_direct {
        return mismatch("allow_direct", "true".to_owned(), "false".to_owned());
    }
    if wanted.republish != found.republish {
        return mismatch("republish", format!("{:?}", wanted.republish), format!("{:?}", found.republish));
    }
    let limits = |config: &Config| (config.num_replicas, config.max_bytes, config.duplicate_window);
    if limits(wanted) != limits(found) {
        let (replicas, max_bytes, window) = limits(found);
        tracing::warn!(
            stream = wanted.name,
            replicas,
            max_bytes,
            ?window,
            "the stream was made with other limits and keeps them; change them with `nats stream edit`"
        );
    }
    Ok(())
}
