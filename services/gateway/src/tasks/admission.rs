//! Places among the tasks that are queued or running: a task needs one when it is submitted, and
//! again when it goes on after it was held back, since a task that is held back has none. A new task
//! also needs one among the open tasks, where those that are held back count too.

use std::sync::atomic::{AtomicU64, Ordering};

use autoact_access::Principal;
use autoact_bus::{BusError, Full};
use autoact_trajectory::TaskKey;

use crate::tasks::Application;
use crate::tasks::quota::Place;

/// Why there is no place for a task now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error("{running} tasks of your tenant are queued or running, its bound is {most}; call again later, or cancel some")]
    Quota { running: u64, most: u64 },
    #[error("{running} tasks are queued or running, the bound is {most}; call again later")]
    Full { running: u64, most: u64 },
    #[error(
        "{open} tasks of your tenant have not ended, its bound is {most}; answer, resume or cancel some \
         (`autoact tasks list --state paused`, `--state input-required`)"
    )]
    OpenQuota { open: u64, most: u64 },
    #[error("{open} tasks have not ended, the bound is {most}; answer, resume or cancel some that are held back")]
    Open { open: u64, most: u64 },
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// A task on its way into the queue; counted until dropped.
pub(super) struct Entering<'a> {
    _of_all: Counted<'a>,
    _of_tenant: Place,
}

impl Application {
    /// The place of a task that is about to be submitted.
    pub(super) async fn admit_new(&self, who: &Principal, task: &TaskKey) -> Result<Entering<'_>, NoPlace> {
        let entering = self.admit(who).await?;
        let of_tenant = self.quotas.of(&task.tenant).open;
        let enter = || self.open.enter(task, self.bus.now(), of_tenant, self.max_open);
        if enter().is_err() {
            // some may have ended since the index was read last
            self.open.catch_up(&self.bus).await?;
            enter().map_err(|full| {
                metrics::counter!("autoact_tasks_refused_total").increment(1);
                match full {
                    Full::Tenant(open) => NoPlace::OpenQuota { open, most: of_tenant.unwrap_or(u64::MAX) },
                    Full::All(open) => NoPlace::Open { open, most: self.max_open },
                }
            })?;
        }
        Ok(entering)
    }

    /// A place among the tasks that may be queued or running: of all, and of the caller's tenant.
    /// Exact for one gateway; several may together let a few more in.
    pub(super) async fn admit(&self, who: &Principal) -> Result<Entering<'_>, NoPlace> {
        let (of_tenant, before) = self.quotas.enter(&who.tenant);
        if let Some(most) = self.quotas.of(&who.tenant).tasks {
            let running = self.bus.backlog_of(&who.tenant, most).await? + before;
            if running >= most {
                metrics::counter!("autoact_tasks_refused_total").increment(1);
                return Err(NoPlace::Quota { running, most });
            }
        }
        let of_all = Counted { count: &self.entering, before: self.entering.fetch_add(1, Ordering::Relaxed) };
        let running = self.bus.backlog().await? + of_all.before;
        if running >= self.max_tasks {
            metrics::counter!("autoact_tasks_refused_total").increment(1);
            return Err(NoPlace::Full { running, most: self.max_tasks });
        }
        Ok(Entering { _of_all: of_all, _of_tenant: of_tenant })
    }
}

/// One of those on their way, until dropped.
struct Counted<'a> {
    count: &'a AtomicU64,
    before: u64,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
