//! Comparison of two reports: the ratio, its significance, and which part changed.

use std::fmt::Write as _;

use serde::Serialize;

use crate::distribution::{Distribution, QUANTILES};
use crate::html::ms;
use crate::report::Report;

/// Half the width of a 95% confidence interval, in standard errors.
const CHANCE: f64 = 1.96;
/// Maximum increase of the failure rate that is not reported.
const MORE_FAILURES: f64 = 0.01;
/// Number of parts that a verdict names.
const NAMED_PARTS: usize = 4;

/// The change of a figure from the first report to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It increased significantly.
    Up,
    /// It decreased significantly.
    Down,
    /// No significant change.
    Unclear,
}

/// One figure of both reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its value in the first report, in milliseconds.
    pub a_ms: f64,
    /// Its value in the second report, in milliseconds.
    pub b_ms: f64,
    /// The second value divided by the first.
    pub ratio: Option<f64>,
    /// Whether it changed significantly.
    pub change: Change,
}

/// The comparison of two reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Percentiles of the latency.
    pub latency: Vec<Row>,
    /// Means of the parts of a task's time, the largest difference first.
    pub parts: Vec<Row>,
    /// Medians of single calls.
    pub calls: Vec<Row>,
    /// Finished tasks per second, in both.
    pub finished_per_second: (f64, f64),
    /// Fraction of tasks that did not finish, in both.
    pub failing: (f64, f64),
    /// Fraction of right answers, in both, if known.
    pub right: Option<(f64, f64)>,
    /// Reasons why the two may not be comparable.
    pub cautions: Vec<String>,
    /// The changes, as a sentence.
    pub verdict: String,
}

impl Comparison {
    /// Compares `b` with `a`.
    pub fn new(a: &Report, b: &Report) -> Comparison {
        let latency: Vec<Row> = QUANTILES.iter().map(|(name, quantile)| percentile(name, *quantile, &a.latency, &b.latency)).collect();
        let calls = a.calls.iter().filter_map(|(name, call)| Some(percentile(name, 0.5, call, b.calls.get(name)?))).collect();
        let parts = parts(a, b);
        let failing = |report: &Report| {
            let tasks = &report.tasks;
            tasks.failed as f64 / (tasks.failed + tasks.finished).max(1) as f64
        };
        let right = |report: &Report| report.score.right as f64 / report.score.scored.max(1) as f64;
        let scored = a.score.scored > 0 && b.score.scored > 0;
        let mut comparison = Comparison {
            latency,
            parts,
            calls,
            finished_per_second: (a.tasks.finished_per_second, b.tasks.finished_per_second),
            failing: (failing(a), failing(b)),
            right: scored.then(|| (right(a), right(b))),
            cautions: cautions(a, b),
            verdict: String::new(),
        };
        comparison.verdict = comparison.put();
        comparison
    }

    /// The reasons why the second report is worse than a factor allows; empty if it is not. Only
    /// significant increases of percentiles count.
    pub fn failures(&self, most: f64) -> Vec<String> {
        let slower = self.latency.iter().filter(|row| row.change == Change::Up && row.ratio.is_some_and(|ratio| ratio > most));
        let mut failures: Vec<String> =
            slower.map(|row| format!("{} is {:.2} times as long; {most} is allowed", row.name, row.ratio.unwrap_or_default())).collect();
        if self.more_failures() {
            failures.push(format!("{:.1}% of the tasks fail, {:.1}% did before", 100.0 * self.failing.1, 100.0 * self.failing.0));
        }
        failures
    }

    fn more_failures(&self) -> bool {
        self.failing.1 > self.failing.0 + MORE_FAILURES
    }

    fn put(&self) -> String {
        let clear = |name: &str| self.latency.iter().find(|row| row.name == name && row.change != Change::Unclear);
        let mut said: Vec<String> = Vec::new();
        for name in ["p50", "p99"] {
            let Some((row, ratio)) = clear(name).and_then(|row| Some((row, row.ratio?))) else { continue };
            let (factor, word) = if row.change == Change::Up { (ratio, "slower") } else { (1.0 / ratio, "faster") };
            said.push(format!("{factor:.2} times {word} at {name} ({} → {})", ms(row.a_ms), ms(row.b_ms)));
        }
        let mut verdict = if said.is_empty() {
            "no change of the latency that is more than chance".to_owned()
        } else {
            let parts = self.parts.iter().filter(|row| row.change != Change::Unclear).take(NAMED_PARTS);
            let parts: Vec<String> = parts.map(|row| format!("{} {}", row.name, signed(row.b_ms - row.a_ms))).collect();
            let because = if parts.is_empty() { String::new() } else { format!("; of a mean task: {}", parts.join(", ")) };
            format!("the second is {}{because}", said.join(" and "))
        };
        if self.more_failures() {
            let _ = write!(verdict, "; {:.1}% of its tasks fail, {:.1}% before", 100.0 * self.failing.1, 100.0 * self.failing.0);
        }
        verdict
    }

    /// The comparison as text for a terminal.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut rows = |title: &str, rows: &[Row]| {
            if rows.is_empty() {
                return;
            }
            let _ = writeln!(out, "{title:<24}{:>12}{:>12}{:>9}", "first", "second", "ratio");
            for row in rows {
                let ratio = row.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
                let note = match row.change {
                    Change::Up => "  longer",
                    Change::Down => "  shorter",
                    Change::Unclear => "  (perhaps chance)",
                };
                let _ = writeln!(out, "  {:<22}{:>12}{:>12}{ratio:>9}{note}", row.name, ms(row.a_ms), ms(row.b_ms));
            }
        };
        rows("latency of a task", &self.latency);
        rows("mean of its parts", &self.parts);
        rows("median of a call", &self.calls);
        let (a, b) = self.finished_per_second;
        let _ = writeln!(out, "finished a second       {a:>12.2}{b:>12.2}");
        let _ = writeln!(out, "failing                 {:>11.1}%{:>11.1}%", 100.0 * self.failing.0, 100.0 * self.failing.1);
        if let Some((a, b)) = self.right {
            let _ = writeln!(out, "right answers           {:>11.1}%{:>11.1}%", 100.0 * a, 100.0 * b);
        }
        for caution in &self.cautions {
            let _ = writeln!(out, "caution: {caution}");
        }
        let _ = writeln!(out, "{}", self.verdict);
        out
    }
}

fn signed(millis: f64) -> String {
    format!("{}{}", if millis < 0.0 { "−" } else { "+" }, ms(millis.abs()))
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (a > 0.0).then(|| b / a)
}

/// A percentile. It has changed if the confidence intervals of its rank do not overlap.
fn percentile(name: &str, quantile: f64, a: &Distribution, b: &Distribution) -> Row {
    let interval = |of: &Distribution| {
        let count = of.count as f64;
        let spread = CHANCE * (quantile * (1.0 - quantile) / count.max(1.0)).sqrt();
        // above the last value nothing is known
        let high = if quantile + spread >= 1.0 - 1.0 / (count + 1.0) { f64::INFINITY } else { of.quantile(quantile + spread) };
        (if count == 0.0 { 0.0 } else { of.quantile(quantile - spread) }, high)
    };
    let ((a_low, a_high), (b_low, b_high)) = (interval(a), interval(b));
    let change = if b_low > a_high {
        Change::Up
    } else if b_high < a_low {
        Change::Down
    } else {
        Change::Unclear
    };
    let (a_ms, b_ms) = (a.quantile(quantile), b.quantile(quantile));
    Row { name: name.to_owned(), a_ms, b_ms, ratio: ratio(a_ms, b_ms), change }
}

/// The mean of a part over all tasks, and the variance of that mean.
fn mean(report: &Report, agent: &str, phase: &str) -> (f64, f64) {
    let tasks = report.tasks.finished.max(1) as f64;
    let Some(part) = report.parts.iter().find(|part| part.agent == agent && part.phase == phase) else { return (0.0, 0.0) };
    let of = &part.distribution;
    let square = of.count as f64 / tasks * (of.stdev_ms * of.stdev_ms + of.mean_ms * of.mean_ms);
    (part.mean_ms, (square - part.mean_ms * part.mean_ms).max(0.0) / tasks)
}

fn parts(a: &Report, b: &Report) -> Vec<Row> {
    let mut names: Vec<(&str, &str)> = a.parts.iter().chain(&b.parts).map(|part| (part.agent.as_str(), part.phase.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let row = |(agent, phase): (&str, &str)| {
        let ((a_ms, a_spread), (b_ms, b_spread)) = (mean(a, agent, phase), mean(b, agent, phase));
        let chance = CHANCE * (a_spread + b_spread).sqrt();
        let change = match b_ms - a_ms {
            difference if difference > chance => Change::Up,
            difference if -difference > chance => Change::Down,
            _ => Change::Unclear,
        };
        Row { name: format!("{agent} {phase}"), a_ms, b_ms, ratio: ratio(a_ms, b_ms), change }
    };
    let mut rows: Vec<Row> = names.into_iter().map(row).collect();
    rows.sort_by(|one, other| (other.b_ms - other.a_ms).abs().total_cmp(&(one.b_ms - one.a_ms).abs()));
    rows
}

fn cautions(a: &Report, b: &Report) -> Vec<String> {
    let (one, other) = (&a.asked, &b.asked);
    let mut cautions = Vec::new();
    let mut differ = |what: &str, first: String, second: String| {
        if first != second {
            cautions.push(format!("{what}: `{first}` and `{second}`"));
        }
    };
    let machine = |report: &Report| report.machine.as_ref().map(|machine| format!("{} ({})", machine.processor, machine.instruction_set));
    // reports of earlier versions do not say where they were made
    if let (Some(first), Some(second)) = (machine(a), machine(b)) {
        differ("machine", first, second);
    }
    differ("arrivals", one.arrivals.clone(), other.arrivals.clone());
    differ("rate", format!("{:?}", one.rate), format!("{:?}", other.rate));
    differ("in flight", format!("{:?}", one.in_flight), format!("{:?}", other.in_flight));
    differ("questions", one.questions.clone(), other.questions.clone());
    differ("seed", one.seed.to_string(), other.seed.to_string());
    differ("temperature", one.temperature.to_string(), other.temperature.to_string());
    for (name, report) in [("first", a), ("second", b)] {
        if report.interrupted {
            cautions.push(format!("the {name} was stopped before its time"));
        }
        if report.tasks.finished > 0 && report.coverage.part < 0.95 {
            cautions.push(format!("of the {name} only {:.1}% of the time has an owner", 100.0 * report.coverage.part));
        }
    }
    cautions
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::account::Account;
    use crate::collect::{Collected, Record};
    use crate::phase::{Agent, Phase};
    use crate::report::Asked;
    use crate::seen::End;
    use crate::testing::ms as millis;

    /// A report of `tasks` tasks of 100 to 200 ms each, with `prefill` more ms of Plan-Agent's
    /// prefill.
    fn report(tasks: u64, prefill: u64, failing: u64) -> Report {
        let mut collected = Collected::new(millis(0), millis(10_000));
        for number in 0..tasks + failing {
            let own = millis(100 + 37 * number % 100);
            let parts = [((Agent::Plan, Phase::Decode), own), ((Agent::Plan, Phase::Prefill), millis(prefill))];
            let account = Account { whole: own + millis(prefill), parts: parts.into(), ..Account::default() };
            let end = if number < tasks { End::Finished(Default::default()) } else { End::TimedOut };
            collected.add(Record { arrived: millis(number), ended: millis(number + 200), account, end, right: None, recall_failed: false });
        }
        collected.took = Duration::from_secs(10);
        Report::new(Asked { duration_seconds: 10.0, ..Asked::default() }, SystemTime::UNIX_EPOCH, &collected)
    }

    #[test]
    fn a_slower_part_is_found() {
        let comparison = Comparison::new(&report(1000, 10, 0), &report(1000, 90, 0));
        let p50 = &comparison.latency[0];
        assert_eq!((p50.name.as_str(), p50.change), ("p50", Change::Up));
        assert!((p50.ratio.unwrap() - 1.5).abs() < 0.02, "{p50:?}");
        assert_eq!((comparison.parts[0].name.as_str(), comparison.parts[0].change), ("plan prefill", Change::Up));
        assert_eq!(comparison.parts[1].change, Change::Unclear);
        assert!(comparison.verdict.contains("slower at p50") && comparison.verdict.contains("plan prefill +80"), "{}", comparison.verdict);
        assert!(comparison.failures(2.0).is_empty());
        assert!(!comparison.failures(1.2).is_empty());
        let back = Comparison::new(&report(1000, 90, 0), &report(1000, 10, 0));
        assert!(back.verdict.contains("1.50 times faster at p50") && back.failures(1.0).is_empty(), "{}", back.verdict);
    }

    #[test]
    fn chance_is_not_a_change() {
        let same = Comparison::new(&report(1000, 10, 0), &report(1000, 10, 0));
        assert!(same.verdict.starts_with("no change") && same.failures(1.0).is_empty() && same.cautions.is_empty(), "{same:?}");
        // ten tasks are too few for a p99
        let few = Comparison::new(&report(10, 0, 0), &report(10, 500, 0));
        assert_eq!(few.latency.iter().find(|row| row.name == "p99").map(|row| row.change), Some(Change::Unclear));
        assert_eq!(few.latency[0].change, Change::Up);
    }

    #[test]
    fn tasks_that_fail_are_a_failure() {
        let comparison = Comparison::new(&report(1000, 10, 0), &report(900, 10, 100));
        assert!(comparison.failures(5.0)[0].contains("10.0% of the tasks fail"), "{:?}", comparison.failures(5.0));
        assert!(comparison.verdict.contains("10.0%"));
    }

    #[test]
    fn empty_and_unlike_reports_are_compared_with_caution() {
        let empty = Comparison::new(&Report::default(), &Report::default());
        assert!(!empty.table().contains("NaN") && empty.failures(1.0).is_empty());
        let mut other = report(100, 10, 0);
        (other.asked.seed, other.interrupted, other.asked.rate) = (9, true, Some(3.0));
        let comparison = Comparison::new(&report(100, 10, 0), &other);
        assert_eq!(comparison.cautions.len(), 3, "{:?}", comparison.cautions);
        assert!(comparison.table().contains("caution: seed"));
    }
}
