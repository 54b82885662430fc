//! The work queue: tasks go in once, and come out as leases.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use autoact_trajectory::TaskId;
use bytes::Bytes;
use futures::StreamExt;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::append::Publish;
use crate::connect::Bus;
use crate::error::BusError;
use crate::patience::pause;
use crate::streams::{Streams, task_of, task_subject};

/// Signs of life per lease and period: two may get lost.
const SIGNS_OF_LIFE: u32 = 3;
/// How long a lease is given back for.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
/// One durable consumer shared by all gateways: whoever pulls gets the next task.
const CONSUMER: &str = "gateway";

impl Bus {
    /// Queues a task; queueing one that is queued or running changes nothing.
    pub async fn enqueue(&self, task: &TaskId) -> Result<(), BusError> {
        let publish =
            Publish { what: "queue a task", subject: task_subject(task), id: task.to_string(), payload: Bytes::new(), after: 0, task };
        match self.publish(publish).await {
            Ok(_) | Err(BusError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How many tasks are queued or running, over all gateways.
    pub async fn backlog(&self) -> Result<u64, BusError> {
        let mut patience = self.patience("count its tasks");
        loop {
            match self.streams.tasks.get_info().await {
                Ok(info) => return Ok(info.state.messages),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The leases this process takes.
    pub async fn leases(&self) -> Result<Leases, BusError> {
        let mut leases = Leases { bus: self.clone(), messages: None };
        leases.open().await?;
        Ok(leases)
    }
}

/// Takes leases one by one.
pub struct Leases {
    bus: Bus,
    messages: Option<Stream>,
}

impl Leases {
    /// Waits for the next lease, however long it takes; restarts of the server included. Safe to drop while waiting.
    pub async fn next(&mut self) -> Lease {
        let mut failures = 0;
        loop {
            if self.messages.is_none()
                && let Err(error) = self.open().await
            {
                failures += 1;
                tracing::warn!(%error, failures, "cannot take tasks from the queue; trying again");
                tokio::time::sleep(pause(failures)).await;
                continue;
            }
            let Some(messages) = &mut self.messages else { continue };
            match messages.next().await {
                Some(Ok(message)) => match self.lease(message).await {
                    Some(lease) => return lease,
                    None => continue,
                },
                Some(Err(error)) => tracing::debug!(%error, "the queue was interrupted"),
                None => tracing::debug!("the queue has ended"),
            }
            self.messages = None;
            failures += 1;
            tokio::time::sleep(pause(failures)).await;
        }
    }

    async fn open(&mut self) -> Result<(), BusError> {
        // a server that lost its disk has no streams any more
        let deadline = Instant::now();
        let streams = Streams::ensure(&self.bus.context, &self.bus.config, deadline).await?;
        let create = |source: async_nats::Error| BusError::Create { name: format!("consumer {CONSUMER}"), source };
        let consumer: Consumer<Config> = streams.tasks.create_consumer(consumer(&self.bus)).await.map_err(|error| create(error.into()))?;
        let messages = consumer
            .stream()
            // one at a time: a task that waits here would wait although another gateway has room for it
            .max_messages_per_batch(1)
            .expires(Duration::from_secs(30))
            .heartbeat(Duration::from_secs(5))
            .messages()
            .await
            .map_err(|error| BusError::unavailable("take tasks from the queue", error))?;
        self.messages = Some(messages);
        Ok(())
    }

    async fn lease(&self, message: Message) -> Option<Lease> {
        let attempt = message.info().map_or(1, |info| info.delivered);
        let (message, acker) = message.split();
        let Some(task) = task_of(&message.subject) else {
            tracing::error!(subject = %message.subject, "a message in the queue names no task; it is removed");
            if let Err(error) = acker.ack_with(AckKind::Term).await {
                tracing::warn!(%error, "it was not removed");
            }
            return None;
        };
        let acker = Arc::new(acker);
        let keep_alive = tokio::spawn(keep_alive(task.clone(), acker.clone(), self.bus.config.lease / SIGNS_OF_LIFE));
        Some(Lease {
            task,
            attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
            headers: message.headers.unwrap_or_default(),
            acker,
            keep_alive,
        })
    }
}

fn consumer(bus: &Bus) -> Config {
    Config {
        durable_name: Some(CONSUMER.to_owned()),
        description: Some("gateways take tasks here".to_owned()),
        deliver_policy: DeliverPolicy::All,
        replay_policy: ReplayPolicy::Instant,
        // done means that the end of the task is stored: every task says so itself
        ack_policy: AckPolicy::Explicit,
        ack_wait: bus.config.lease,
        // Without bound: a message that JetStream gives up stays in the queue for ever and nobody hears of it. The gateway counts
        // the attempts itself and ends the task with a reason.
        max_deliver: -1,
        // over all gateways; each one bounds its own by taking no more leases
        max_ack_pending: i64::from(bus.config.max_leases),
        // pull requests that wait at a time: one per gateway
        max_waiting: 512,
        // what a gateway may ask for at most, so that a mistake cannot hoard
        max_batch: 16,
        max_expires: Duration::from_secs(60),
        num_replicas: bus.config.replicas,
        ..Config::default()
    }
}

async fn keep_alive(task: TaskId, acker: Arc<Acker>, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.tick().await; // the first is now
    loop {
        ticks.tick().await;
        if let Err(error) = acker.ack_with(AckKind::Progress).await {
            tracing::debug!(%task, %error, "a sign of life for a lease was not sent");
        }
    }
}

/// The right to run a task. Kept alive while held; dropped without a word it passes on after [`crate::BusConfig::lease`].
pub struct Lease {
    task: TaskId,
    attempt: u32,
    headers: HeaderMap,
    acker: Arc<Acker>,
    keep_alive: JoinHandle<()>,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("task", &self.task).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

impl Lease {
    /// The task to run.
    pub fn task_id(&self) -> &TaskId {
        &self.task
    }

    /// Which delivery this is: 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// A header that the submitter sent along: its trace context.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| value.as_str().to_owned())
    }

    /// The task has ended: takes it off the queue. Not being able to is no harm, the next holder finds it ended.
    pub async fn ack(self) -> Result<(), BusError> {
        self.keep_alive.abort();
        let deadline = Instant::now() + SETTLE_LIMIT;
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.acker.double_ack().await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() >= deadline => return Err(BusError::unavailable("take a task off the queue", error)),
                Err(_) => tokio::time::sleep(pause(attempt)).await,
            }
        }
    }

    /// Gives the task back, to be delivered again after `delay`.
    pub async fn nak(self, delay: Duration) -> Result<(), BusError> {
        self.keep_alive.abort();
        let sent = self.acker.ack_with(AckKind::Nak(Some(delay))).await;
        sent.map_err(|error| BusError::unavailable("give a task back", error))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keep_alive.abort();
    }
}
