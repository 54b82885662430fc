//! Whose tasks run here. Where callers have tenants, those of the tokens, and those that are found
//! in the queue: a task that another gateway accepted must not wait because nobody here knows its
//! tenant.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use autoact_access::Authority;
use autoact_bus::{Bus, BusError};
use autoact_trajectory::Tenant;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::agents::memory::deliver;
use crate::agents::remote::MemoryService;

/// How long a task of a new tenant may wait that another gateway accepted.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The tenants whose tasks run here. It only grows.
pub(crate) struct Tenants {
    known: watch::Sender<BTreeSet<Tenant>>,
    /// Whether others may come.
    grows: bool,
}

impl Tenants {
    pub(crate) fn new(first: impl IntoIterator<Item = Tenant>, grows: bool) -> Tenants {
        Tenants { known: watch::Sender::new(first.into_iter().collect()), grows }
    }

    /// Runs the tasks of these too, if others may come.
    pub(crate) fn add(&self, tenants: &BTreeSet<Tenant>) {
        if !self.grows {
            return;
        }
        self.known.send_if_modified(|known| {
            let before = known.len();
            known.extend(tenants.iter().cloned());
            known.len() > before
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<BTreeSet<Tenant>> {
        self.known.subscribe()
    }

    /// Looks for others on the bus, and in the file of tokens when it changes. A task without end.
    pub(crate) async fn find(self: Arc<Self>, bus: Bus, authority: Option<Arc<Authority>>) {
        let tokens = async {
            let Some(authority) = authority else { return std::future::pending::<()>().await };
            loop {
                let (tenants, changed) = authority.tenants();
                self.add(&tenants);
                changed.await;
            }
        };
        let queued = async {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // once: memory may still wait for tasks of tenants that have none in the queue
            let mut served = false;
            loop {
                ticks.tick().await;
                match found(&bus, served).await {
                    Ok(tenants) => {
                        served = true;
                        self.add(&tenants);
                    }
                    Err(error) => tracing::debug!(%error, "not known whose tasks are in the queue"),
                }
            }
        };
        tokio::join!(tokens, queued);
    }
}

async fn found(bus: &Bus, served: bool) -> Result<BTreeSet<Tenant>, BusError> {
    let mut tenants = bus.queued_tenants().await?;
    if !served {
        tenants.extend(bus.served_tenants().await?);
    }
    Ok(tenants)
}

/// Tells memory what is in the outboxes of all tenants. A task without end.
pub(crate) async fn deliver_all(bus: Bus, service: Arc<dyn MemoryService>, mut tenants: watch::Receiver<BTreeSet<Tenant>>) {
    let mut served = BTreeSet::new();
    let mut outboxes = JoinSet::new();
    loop {
        for tenant in tenants.borrow_and_update().iter() {
            if served.insert(tenant.clone()) {
                outboxes.spawn(deliver(bus.outbox(tenant), service.clone()));
            }
        }
        if tenants.changed().await.is_err() {
            // nobody adds any more: those that are there go on
            return while outboxes.join_next().await.is_some() {};
        }
    }
}
