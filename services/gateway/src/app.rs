//! The gateway as a service: what is started, and in which order it ends.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use autoact_bus::{Bus, Leases};
use autoact_service::{Condition, Flag, Service, Setup, StartError};
use futures::StreamExt;
use ractor::{Actor, ActorRef};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::config::GatewayConfig;
use crate::dispatcher::{Dispatcher, Message};
use crate::memory::Rememberer;
use crate::run::Shared;
use crate::submit::Submitter;
use crate::tools::Catalog;
use crate::{remote, retry};

/// How often readiness looks at the connection to the bus.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How long tasks that are given back may take to stop: they only drop a call.
const GIVE_BACK_LIMIT: Duration = Duration::from_secs(3);

/// The gateway.
#[derive(Debug)]
pub struct Gateway;

impl Service for Gateway {
    type Config = GatewayConfig;

    const ABOUT: &'static str = "Accepts tasks, runs the planning loop with the three agents, and streams what happens.";

    fn flags() -> Vec<Flag> {
        vec![
            Flag { name: "plan-agent", key: "agents.plan", value: "URL", help: "Where Plan-Agent is" },
            Flag { name: "tool-agent", key: "agents.tool", value: "URL", help: "Where Tool-Agent is" },
            Flag { name: "reflect-agent", key: "agents.reflect", value: "URL", help: "Where Reflect-Agent is" },
            Flag { name: "memory", key: "memory", value: "URL", help: "Where the memory service is; empty for none" },
            Flag { name: "max-running", key: "max_running", value: "N", help: "Tasks this gateway runs at a time" },
        ]
    }

    async fn build(config: GatewayConfig, setup: &mut Setup) -> Result<(), StartError> {
        let writer = format!("gateway-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let agents = remote::agents(&config.agents).map_err(StartError::new)?;
        let memory = match config.memory.as_str() {
            "" => None,
            address => Some(remote::memory(address).map_err(StartError::new)?),
        };
        let bus = Bus::connect(config.bus.config(&setup.common().nats.url, &writer)).await.map_err(StartError::new)?;
        let leases = bus.leases().await.map_err(StartError::new)?;
        let (draining, leaving) = (setup.draining(), CancellationToken::new());
        let catalog = Catalog::new(agents.tool.clone());
        let shared = Arc::new(Shared {
            bus: bus.clone(),
            agents,
            memory: Rememberer::new(memory, setup.tasks()),
            writer,
            max_attempts: config.max_attempts,
            call_limit: config.agents.timeout,
            agent_patience: config.agents.patience,
            draining: draining.clone(),
        });
        let (running, settling) = (watch::Sender::new(0), TaskTracker::new());
        let dispatcher = Dispatcher { shared: shared.clone(), running: running.clone(), settling: settling.clone() };
        let (dispatcher, ended) = Dispatcher::spawn(None, dispatcher, ()).await.map_err(|error| StartError::new(error.to_string()))?;

        setup.tasks().spawn_critical("dispatcher", {
            let draining = draining.clone();
            async move {
                let _ = ended.await;
                if draining.is_cancelled() { Ok(()) } else { Err("it ended before the service") }
            }
        });

        let work = Work { dispatcher, bus: bus.clone(), running, settling, draining, leaving: leaving.clone(), drain: config.drain };
        setup.tasks().spawn("watch the bus", watch_bus(bus, setup.condition("bus")));
        setup.tasks().spawn("cancelled tasks", listen(work.bus.clone(), work.dispatcher.clone()));
        let slots = Arc::new(Semaphore::new(config.max_running));
        setup.tasks().spawn_until_stopped("tasks", |stopping| work.run(leases, slots, stopping));

        let submitter = Submitter {
            shared: shared.clone(),
            catalog,
            limits: config.limits.into(),
            max_limits: config.max_limits.into(),
            max_tasks: config.max_tasks,
            entering: AtomicU64::new(0),
        };
        setup.serve(Api { shared, submitter, leaving }.service());
        Ok(())
    }
}

/// Takes tasks and sees to their end.
struct Work {
    dispatcher: ActorRef<Message>,
    bus: Bus,
    running: watch::Sender<usize>,
    settling: TaskTracker,
    draining: CancellationToken,
    leaving: CancellationToken,
    drain: Duration,
}

impl Work {
    /// Until the service drains: takes leases. Then, in this order: no new ones; the running tasks may end; what is left is given back
    /// for another gateway; clients' streams end; and when the calls are done, the connection to the bus is closed.
    async fn run(self, leases: Leases, slots: Arc<Semaphore>, stopping: CancellationToken) {
        take(leases, slots, &self.dispatcher, &self.draining).await;
        tokio::select! {
            () = idle(&self.running) => {}
            () = tokio::time::sleep(self.drain) => {}
            () = stopping.cancelled() => {}
        }
        // an error means that it is gone, and its tasks with it
        let _ = self.dispatcher.cast(Message::GiveBack);
        if tokio::time::timeout(GIVE_BACK_LIMIT, idle(&self.running)).await.is_err() {
            tracing::warn!(running = *self.running.borrow(), "some tasks did not stop; their leases run out");
        }
        self.leaving.cancel();
        self.dispatcher.stop(None);
        self.settling.close();
        let _ = tokio::time::timeout(GIVE_BACK_LIMIT, self.settling.wait()).await;
        stopping.cancelled().await;
        self.bus.close().await;
    }
}

/// Returns when no task runs here.
async fn idle(running: &watch::Sender<usize>) {
    // the sender lives as long as this borrows it
    let _ = running.subscribe().wait_for(|running| *running == 0).await;
}

/// Takes a lease whenever there is a slot for it.
async fn take(mut leases: Leases, slots: Arc<Semaphore>, dispatcher: &ActorRef<Message>, draining: &CancellationToken) {
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await.ok()?;
            Some((leases.next().await, slot))
        };
        let (lease, slot) = tokio::select! {
            biased;
            () = draining.cancelled() => return,
            next = next => match next {
                Some(next) => next,
                None => return,
            },
        };
        if dispatcher.cast(Message::Run(lease, slot)).is_err() {
            tracing::error!("the dispatcher is gone; no more tasks are taken");
            return;
        }
    }
}

/// Passes on which tasks were ended from outside.
async fn listen(bus: Bus, dispatcher: ActorRef<Message>) {
    let mut attempt = retry::FIRST_PAUSE;
    loop {
        match bus.announced_ends().await {
            Ok(mut ends) => {
                while let Some(task) = ends.next().await {
                    if dispatcher.cast(Message::Look(task)).is_err() {
                        return;
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "not told of cancelled tasks"),
        }
        tokio::time::sleep(attempt).await;
        attempt = (attempt * 2).min(retry::MAX_PAUSE);
    }
}

async fn watch_bus(bus: Bus, condition: Condition) {
    let mut ticks = tokio::time::interval(CHECK_EVERY);
    loop {
        ticks.tick().await;
        condition.set(bus.is_connected());
    }
}
