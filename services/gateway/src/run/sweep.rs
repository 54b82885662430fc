//! Sees to tasks that were accepted and never queued, because whoever accepted them died in
//! between.

use std::time::{Duration, SystemTime};

use autoact_bus::{Bus, Unqueued};

/// With the age at which a task is looked at, well below the half minute that is promised.
const EVERY: Duration = Duration::from_secs(5);

/// Looks again and again. A task without end.
pub(crate) async fn sweep(bus: Bus) {
    let mut unqueued = Unqueued::default();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match unqueued.step(&bus, SystemTime::now()).await {
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
