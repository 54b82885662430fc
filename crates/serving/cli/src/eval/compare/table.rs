//! The scores of a race, for people.

use std::fmt::Write as _;

use autoact_score::Interval;

use super::scores::{Row, Scores};
use crate::args::EvalOptions;

/// Digits of the model's digest: enough to tell two apart.
const DIGEST: usize = 12;
/// Columns of the planners' names and titles, at least.
const NAMES: usize = 15;
const TITLES: usize = 14;
/// The longest reason of a failure that is printed, in characters.
const MAX_REASON: usize = 100;

/// Columns of the planners' names.
fn names(scores: &Scores) -> usize {
    scores.entrants.iter().map(|entrant| entrant.to_string().len() + 1).max().unwrap_or_default().max(NAMES)
}

/// All tables.
pub(crate) fn table(scores: &Scores, options: &EvalOptions) -> String {
    let mut out = format!(
        "{}, {} questions, model {} ({}), seed {}, temperature {}, {:.0} s{}\n95% bootstrap intervals over questions\n",
        scores.origin,
        scores.labels.len(),
        scores.model,
        scores.digest.get(..DIGEST).unwrap_or(&scores.digest),
        options.seed,
        options.temperature,
        scores.elapsed.as_secs_f64(),
        if scores.interrupted { ", stopped early" } else { "" },
    );
    for note in &scores.left_out {
        let _ = writeln!(out, "left out: {note}");
    }
    totals(scores, &mut out);
    if scores.rows().len() > 1 {
        by_kind(scores, scores.score_names().0, |row| percent(&row.exact), &mut out);
        if scores.score_names().1 == "F1" {
            by_kind(scores, "F1", |row| fraction(&row.reward), &mut out);
        }
    }
    differences(scores, &mut out);
    confidences(scores, &mut out);
    failures(scores, &mut out);
    out
}

/// A share in percent with its interval.
pub(in crate::eval) fn percent(interval: &Interval) -> String {
    format!("{:.1}% [{:.1}, {:.1}]", 100.0 * interval.mean, 100.0 * interval.low, 100.0 * interval.high)
}

/// A number with its interval.
pub(in crate::eval) fn fraction(interval: &Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", interval.mean, interval.low, interval.high)
}

/// A part in percent; a dash where there is none.
fn part(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{:.1}%", 100.0 * value))
}

fn totals(scores: &Scores, out: &mut String) {
    let (exact, reward) = scores.score_names();
    let names = names(scores);
    let titles = scores.entrants.iter().map(|entrant| entrant.title().chars().count() + 1).max().unwrap_or_default().max(TITLES);
    let _ = writeln!(
        out,
        "\n{:<names$}{:<titles$}{:>10}{:>23}{:>22}{:>8}{:>10}{:>11}{:>8}{:>8}{:>9}",
        "planner", "in the paper", "questions", exact, reward, "rounds", "approved", "and right", "calls", "tokens", "seconds"
    );
    for (planner, entrant) in scores.entrants.iter().enumerate() {
        let (name, title) = (entrant.to_string(), entrant.title());
        let row = scores.row(planner, None);
        if row.questions == 0 {
            let _ = writeln!(out, "{name:<names$}{title:<titles$}{:>10}", 0);
            continue;
        }
        let approved = row.verdicts.map(|verdicts| verdicts.approved() as f64 / verdicts.total().max(1) as f64);
        let _ = writeln!(
            out,
            "{name:<names$}{title:<titles$}{:>10}{:>23}{:>22}{:>8.2}{:>10}{:>11}{:>8.1}{:>8.0}{:>9.2}",
            row.questions,
            percent(&row.exact),
            fraction(&row.reward),
            row.rounds,
            part(approved),
            part(row.verdicts.and_then(|verdicts| verdicts.precision())),
            row.calls,
            row.tokens,
            row.seconds
        );
    }
}

fn by_kind(scores: &Scores, name: &str, cell: impl Fn(&Row) -> String, out: &mut String) {
    let labels = scores.rows();
    let names = names(scores);
    let _ = write!(out, "\n{:<names$}", format!("{name} by kind"));
    // a heading longer than its column would push the others out of line
    if name.len() + " by kind".len() >= names {
        let _ = write!(out, "\n{:<names$}", "");
    }
    for label in &labels {
        let count = scores.labels.iter().filter(|own| own == label).count();
        let _ = write!(out, "{:>22}", format!("{label} ({count})"));
    }
    out.push('\n');
    for (planner, entrant) in scores.entrants.iter().enumerate() {
        let _ = write!(out, "{:<names$}", entrant.to_string());
        for label in &labels {
            let row = scores.row(planner, Some(label));
            let _ = write!(out, "{:>22}", if row.questions == 0 { "–".to_owned() } else { cell(&row) });
        }
        out.push('\n');
    }
}

fn differences(scores: &Scores, out: &mut String) {
    let Some(first) = scores.entrants.first().filter(|_| scores.entrants.len() > 1) else { return };
    let names = names(scores);
    let (exact, reward) = scores.score_names();
    let _ = writeln!(out, "\ndifference from {first}, question by question; * where the interval leaves out 0");
    let _ = writeln!(out, "{:<names$}{:>10}{:>26}{:>28}", "planner", "questions", exact, reward);
    for one in scores.differences() {
        let star = |interval: &Interval| if interval.excludes_zero() { " *" } else { "  " };
        let points = |interval: &Interval| {
            format!("{:+.1} [{:+.1}, {:+.1}]{}", 100.0 * interval.mean, 100.0 * interval.low, 100.0 * interval.high, star(interval))
        };
        let parts = |interval: &Interval| format!("{:+.3} [{:+.3}, {:+.3}]{}", interval.mean, interval.low, interval.high, star(interval));
        let _ =
            writeln!(out, "{:<names$}{:>10}{:>26}{:>28}", one.entrant.to_string(), one.questions, points(&one.exact), parts(&one.reward));
    }
}

fn confidences(scores: &Scores, out: &mut String) {
    let mut heading = "\nwhat confidences tell of all judged answers, approved or not\n";
    let names = names(scores);
    for (planner, entrant) in scores.entrants.iter().enumerate() {
        let Some(discrimination) = scores.row(planner, None).discrimination else { continue };
        let _ = writeln!(out, "{heading}{:<names$}{discrimination}", entrant.to_string());
        heading = "";
    }
}

fn failures(scores: &Scores, out: &mut String) {
    let mut heading = "\nquestions that could not be gone on with, and why the first\n";
    let names = names(scores);
    for (planner, entrant) in scores.entrants.iter().enumerate() {
        let Some((count, why)) = scores.row(planner, None).failed else { continue };
        let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut: String = line.chars().take(MAX_REASON).collect();
        let more = if cut.len() < line.len() { " …" } else { "" };
        let _ = writeln!(out, "{heading}{:<names$}{count:>10}  {cut}{more}", entrant.to_string());
        heading = "";
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::scores::tests::scores;
    use super::*;
    use crate::args::{Args, Command};

    fn options(extra: &[&str]) -> EvalOptions {
        let args = Args::try_parse_from(["autoact", "eval"].iter().chain(extra)).unwrap();
        let Command::Eval(options) = args.command else { panic!("another command") };
        options
    }

    #[test]
    fn the_table_says_everything() {
        let text = table(&scores(), &options(&["--planner", "autoact,react"]));
        for part in [
            "stopped early",
            "75.0%",
            "66.7%",
            "– ",
            "1-hop (2)",
            "difference from autoact",
            "autoact        a confidence of 0.70 keeps 90% of the right answers",
            "-66.7",
            "react                   1  the prompt is too long",
            "(0123456789ab)",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
    }

    #[test]
    fn programs_get_the_same() {
        let json = scores().json(&options(&["--table", "2", "--run", "learnt"]));
        assert_eq!(json["planners"][0]["all"]["exact_match"]["mean"], 0.75);
        assert_eq!(json["planners"][0]["all"]["verdicts"]["approved_right"], 2);
        assert_eq!(json["planners"][0]["all"]["discrimination"]["wrong"], 5);
        assert_eq!(json["planners"][1]["kinds"]["1-hop"]["questions"], 2);
        assert_eq!((&json["differences"][0]["questions"], &json["difference_from"]), (&3.into(), &"autoact".into()));
    }

    #[test]
    fn options_that_contradict_are_refused() {
        for extra in [
            &["--planner", "tree"][..],
            &["--planner", "react", "--table", "2"],
            &["--table", "9"],
            &["--planner", "react", "--running"],
            &["--data", "hotpotqa"],
            &["--data", "hotpotqa", "x", "--set", "dev"],
            &["--protocol", "mine"],
            &["--protocol", "paper", "--running"],
            &["--protocol", "paper", "--min-confidence", "0.5"],
        ] {
            assert!(Args::try_parse_from(["autoact", "eval"].iter().chain(extra)).is_err(), "{extra:?}");
        }
    }
}
