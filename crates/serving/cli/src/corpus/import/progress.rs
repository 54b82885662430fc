//! How far an import is.

use std::time::{Duration, Instant};

use autoact_base::lines::one_line;
use indicatif::{ProgressBar, ProgressStyle};

use crate::out;

/// How often the bar is drawn, so that the time moves while a large file is read.
const TICK: Duration = Duration::from_millis(500);

/// Where there is no terminal, a line says how far it is: first after so long, then as often.
const NOTE_EVERY: Duration = Duration::from_secs(2);

/// How far the import is, on standard error.
pub(super) struct Progress {
    bar: ProgressBar,
    total: usize,
    noted: Instant,
}

impl Progress {
    pub(super) fn new(total: usize) -> Progress {
        let bar = ProgressBar::new(total as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} files  {elapsed}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Progress { bar, total, noted: Instant::now() }
    }

    /// So many files are done, and this one comes next.
    pub(super) fn step(&mut self, done: usize, path: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(one_line(path));
        if self.bar.is_hidden() && self.noted.elapsed() >= NOTE_EVERY {
            self.noted = Instant::now();
            out::note(format_args!("{done}/{} files", self.total));
        }
    }

    /// It is at its end.
    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}
