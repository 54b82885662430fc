//! The queue before a server: a maximum number of requests at the server, and of waiting ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autoact_model::GenerateError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Minimum retry delay for an overloaded server.
const LEAST_RETRY: Duration = Duration::from_millis(50);
/// The newest request has the weight 1/`MEAN_OF` in the mean duration.
const MEAN_OF: u64 = 8;

/// The requests at the server and the waiting ones.
#[derive(Debug)]
pub(crate) struct Queue {
    places: Arc<Semaphore>,
    max_in_flight: usize,
    limit: usize,
    /// Number of requests, waiting or at the server.
    here: AtomicUsize,
    /// Mean duration of a request at the server, in microseconds.
    mean: AtomicU64,
}

impl Queue {
    pub(crate) fn new(max_in_flight: usize, waiting: usize) -> Queue {
        let max_in_flight = max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        Queue {
            places: Arc::new(Semaphore::new(max_in_flight)),
            max_in_flight,
            limit: max_in_flight.saturating_add(waiting),
            here: AtomicUsize::new(0),
            mean: AtomicU64::new(0),
        }
    }

    /// A ticket; if the queue is full, an error with the retry delay.
    pub(crate) fn enter(self: &Arc<Queue>) -> Result<Ticket, GenerateError> {
        let here = self.here.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket { queue: Arc::clone(self), place: None };
        if here < self.limit {
            return Ok(ticket);
        }
        // all waiting requests have to be served first, `max_in_flight` at a time
        let rounds = u32::try_from((self.limit - self.max_in_flight) / self.max_in_flight + 1).unwrap_or(u32::MAX);
        let mean = Duration::from_micros(self.mean.load(Ordering::Relaxed));
        Err(GenerateError::Overloaded { retry_after: mean.saturating_mul(rounds).max(LEAST_RETRY) })
    }

    #[cfg(test)]
    fn here(&self) -> usize {
        self.here.load(Ordering::Relaxed)
    }
}

/// A place in the queue, and then at the server. Dropping it frees both.
#[derive(Debug)]
pub(crate) struct Ticket {
    queue: Arc<Queue>,
    place: Option<(OwnedSemaphorePermit, Instant)>,
}

impl Ticket {
    /// Waits for a place at the server, in order of arrival.
    pub(crate) async fn place(&mut self) -> Result<(), GenerateError> {
        let permit = Arc::clone(&self.queue.places).acquire_owned().await;
        let permit = permit.map_err(|_| GenerateError::engine("the queue is closed"))?;
        self.place = Some((permit, Instant::now()));
        Ok(())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.here.fetch_sub(1, Ordering::Relaxed);
        if let Some((_, since)) = &self.place {
            let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            let mean = self.queue.mean.load(Ordering::Relaxed);
            let mean = if mean == 0 { micros } else { mean - mean / MEAN_OF + micros / MEAN_OF };
            self.queue.mean.store(mean, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_and_no_more() {
        let queue = Arc::new(Queue::new(1, 1));
        let mut first = queue.enter().unwrap();
        first.place().await.unwrap();
        let mut second = queue.enter().unwrap();
        let refused = queue.enter().unwrap_err();
        assert!(matches!(refused, GenerateError::Overloaded { retry_after } if retry_after >= LEAST_RETRY), "{refused}");
        assert_eq!(queue.here(), 2, "the refused one is gone");
        drop(first);
        second.place().await.unwrap();
        drop(second);
        assert_eq!(queue.here(), 0);
    }
}
