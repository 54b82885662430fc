//! Takes tasks from the queue, and sees to their end when the service ends.

use std::sync::Arc;
use std::time::Duration;

use autoact_bus::{Bus, Leases};
use futures::StreamExt;
use ractor::ActorRef;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::patience;
use crate::run::dispatcher::Message;

/// How long tasks that are given back may take to stop. They only drop a call and say so on the
/// bus, but a busy bus takes seconds, and a lease that is not given back holds its task up for half
/// a minute.
const GIVE_BACK_LIMIT: Duration = Duration::from_secs(8);
/// How long what is left to be said on the bus may take after that.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// Takes tasks and sees to their end.
pub(crate) struct Work {
    pub(crate) dispatcher: ActorRef<Message>,
    pub(crate) bus: Bus,
    pub(crate) running: watch::Sender<usize>,
    pub(crate) settling: TaskTracker,
    pub(crate) draining: CancellationToken,
    pub(crate) leaving: CancellationToken,
    pub(crate) drain: Duration,
}

impl Work {
    /// Until the service drains: takes leases. Then, in this order: no new ones; the running tasks
    /// may end; what is left is given back for another gateway; clients' streams end; and when the
    /// calls are done, the connection to the bus is closed.
    pub(crate) async fn run(self, leases: Leases, slots: Arc<Semaphore>, stopping: CancellationToken) {
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
        let _ = tokio::time::timeout(SETTLE_LIMIT, self.settling.wait()).await;
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

/// Passes on which tasks were ended or paused from outside.
pub(crate) async fn listen(bus: Bus, dispatcher: ActorRef<Message>) {
    let mut attempt = patience::FIRST_PAUSE;
    loop {
        match bus.announced_changes().await {
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
        attempt = (attempt * 2).min(patience::MAX_PAUSE);
    }
}
