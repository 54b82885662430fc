//! A load as it runs: one line that changes on a terminal, a line every few seconds otherwise.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use autoact_load::{Progress, ms};
use indicatif::{ProgressBar, ProgressStyle};

use crate::out;

/// Without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on standard error: standard output is the report's.
pub(super) struct Live {
    bar: Option<ProgressBar>,
    shown: Instant,
}

impl Live {
    pub(super) fn new() -> Live {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Live { bar, shown: Instant::now() }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        self.say(&line(progress));
    }

    /// Shows a line of another kind of load.
    pub(super) fn say(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(line.to_owned());
                bar.tick();
            }
            None if self.shown.elapsed() >= LINE_EVERY => {
                self.shown = Instant::now();
                out::note(line);
            }
            None => {}
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let rate = |count: u64| count as f64 / seconds.min(progress.planned.as_secs_f64()).max(0.001);
    let state = match (progress.ending, progress.warm) {
        (true, _) => "  waiting for the last",
        (false, false) => "  warming up",
        (false, true) => "",
    };
    let behind = progress.due - progress.begun.min(progress.due);
    let behind = if behind > 0 { format!(" ({behind} behind)") } else { String::new() };
    let time = |duration: Duration| ms(duration.as_secs_f64() * 1e3);
    format!(
        "{seconds:.0} of {:.0} s  asked {:.1}/s, begun {:.1}/s{behind}  in flight {}  finished {}  failed {}  p50 {}  p99 {}{state}",
        progress.planned.as_secs_f64(),
        rate(progress.due),
        rate(progress.begun),
        progress.in_flight,
        progress.finished,
        progress.failed,
        time(progress.p50),
        time(progress.p99)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_shows() {
        let progress = Progress {
            elapsed: Duration::from_secs(10),
            planned: Duration::from_secs(65),
            warm: true,
            due: 50,
            begun: 40,
            in_flight: 7,
            p50: Duration::from_millis(412),
            ..Progress::default()
        };
        let line = line(&progress);
        assert!(line.contains("asked 5.0/s, begun 4.0/s (10 behind)  in flight 7") && line.contains("p50 412 ms"), "{line}");
    }
}
