//! Running tasks: leases are taken from the queue, each becomes an actor, and the actor drives its
//! task until it ends or is given back.

pub(crate) mod actor;
mod copy;
pub(crate) mod dispatcher;
pub(crate) mod log;
pub(crate) mod runner;
pub(crate) mod sweep;
pub(crate) mod tenants;
pub(crate) mod work;

use std::time::Duration;

use autoact_bus::Bus;
use autoact_planning::Agents;
use tokio_util::sync::CancellationToken;

use crate::agents::memory::Rememberer;

/// What all running tasks of this process have in common.
pub(crate) struct RunContext {
    pub(crate) bus: Bus,
    pub(crate) agents: Agents,
    pub(crate) memory: Rememberer,
    /// This gateway instance's name.
    pub(crate) writer: String,
    /// Times a task may be taken up in a row without getting any further.
    pub(crate) max_attempts: u32,
    /// No new tasks are taken; those that run may end.
    pub(crate) draining: CancellationToken,
}

/// The longest pause before a task that waits for a service is tried again.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);
