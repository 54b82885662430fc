//! Sees to tasks that were accepted and never queued, because whoever accepted them died in
//! between; and to room on the bus.

use std::time::Duration;

use autoact_bus::{Bus, Retention, Unqueued};

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
