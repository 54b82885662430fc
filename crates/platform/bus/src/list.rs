//! Listing tasks by their submission, at a cost that depends on the page and not on how many tasks
//! there are.

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DirectGetError, DirectGetErrorKind, Stream};
use autoact_trajectory::{Event, TaskKey, Tenant};
use autoact_wire::store::{IndexEntry, IndexRecord};
use futures::{StreamExt, stream};

use crate::connect::Bus;
use crate::error::BusError;
use crate::read::head;
use crate::subjects::{task_of, trajectory_subject};

/// Requests at a time.
const PARALLEL: usize = 16;
/// Positions looked at for one page: expired tasks leave holes, and a page of holes must end.
const MAX_LOOKED_AT: usize = 10_000;

/// The first and the last event of a task: enough for a line in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskHead {
    /// `Submitted`, without the tools.
    pub first: Event,
    /// Where it stands.
    pub last: Event,
}

/// In which order tasks are listed, by submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The latest first.
    #[default]
    NewestFirst,
    /// The earliest that is still there first.
    OldestFirst,
}

/// A part of the list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// In the order that was asked for.
    pub tasks: Vec<TaskHead>,
    /// What to pass as `beyond` for the next page of the same order; `None` at the end.
    pub next: Option<u64>,
}

impl Bus {
    /// Up to `size` tasks of a tenant, submitted beyond position `beyond` in this order: before it
    /// for the newest first, after it for the oldest first. `None`: from the beginning of the
    /// order.
    pub async fn list(&self, tenant: &Tenant, size: usize, order: Order, beyond: Option<u64>) -> Result<Page, BusError> {
        let mut index = self.streams.index.clone();
        let state = index.info().await.map_err(|error| BusError::unavailable("list tasks", error))?.state.clone();
        let (mut oldest, mut newest) = (state.first_sequence.max(1), state.last_sequence);
        match (order, beyond) {
            (Order::NewestFirst, Some(before)) => newest = newest.min(before.saturating_sub(1)),
            (Order::OldestFirst, Some(after)) => oldest = oldest.max(after.saturating_add(1)),
            (_, None) => {}
        }
        let mut page = Page::default();
        if state.messages == 0 || newest < oldest {
            return Ok(page);
        }
        let (positions, last): (Box<dyn Iterator<Item = u64> + Send>, u64) = match order {
            Order::NewestFirst => (Box::new((oldest..=newest).rev()), oldest),
            Order::OldestFirst => (Box::new(oldest..=newest), newest),
        };
        let positions = positions.take(MAX_LOOKED_AT);
        let mut heads =
            stream::iter(positions).map(|position| async move { (position, self.head(tenant, position).await) }).buffered(PARALLEL);
        while let Some((position, head)) = heads.next().await {
            page.next = (position != last).then_some(position);
            page.tasks.extend(head?);
            if page.tasks.len() >= size {
                break;
            }
        }
        Ok(page)
    }

    /// The tenant's task that was submitted at a position of the index; `None` when there is none,
    /// or it has expired.
    async fn head(&self, tenant: &Tenant, position: u64) -> Result<Option<TaskHead>, BusError> {
        let Some(entry) = found(self.streams.index.direct_get(position).await)? else { return Ok(None) };
        let Some(task) = task_of(&entry.subject).filter(|task| task.tenant == *tenant) else { return Ok(None) };
        let submitted = IndexRecord::decode(&entry.payload).is_ok_and(|record| record.entry == IndexEntry::Submitted);
        if !submitted {
            return Ok(None);
        }
        let trajectory: &Stream = &self.streams.trajectories;
        let (first, last) = tokio::join!(
            trajectory.direct_get_first_for_subject(trajectory_subject(&task)),
            trajectory.direct_get_last_for_subject(trajectory_subject(&task)),
        );
        let read = |task: &TaskKey, message: StreamMessage| match head(task, &message) {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::warn!(%task, %error, "a task is left out of the list");
                None
            }
        };
        let (Some(first), Some(last)) = (found(first)?, found(last)?) else { return Ok(None) };
        let (Some(first), Some(last)) = (read(&task, first), read(&task, last)) else { return Ok(None) };
        // a trajectory whose beginning has expired is no task any more
        Ok((first.index == 1).then_some(TaskHead { first, last }))
    }
}

fn found(answer: Result<StreamMessage, DirectGetError>) -> Result<Option<StreamMessage>, BusError> {
    match answer {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
        Err(error) => Err(BusError::unavailable("list tasks", error)),
    }
}
