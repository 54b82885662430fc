//! The application: submit, get, list, watch and control tasks, in the domain's terms. Doors call
//! it; it knows none of them.

mod admission;
pub(crate) mod approval;
mod artifact;
mod cancel;
mod change;
mod delete;
mod error;
mod hold;
mod knowledge;
mod list;
pub(crate) mod quota;
mod retry;
pub(crate) mod submit;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use autoact_access::{Principal, Role};
use autoact_bus::{Bus, OpenTasks};
use autoact_planning::Contexts;
use autoact_trajectory::{FoldError, Limits, MAX_BY_BYTES, Task, TaskId, TaskKey, cut};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::agents::catalog::{Catalog, Selected};
use crate::agents::choice::Listed;
use crate::agents::documents::Shelves;
use crate::agents::memory::Forgetter;
use crate::run::tenants::Tenants;
use crate::tasks::approval::Approvals;
use crate::tasks::quota::Quotas;
use crate::tasks::submit::check_question;

pub(crate) use admission::NoPlace;
pub(crate) use error::{SubmitError, TaskError};
pub(crate) use hold::{Input, Said};
pub(crate) use list::{Line, List, State};
pub(crate) use retry::{Bounds, Retry};
pub(crate) use submit::Submission;
pub(crate) use watch::{Watched, WatchedStream};

/// What the doors call.
pub(crate) struct Application {
    pub(crate) bus: Bus,
    /// Whose tasks run here.
    pub(crate) tenants: Arc<Tenants>,
    /// What each of them may have.
    pub(crate) quotas: Quotas,
    /// Which actions wait for a person's approval, by tenant.
    pub(crate) approvals: Approvals,
    /// What remembers ended tasks; `None`: nothing does.
    pub(crate) memory: Option<Forgetter>,
    /// This gateway instance's name.
    pub(crate) writer: String,
    pub(crate) catalog: Arc<Catalog>,
    /// Which collections there are; `None`: nobody keeps any.
    pub(crate) shelves: Option<Arc<dyn Shelves>>,
    /// How much the agents' models can read.
    pub(crate) contexts: Arc<dyn Contexts>,
    /// The bounds of a task that asks for none.
    pub(crate) limits: Limits,
    /// The largest bounds that a task may ask for.
    pub(crate) max_limits: Limits,
    /// Tasks that may be queued or running.
    pub(crate) max_tasks: u64,
    /// Tasks that may be open, those that are held back included.
    pub(crate) max_open: u64,
    /// The open tasks.
    pub(crate) open: OpenTasks,
    /// Submissions between the look at the queue and the entry into it.
    pub(crate) entering: AtomicU64,
    /// Clients that may watch at a time.
    pub(crate) max_watchers: usize,
    /// Places for clients that watch.
    pub(crate) watchers: Arc<Semaphore>,
    /// Nothing runs here any more: streams end.
    pub(crate) leaving: CancellationToken,
}

impl Application {
    /// The task as its events say it is. Another tenant's is not there.
    pub(crate) async fn get(&self, who: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        who.require(Role::Ask)?;
        let events = self.bus.load(&key(who, id)).await?;
        if events.is_empty() {
            return Err(TaskError::NotFound(id.clone()));
        }
        Task::fold(&events).map_err(|source| match source {
            // its beginning has expired
            FoldError::NotSubmitted { .. } => TaskError::NotFound(id.clone()),
            source => TaskError::Fold { task: id.clone(), source: Box::new(source) },
        })
    }

    /// The tools that a task can name.
    pub(crate) async fn tools(&self, who: &Principal) -> Result<Arc<Listed>, SubmitError> {
        who.require(Role::Ask)?;
        Ok(self.catalog.tools_now().await?)
    }

    /// The tools that a task with this question would have if it named none.
    pub(crate) async fn choose_tools(&self, who: &Principal, question: &str) -> Result<Selected, SubmitError> {
        who.require(Role::Ask)?;
        check_question(question)?;
        // what was added a moment ago counts
        self.catalog.tools_now().await?;
        Ok(self.catalog.select(&[], question).await?)
    }
}

/// The name of a caller's task `id`: whatever id it names, it is its own tenant's.
fn key(who: &Principal, id: &TaskId) -> TaskKey {
    TaskKey::new(who.tenant.clone(), id.clone())
}

/// Who asks, as events tell it.
fn name(who: &Principal) -> String {
    cut(who.name.clone(), MAX_BY_BYTES).0
}
