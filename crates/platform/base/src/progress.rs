//! How far long work is: counted where it is done, looked at where it is shown.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The bytes that one piece of work has to read, and those it has read. Cheap to clone: all clones
/// are the same count.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    /// `None` before the work begins and after it has ended.
    begun: Mutex<Option<Instant>>,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Work of `total` bytes begins: the count starts at nothing.
    pub fn begin(&self, total: u64) {
        self.count.done.store(0, Ordering::Relaxed);
        self.count.total.store(total, Ordering::Relaxed);
        *self.count.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// So many more bytes are done.
    pub fn add(&self, bytes: u64) {
        self.count.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes must be done again.
    pub fn take_back(&self, bytes: u64) {
        let less = |done: u64| Some(done.saturating_sub(bytes));
        let _ = self.count.done.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The work has ended.
    pub fn end(&self) {
        *self.count.begun.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How far the work is; `None` while there is none.
    pub fn look(&self) -> Option<Look> {
        let elapsed = self.count.begun.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.elapsed();
        let (done, total) = (self.count.done.load(Ordering::Relaxed), self.count.total.load(Ordering::Relaxed));
        Some(Look { done, total, elapsed })
    }
}

/// How far work was at one moment. Shown as figure and rate: `3.1 of 15.2 GB, 1.4 GB/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Since the work began.
    pub elapsed: Duration,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = unit(self.total);
        let (done, total) = (self.done as f64 / unit, self.total as f64 / unit);
        let rate = self.done as f64 / self.elapsed.as_secs_f64().max(0.001);
        let (rate_unit, rate_name) = self::unit(rate as u64);
        write!(f, "{done:.1} of {total:.1} {name}, {:.1} {rate_name}/s", rate / rate_unit)
    }
}

/// The largest unit that is not above a number of bytes, at least a megabyte.
fn unit(bytes: u64) -> (f64, &'static str) {
    if bytes >= 1_000_000_000 { (1e9, "GB") } else { (1e6, "MB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_are_one_count() {
        let progress = Progress::default();
        assert_eq!(progress.look(), None);
        let other = progress.clone();
        progress.begin(100);
        other.add(70);
        progress.take_back(20);
        let look = other.look().unwrap();
        assert_eq!((look.done, look.total), (50, 100));
        progress.take_back(60);
        assert_eq!(other.look().unwrap().done, 0);
        other.end();
        assert_eq!(progress.look(), None);
    }

    #[test]
    fn figure_and_rate_have_their_own_units() {
        let shown = |done, total, secs| Look { done, total, elapsed: Duration::from_secs(secs) }.to_string();
        assert_eq!(shown(3_100_000_000, 15_200_000_000, 2), "3.1 of 15.2 GB, 1.6 GB/s");
        assert_eq!(shown(900_000_000, 15_200_000_000, 10), "0.9 of 15.2 GB, 90.0 MB/s");
        assert_eq!(shown(30_000_000, 270_000_000, 3), "30.0 of 270.0 MB, 10.0 MB/s");
        assert_eq!(shown(0, 270_000_000, 0), "0.0 of 270.0 MB, 0.0 MB/s");
    }
}
