//! The work queue: tasks go in once, and come out as leases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::{Config, MessagesError, Stream};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use autoact_trajectory::{TaskKey, Tenant};
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::append::{After, Publish};
use crate::connect::Bus;
use crate::error::BusError;
use crate::patience::pause;
use crate::subjects::{queue_of, queue_subject, task_of};

/// Signs of life per lease and period: two may get lost.
const SIGNS_OF_LIFE: u32 = 3;
/// How long a lease is given back for.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
/// What the names of the queue's consumers begin with.
const CONSUMER_PREFIX: &str = "gateway-";
/// The durable consumer of a tenant, shared by all gateways that run its tasks: whoever pulls gets
/// the next one. A consumer each, so that a tenant with a thousand tasks does not stand before one
/// with a single task.
fn consumer_name(tenant: &Tenant) -> String {
    format!("{CONSUMER_PREFIX}{tenant}")
}

/// The tenant whose consumer has this name.
pub(crate) fn tenant_of_consumer(name: &str) -> Option<Tenant> {
    name.strip_prefix(CONSUMER_PREFIX)?.parse().ok()
}

impl Bus {
    /// Queues a task; queueing one that is queued or running changes nothing. Whether it was queued
    /// now.
    pub async fn enqueue(&self, task: &TaskKey) -> Result<bool, BusError> {
        let publish = Publish {
            what: "queue a task",
            subject: queue_subject(task),
            // not the task's name alone: a task that left the queue by mistake may have to be
            // queued again
            id: format!("{task}-{}", uuid::Uuid::new_v4().simple()),
            payload: Bytes::new(),
            after: After::OnSubject(0),
            task,
        };
        match self.publish(publish).await {
            Ok(_) => Ok(true),
            Err(BusError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many tasks are queued or running, over all gateways.
    pub async fn backlog(&self) -> Result<u64, BusError> {
        let mut patience = self.patience("count its tasks");
        loop {
            match self.streams.queue.get_info().await {
                Ok(info) => return Ok(info.state.messages),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The leases of these tenants' tasks that this process takes.
    pub async fn leases(&self, tenants: &[Tenant]) -> Result<Leases, BusError> {
        let lines = tenants.iter().map(|tenant| Line { tenant: tenant.clone(), messages: None }).collect();
        let mut leases = Leases { bus: self.clone(), lines, first: 0, tenants: None };
        self.refusals.guard(leases.open()).await?;
        Ok(leases)
    }
}

/// Takes leases one by one, from each tenant in turn.
pub struct Leases {
    bus: Bus,
    lines: Vec<Line>,
    /// The tenant that is looked at first.
    first: usize,
    /// Tenants that appear later.
    tenants: Option<watch::Receiver<BTreeSet<Tenant>>>,
}

/// A tenant's queue.
struct Line {
    tenant: Tenant,
    messages: Option<Stream>,
}

impl Leases {
    /// Takes the tasks of these tenants too, and of those that come to be among them. A tenant that
    /// was there stays.
    #[must_use]
    pub fn following(mut self, mut tenants: watch::Receiver<BTreeSet<Tenant>>) -> Leases {
        tenants.mark_changed();
        self.tenants = Some(tenants);
        self
    }

    /// Waits for the next lease, however long it takes; restarts of the server included. Safe to
    /// drop while waiting.
    pub async fn next(&mut self) -> Lease {
        let mut failures = 0;
        loop {
            if let Err(error) = self.open().await {
                failures += 1;
                tracing::warn!(%error, failures, "cannot take tasks from the queue; trying again");
                tokio::time::sleep(pause(failures)).await;
                continue;
            }
            let (at, message) = tokio::select! {
                biased;
                more = changed(&mut self.tenants) => {
                    self.add(more);
                    continue;
                }
                found = message(&mut self.lines, self.first) => found,
            };
            match message {
                Some(Ok(message)) => match self.lease(message).await {
                    Some(lease) => {
                        // the others come first next time
                        self.first = (at + 1) % self.lines.len();
                        return lease;
                    }
                    None => continue,
                },
                Some(Err(error)) => tracing::debug!(%error, "the queue was interrupted"),
                None => tracing::debug!("the queue has ended"),
            }
            self.lines[at].messages = None;
            failures += 1;
            tokio::time::sleep(pause(failures)).await;
        }
    }

    fn add(&mut self, tenants: BTreeSet<Tenant>) {
        for tenant in tenants {
            if self.lines.iter().all(|line| line.tenant != tenant) {
                self.lines.push(Line { tenant, messages: None });
            }
        }
    }

    /// Opens what is not open.
    async fn open(&mut self) -> Result<(), BusError> {
        if self.lines.iter().all(|line| line.messages.is_some()) {
            return Ok(());
        }
        // a server that lost its disk has no streams any more: nothing is made in their place
        Box::pin(self.bus.check_streams()).await?;
        for line in self.lines.iter_mut().filter(|line| line.messages.is_none()) {
            let name = consumer_name(&line.tenant);
            let create = |source: async_nats::Error| BusError::Create { name: format!("consumer {name}"), source };
            let wanted = consumer(&self.bus, &line.tenant);
            let consumer: Consumer<Config> = self.bus.streams.queue.create_consumer(wanted).await.map_err(|error| create(error.into()))?;
            let messages = consumer
                .stream()
                // one at a time: a task that waits here would wait although another gateway has
                // room for it
                .max_messages_per_batch(1)
                .expires(Duration::from_secs(30))
                .heartbeat(Duration::from_secs(5))
                .messages()
                .await
                .map_err(|error| BusError::unavailable("take tasks from the queue", error))?;
            line.messages = Some(messages);
        }
        Ok(())
    }

    async fn lease(&self, message: Message) -> Option<Lease> {
        let deliveries = message.info().map_or(1, |info| info.delivered);
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
            deliveries: u32::try_from(deliveries).unwrap_or(u32::MAX),
            headers: message.headers.unwrap_or_default(),
            acker,
            keep_alive,
        })
    }
}

/// The tenants, when they have changed; never, where nobody says so.
async fn changed(tenants: &mut Option<watch::Receiver<BTreeSet<Tenant>>>) -> BTreeSet<Tenant> {
    if let Some(tenants) = tenants
        && tenants.changed().await.is_ok()
    {
        return tenants.borrow_and_update().clone();
    }
    std::future::pending().await
}

/// The next message of any tenant, and which tenant's it is.
async fn message(lines: &mut [Line], first: usize) -> (usize, Option<Result<Message, MessagesError>>) {
    let count = lines.len();
    std::future::poll_fn(move |context| {
        for offset in 0..count {
            let at = (first + offset) % count;
            if let Some(messages) = &mut lines[at].messages
                && let Poll::Ready(message) = messages.poll_next_unpin(context)
            {
                return Poll::Ready((at, message));
            }
        }
        Poll::Pending
    })
    .await
}

fn consumer(bus: &Bus, tenant: &Tenant) -> Config {
    Config {
        durable_name: Some(consumer_name(tenant)),
        description: Some("gateways take this tenant's tasks here".to_owned()),
        filter_subject: queue_of(tenant),
        deliver_policy: DeliverPolicy::All,
        replay_policy: ReplayPolicy::Instant,
        // done means that the end of the task is stored: every task says so itself
        ack_policy: AckPolicy::Explicit,
        ack_wait: bus.config.lease,
        // Without bound: a message that JetStream gives up stays in the queue for ever and nobody
        // hears of it. The gateway counts the attempts itself and ends the task with a reason.
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

async fn keep_alive(task: TaskKey, acker: Arc<Acker>, period: Duration) {
    let mut ticks = tokio::time::interval(period);
    ticks.tick().await; // the first is now
    loop {
        ticks.tick().await;
        if let Err(error) = acker.ack_with(AckKind::Progress).await {
            tracing::debug!(%task, %error, "a sign of life for a lease was not sent");
        }
    }
}

/// The right to run a task. Kept alive while held; dropped without a word it passes on after
/// [`crate::BusConfig::lease`].
pub struct Lease {
    task: TaskKey,
    deliveries: u32,
    headers: HeaderMap,
    acker: Arc<Acker>,
    keep_alive: JoinHandle<()>,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("task", &self.task).field("deliveries", &self.deliveries).finish_non_exhaustive()
    }
}

impl Lease {
    /// The task to run.
    pub fn task(&self) -> &TaskKey {
        &self.task
    }

    /// How often the queue has handed the task out, this time included.
    pub fn deliveries(&self) -> u32 {
        self.deliveries
    }

    /// A header that the submitter sent along: its trace context.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|value| value.as_str().to_owned())
    }

    /// The task has ended: takes it off the queue. Not being able to is no harm, the next holder
    /// finds it ended.
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
