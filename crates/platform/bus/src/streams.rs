//! The streams that a process works with, and whether they still are the same.

pub(crate) mod configs;
mod identity;
mod making;

use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Context, kv};
use tokio::time::Instant;

use self::configs::{RECEIPTS, index, outbox, queue, receipts, trajectories};
pub(crate) use self::identity::identity;
pub(crate) use self::making::{ensure, ensure_bucket};
use self::making::{get, is_complete, not_found, open};
use crate::config::BusConfig;
use crate::error::BusError;
use crate::tool_bucket;

/// A look at a stream: a server that does not answer at once does not say now.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// So often in a row a cluster has to say that there is no such stream. A server of a cluster that
/// has just come back may lead it before it has read all that the cluster has decided: it then
/// knows of no stream for a moment.
const LOOKS: usize = 10;
/// The time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// How often in a row the server has to say that there is no such stream.
fn looks(replicas: usize) -> usize {
    if replicas > 1 { LOOKS } else { 1 }
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
        Streams::make(context, config, deadline).await?;
        // the last one: it says that the others have been made
        ensure(context, config, configs::tombstone(config), deadline).await?;
        // Two processes that start at once may both have asked for a stream: what counts is what is
        // there now.
        Streams::open(context, config, deadline).await
    }

    /// Makes those that are missing.
    pub(crate) async fn make(context: &Context, config: &BusConfig, deadline: Instant) -> Result<(), BusError> {
        for wanted in configs::all(config) {
            ensure(context, config, wanted, deadline).await?;
        }
        Box::pin(ensure_bucket(context, tool_bucket::bucket(config), deadline)).await?;
        Ok(())
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
            let looks = looks(opened.config.num_replicas);
            let mut missing = 0;
            while missing < looks {
                match tokio::time::timeout(LOOK_LIMIT, context.get_stream(&opened.config.name)).await {
                    Ok(Ok(now)) if identity(now.cached_info()) == identity(opened) => break,
                    Ok(Ok(now)) => {
                        let stream = &opened.config.name;
                        let (was, now) = (identity(opened), identity(now.cached_info()));
                        tracing::error!(stream, was, now, "a stream is not the one that was opened");
                        return Some(stream.clone());
                    }
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
