//! What each stream is: its subjects, bounds and retention.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType};

use crate::config::BusConfig;
use crate::subjects::{ALL_INDEX, ALL_OUTBOX, ALL_QUEUES, ALL_RECEIPTS, ALL_TRAJECTORIES};

/// The largest message of the stream, headers included. Far above
/// [`autoact_wire::store::MAX_EVENT_BYTES`]: events of schema version 1 could have 960 KiB, and
/// `migrate` moves them as they are.
const MAX_MESSAGE_BYTES: usize = 992 * 1024;

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

/// Whether the server drops messages of this stream by itself: as releases before wanted it.
pub(crate) fn drops(config: &Config) -> bool {
    config.discard == DiscardPolicy::Old || !config.max_age.is_zero()
}

/// The same stream with a server that drops nothing by itself.
pub(crate) fn kept(config: &Config) -> Config {
    Config { discard: DiscardPolicy::New, max_age: Duration::ZERO, ..config.clone() }
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

/// Those that hold what autoact stores, in the order in which they are made.
pub(crate) fn all(config: &BusConfig) -> [Config; 5] {
    [trajectories(config), queue(config), index(config), outbox(config), receipts(config)]
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
pub(super) fn tombstone(config: &BusConfig) -> Config {
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
