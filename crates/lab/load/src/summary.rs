//! The report as text for a terminal.

use std::fmt::Write as _;

use crate::html::ms;
use crate::report::Report;

/// Number of parts shown; the others are small.
const PARTS: usize = 12;

impl Report {
    /// A summary with the most important figures.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        let tasks = &self.tasks;
        if let Some(machine) = &self.machine {
            let _ = writeln!(out, "machine: {machine}");
        }
        // writing to a string cannot fail
        let _ = writeln!(
            out,
            "{} tasks finished, {} failed{} in {:.1} s; {:.2} a second arrived, {:.2} a second finished",
            tasks.finished,
            tasks.failed,
            if tasks.dropped > 0 { format!(", {} dropped", tasks.dropped) } else { String::new() },
            self.seconds,
            tasks.arrived_per_second,
            tasks.finished_per_second
        );
        if tasks.reconnects > 0 {
            let times = if tasks.reconnects == 1 { "once" } else { &format!("{} times", tasks.reconnects) };
            let _ = writeln!(out, "resumed after a gateway stopped: {} tasks, {times}", tasks.resumed);
        }
        let outcomes: Vec<String> = self.outcomes.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let codes: Vec<String> = self.codes.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = writeln!(out, "outcomes: {}; codes: {}", join(&outcomes), join(&codes));
        for (code, messages) in &self.messages {
            let _ = writeln!(out, "  {code}: {}", messages.join(" · "));
        }
        if self.score.scored > 0 {
            let _ = writeln!(
                out,
                "right answers: {} of {} ({:.1}%)",
                self.score.right,
                self.score.scored,
                100.0 * self.score.right as f64 / self.score.scored as f64
            );
        }
        if tasks.finished == 0 {
            return out;
        }
        let heading = "from the intended arrival";
        let _ = writeln!(out, "\n{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "", "mean", "p50", "p90", "p99", "p99.9", "longest");
        let from = [(heading, &self.latency), ("from the sending", &self.from_sending)];
        let calls = self.calls.iter().map(|(name, call)| (name.as_str(), call));
        for (name, row) in from.into_iter().chain(calls) {
            let _ = write!(out, "{name:<28}{:>10}", ms(row.mean_ms));
            for percentile in ["p50", "p90", "p99", "p99.9"] {
                let _ = write!(out, "{:>10}", ms(row.percentile(percentile)));
            }
            let _ = writeln!(out, "{:>10}", ms(row.max_ms));
        }
        let _ = writeln!(out, "\n{:<28}{:>10}{:>10}{:>10}{:>10}", "where a task's time goes", "share", "mean", "p50", "p99");
        for part in self.parts.iter().take(PARTS) {
            let _ = writeln!(
                out,
                "  {:<26}{:>9.1}%{:>10}{:>10}{:>10}",
                format!("{} {}", part.agent, part.phase),
                100.0 * part.share,
                ms(part.mean_ms),
                ms(part.distribution.percentile("p50")),
                ms(part.distribution.percentile("p99"))
            );
        }
        let _ = writeln!(out, "  the phases add up to {:.2}% of what the client saw", 100.0 * self.coverage.part);
        let (mut prompt, mut cached, mut written) = (0, 0, 0);
        for tokens in self.tokens.values() {
            prompt += tokens.prompt;
            cached += tokens.cached;
            written += tokens.completion;
        }
        let loops: u64 = self.rounds.iter().map(|(rounds, tasks)| u64::from(*rounds) * tasks).sum();
        let _ = writeln!(
            out,
            "\ntokens: {prompt} read, {cached} of them cached, {written} written; {:.2} planning loops a task",
            loops as f64 / tasks.finished as f64
        );
        let _ = writeln!(out, "{}", self.note);
        out
    }
}

fn join(all: &[String]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use crate::report::Report;

    #[test]
    fn the_numbers_are_there() {
        let summary = crate::testing::report(40).summary();
        for expected in
            ["40 tasks finished, 2 failed", "approved 40", "RESOURCE_EXHAUSTED 2", "20 of 40", "tool retry", "100.00%", "4000 read"]
        {
            assert!(summary.contains(expected), "`{expected}` is missing in\n{summary}");
        }
        assert!(Report::default().summary().contains("outcomes: none"));
    }
}
