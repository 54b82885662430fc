//! Whether other threads keep the processor from the engine's own: the run delay that Linux counts
//! (`schedstat`, Documentation/scheduler/sched-stats.rst in its sources).
//!
//! A second thread makes a pass over a small model shorter while a core is idle. Where none is, it
//! takes the time of another agent's, and a pass waits for whichever thread was interrupted.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The machine is full where a thread that could run waits for more than this share of the time.
const FULL: f64 = 0.2;
/// It has a core to spare again below this share. Lone tasks stay below half of [`FULL`] with two
/// threads, and saturated groups above it with one.
const SPARE: f64 = 0.1;
/// A decision rests on so many nanoseconds in which the thread ran or waited.
const WINDOW: u64 = 20_000_000;

/// What a thread ran and waited, since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct RunDelay {
    /// The thread's `schedstat`. `None`: the system counts no run delay.
    file: Option<File>,
    ran: u64,
    waited: u64,
    full: bool,
}

impl RunDelay {
    /// That of the calling thread.
    pub(crate) fn of_this_thread() -> RunDelay {
        // full until the first window says something else
        RunDelay { file: File::open("/proc/thread-self/schedstat").ok(), full: true, ..RunDelay::default() }
    }

    /// Whether the machine is full. Where the system counts no run delay, it counts as full.
    pub(crate) fn is_full(&mut self) -> bool {
        if let Some((ran, waited)) = self.file.as_ref().and_then(read) {
            self.note(ran, waited);
        }
        self.full
    }

    /// Takes in the thread's counts so far, in nanoseconds.
    fn note(&mut self, ran: u64, waited: u64) {
        let (running, waiting) = (ran.saturating_sub(self.ran), waited.saturating_sub(self.waited));
        let both = running.saturating_add(waiting);
        if both < WINDOW {
            return;
        }
        // exact for any number of nanoseconds that a window can have
        let share = waiting as f64 / both as f64;
        self.full = share > if self.full { SPARE } else { FULL };
        (self.ran, self.waited) = (ran, waited);
    }
}

/// Nanoseconds on the processor, and nanoseconds in a run queue.
fn read(file: &File) -> Option<(u64, u64)> {
    let mut line = [0; 96];
    let length = file.read_at(&mut line, 0).ok()?;
    let mut counts = std::str::from_utf8(line.get(..length)?).ok()?.split_ascii_whitespace().map(|count| count.parse().ok());
    Some((counts.next()??, counts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_machine_is_noticed_and_left() {
        let mut delay = RunDelay { full: true, ..RunDelay::default() };
        let (mut ran, mut waited) = (0, 0);
        let mut after = |running: u64, waiting: u64| {
            (ran, waited) = (ran + running * WINDOW / 100, waited + waiting * WINDOW / 100);
            delay.note(ran, waited);
            delay.full
        };
        assert!(after(50, 0), "half a window tells nothing");
        assert!(!after(49, 1));
        assert!(!after(90, 10) && !after(85, 15), "between both it stays as it is");
        assert!(after(70, 30));
        assert!(after(85, 15) && after(40, 60));
        assert!(!after(95, 5));
    }

    #[test]
    fn what_the_system_counts_is_read() {
        let mut delay = RunDelay::of_this_thread();
        if delay.file.is_none() {
            assert!(delay.is_full(), "nothing is counted here");
            return;
        }
        let mut sum = 0_u64;
        while read(delay.file.as_ref().unwrap()).unwrap().0 < WINDOW {
            sum = std::hint::black_box(sum.wrapping_mul(3).wrapping_add(1));
        }
        delay.is_full();
        assert!(delay.ran >= WINDOW);
    }
}
