//! The state shared by the engine's handle and its thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{AdapterVersion, BoundAdapter, Places, Tokenizer, Transformer};

/// An adapter bound to the engine's model.
#[derive(Debug)]
pub(crate) struct LoadedAdapter {
    pub(crate) version: AdapterVersion,
    pub(crate) bound: BoundAdapter,
}

/// The model, and the load of the engine.
pub(crate) struct EngineState {
    pub(crate) name: String,
    /// The digest of the base that adapters must name.
    pub(crate) base_digest: String,
    pub(crate) model: Transformer,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) context_length: usize,
    /// The waiting and running requests.
    pub(crate) places: Places,
    /// Mean duration of a request in microseconds, as an exponential moving average.
    pub(crate) mean_micros: AtomicU64,
    /// What its thread is at.
    pub(crate) at_work: AtWork,
}

/// Since when the thread is at one piece of work: a pass, or the beginning of a sequence.
#[derive(Debug)]
pub(crate) struct AtWork {
    origin: Instant,
    /// Microseconds from `origin` to the beginning, plus 1; 0: it waits for work.
    since: AtomicU64,
}

impl Default for AtWork {
    fn default() -> Self {
        Self { origin: Instant::now(), since: AtomicU64::new(0) }
    }
}

impl AtWork {
    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// The next piece begins; the one before has ended.
    pub(crate) fn begin(&self) {
        self.since.store(self.now() + 1, Ordering::Relaxed);
    }

    /// The last piece has ended.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// How long the present piece lasts.
    pub(crate) fn lasts(&self) -> Option<Duration> {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_micros(self.now().saturating_sub(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_work_lasts_until_the_next_begins() {
        let at_work = AtWork::default();
        assert_eq!(at_work.lasts(), None);
        at_work.begin();
        // it grows as long as the piece does not end
        while at_work.lasts().unwrap() < Duration::from_millis(5) {
            std::thread::yield_now();
        }
        at_work.begin();
        assert!(at_work.lasts().is_some());
        at_work.end();
        assert_eq!(at_work.lasts(), None);
    }
}
