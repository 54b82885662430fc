//! Going along the index of tasks, from where one stopped to its end.

use autoact_wire::store::{About, IndexRecord};
use futures::{StreamExt, TryStreamExt, stream};

use crate::connect::Bus;
use crate::error::BusError;

/// Requests at a time.
const PARALLEL: usize = 16;
/// Records of one step.
const MAX_RECORDS: u64 = 2_000;

/// Where in the index somebody is.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The last position that was read.
    position: Option<u64>,
}

/// What one step came by.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// With their positions, in order.
    pub(crate) records: Vec<(u64, IndexRecord)>,
    /// There are more.
    pub(crate) more: bool,
}

impl Walk {
    /// The next records. The first step begins at the oldest record, or, with `newest`, where one
    /// step reaches the end.
    ///
    /// # Errors
    /// The bus did not answer; the next step begins where this one did.
    pub(crate) async fn step(&mut self, bus: &Bus, newest: bool) -> Result<Step, BusError> {
        let state = bus.state(&bus.streams.index).await?;
        let begin = if newest { state.last_sequence.saturating_sub(MAX_RECORDS) } else { 0 };
        let from = (self.position.unwrap_or(begin) + 1).max(state.first_sequence);
        let to = state.last_sequence.min(from.saturating_add(MAX_RECORDS - 1));
        let found: Vec<_> = stream::iter(from..=to)
            .map(|position| async move { Ok::<_, BusError>((position, record(bus, position).await?)) })
            .buffered(PARALLEL)
            .try_collect()
            .await?;
        if from <= to {
            self.position = Some(to);
        }
        let records = found.into_iter().filter_map(|(position, record)| Some((position, record?))).collect();
        Ok(Step { records, more: to < state.last_sequence })
    }
}

/// What is recorded of a task at a position; `None`: nothing, or nothing of a task.
async fn record(bus: &Bus, position: u64) -> Result<Option<IndexRecord>, BusError> {
    if let Ok(message) = bus.streams.index.direct_get(position).await {
        return Ok(IndexRecord::decode(&message.payload).ok());
    }
    // a replica that lags behind, or a message that was removed: the leader knows
    Ok(match bus.record_at(position).await? {
        Some((_, About::Task(record))) => Some(record),
        _ => None,
    })
}
