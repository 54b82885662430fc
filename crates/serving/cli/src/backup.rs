//! `autoact backup` and `autoact restore`: a second copy of the bus, in files.

use std::path::PathBuf;

use autoact_bus::Bus;
use autoact_trajectory::Tenant;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::bus::{Bar, NatsOptions};
use crate::{exit, out};

/// `autoact backup`
#[derive(Debug, ClapArgs)]
pub(crate) struct BackupOptions {
    /// Where the copy is; a later run adds what is new.
    dir: PathBuf,
    #[command(flatten)]
    nats: NatsOptions,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// `autoact restore`
#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreOptions {
    /// What `autoact backup` wrote.
    dir: PathBuf,
    #[command(flatten)]
    nats: NatsOptions,
    /// One tenant's tasks, into a bus that has none of this tenant [default: all, into an empty bus].
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    /// Most bytes of trajectories, where the stream has to be made: as `bus.max_bytes`.
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<i64>,
    /// Copies of every message in a NATS cluster, where streams have to be made: as `bus.replicas`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BackupOptions) -> anyhow::Result<u8> {
    let bus = Bus::attach(options.nats.config()).await?;
    let mut bar = Bar::new();
    let copied = autoact_bus::backup(&bus, &options.dir, |progress| bar.show(progress)).await;
    bar.end();
    bus.close().await;
    let copied = copied?;
    if options.json {
        let first = copied.first;
        out::line(json!({
            "first": first, "records": copied.records, "events": copied.events, "receipts": copied.receipts, "tools": copied.tools,
            "artifacts": copied.artifacts, "outbox": copied.outbox, "bytes": copied.bytes,
        }))?;
    } else {
        let new = if copied.first { "" } else { "new " };
        out::line(format_args!(
            "copied {} {new}events, {} {new}records of the index, {} {new}tools, {} {new}artifacts; {} entries wait in the outbox; {} bytes",
            copied.events, copied.records, copied.tools, copied.artifacts, copied.outbox, copied.bytes
        ))?;
    }
    Ok(exit::OK)
}

pub(crate) async fn restore(options: RestoreOptions) -> anyhow::Result<u8> {
    let mut config = options.nats.config();
    config.replicas = options.replicas;
    config.max_bytes = options.max_bytes.unwrap_or(config.max_bytes);
    let bus = Bus::connect(config).await?;
    let mut bar = Bar::new();
    let restored = autoact_bus::restore(&bus, &options.dir, options.tenant.as_ref(), |progress| bar.show(progress)).await;
    bar.end();
    bus.close().await;
    let restored = restored?;
    if options.json {
        out::line(json!({
            "tasks": restored.tasks, "events": restored.events, "queued": restored.queued,
            "artifacts": restored.artifacts, "outbox": restored.outbox,
        }))?;
    } else {
        out::line(format_args!(
            "restored {} tasks with {} events and {} artifacts; {} of them have not ended and are queued again",
            restored.tasks, restored.events, restored.artifacts, restored.queued
        ))?;
    }
    Ok(exit::OK)
}
