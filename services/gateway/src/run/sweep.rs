//! Sees to tasks that were accepted and never queued, because whoever accepted them died in
//! between; to tasks that were held back and forgotten; and to room on the bus.

use std::sync::Arc;
use std::time::Duration;

use autoact_bus::{Bus, BusError, Retention, Unqueued};

use crate::tasks::Application;

/// With the age at which a task is looked at, well below the half minute that is promised.
const EVERY: Duration = Duration::from_secs(5);

/// Looks again and again. A task without end.
pub(crate) async fn sweep(bus: Bus) {
    let mut unqueued = Unqueued::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match unqueued.step(&bus, bus.now()).await {
            Ok(tasks) => {
                for task in tasks {
                    metrics::counter!("autoact_tasks_requeued_total").increment(1);
                    tracing::warn!(%task, "the task was accepted and never queued; it is queued now");
                }
            }
            Err(error) => tracing::debug!(%error, "the index of tasks was not read"),
        }
    }
}

/// Counts the open tasks, and cancels those that have been held back for longer than ended ones are
/// kept. A task without end.
pub(crate) async fn open(application: Arc<Application>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = step(&application).await {
            tracing::debug!(%error, "the open tasks were not counted");
        }
        metrics::gauge!("autoact_tasks_open").set(application.open.count() as f64);
    }
}

async fn step(application: &Application) -> Result<(), BusError> {
    let Application { bus, open, .. } = application;
    open.catch_up(bus).await?;
    // by the server's clock: a gateway's that is wrong must not end what is young
    for task in open.look(bus, bus.time().await?).await? {
        match application.cancel_forgotten(&task).await {
            Ok(true) => tracing::info!(%task, "the task was held back for too long, and is cancelled"),
            Ok(false) => {}
            Err(error) => tracing::debug!(%task, %error, "a task that was held back for too long was not cancelled"),
        }
    }
    Ok(())
}

/// Removes the tasks that ended first when there is no room for more, or when they are old. A task
/// without end. Each gateway does it; twice is once.
pub(crate) async fn retain(bus: Bus) {
    let mut retention = Retention::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            // by the server's clock: a gateway's that is wrong must not remove what is young
            let swept = match bus.time().await {
                Ok(now) => retention.step(&bus, now).await,
                Err(error) => Err(error),
            };
            match swept {
                Ok(swept) => {
                    metrics::counter!("autoact_tasks_purged_total").increment(swept.purged.len() as u64);
                    if !swept.purged.is_empty() || swept.trimmed > 0 {
                        tracing::info!(
                            tasks = swept.purged.len(),
                            records = swept.trimmed,
                            "removed the oldest ended tasks, and recorded it"
                        );
                    }
                    if !swept.more {
                        break;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "no room was made on the bus");
                    break;
                }
            }
        }
    }
}
