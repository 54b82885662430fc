//! The live view: a bar for the part in hand on a terminal, lines elsewhere, nothing with `--json`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use autoact_learn::{Stage, View};
use indicatif::{ProgressBar, ProgressStyle};

use crate::out;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the learning on standard error.
pub(super) struct Terminal {
    quiet: bool,
    part: Mutex<Part>,
}

/// The part in hand.
struct Part {
    bar: ProgressBar,
    name: String,
    total: u64,
    begun: Instant,
    told: Instant,
}

impl Terminal {
    /// A view; a quiet one shows nothing.
    pub(super) fn new(quiet: bool) -> Terminal {
        let now = Instant::now();
        Terminal { quiet, part: Mutex::new(Part { bar: ProgressBar::hidden(), name: String::new(), total: 0, begun: now, told: now }) }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        self.part().bar.finish_and_clear();
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View for Terminal {
    fn begin(&self, stage: Stage, part: &str, done: u64, total: u64) {
        if self.quiet {
            return;
        }
        let bar = ProgressBar::new(total).with_position(done).with_elapsed(Duration::ZERO);
        if let Ok(style) = ProgressStyle::with_template("{prefix:24} {bar:28} {pos}/{len}  {msg}  {eta} left") {
            bar.set_style(style);
        }
        let name = if part == stage.as_str() { part.to_owned() } else { format!("{stage} {part}") };
        bar.set_prefix(name.clone());
        bar.reset_eta();
        let now = Instant::now();
        *self.part() = Part { bar, name, total, begun: now, told: now };
    }

    fn advance(&self, done: u64, note: &str) {
        if self.quiet {
            return;
        }
        let mut part = self.part();
        part.bar.set_position(done);
        part.bar.set_message(note.to_owned());
        if part.bar.is_hidden() && part.told.elapsed() >= LINE_EVERY {
            part.told = Instant::now();
            out::note(format_args!("{}: {done}/{} {note}", part.name, part.total));
        }
    }

    fn end(&self, summary: &str) {
        if self.quiet {
            return;
        }
        let part = self.part();
        part.bar.finish_and_clear();
        out::note(format_args!("{:<24} {summary}  [{:.1} s]", part.name, part.begun.elapsed().as_secs_f64()));
    }
}
