//! `report.html`: the report for readers.

use autoact_plot::{Axis, Page, Plot, Series, Stack, StackRow, Table};

use crate::distribution::{Distribution, QUANTILES};
use crate::phase::{Agent, Phase};
use crate::report::Report;

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let asked = &report.asked;
    let what = match (asked.rate, asked.in_flight) {
        (Some(rate), _) => format!("{rate} tasks a second ({})", asked.arrivals),
        (None, in_flight) => format!("{} tasks in flight", in_flight.unwrap_or_default()),
    };
    let mut page = Page::new(&format!("Load: {what} for {:.0} s", asked.duration_seconds));
    page.note(&format!(
        "{} · gateway {} · questions {} ({}) · warm-up {:.0} s · seed {} · autoact {}",
        report.started, asked.gateway, asked.questions, asked.distinct_questions, asked.warmup_seconds, asked.seed, report.version
    ));
    if let Some(machine) = &report.machine {
        page.note(&format!("Machine of this program: {machine}."));
    }
    if report.interrupted {
        page.say("Stopped before its time.");
    }
    headline(report, &mut page);
    latency(report, &mut page);
    over_time(report, &mut page);
    split(report, &mut page);
    calls(report, &mut page);
    outcomes(report, &mut page);
    tokens(report, &mut page);
    page.finish()
}

fn headline(report: &Report, page: &mut Page) {
    let tasks = &report.tasks;
    page.say(&format!(
        "{} tasks finished, {} did not; {:.2} a second arrived, {:.2} a second finished. From the intended arrival: median {}, p99 {}. \
         {:.1}% of that time has an owner.",
        tasks.finished,
        tasks.failed,
        tasks.arrived_per_second,
        tasks.finished_per_second,
        ms(report.latency.percentile("p50")),
        ms(report.latency.percentile("p99")),
        100.0 * report.coverage.part
    ));
    page.note(&report.note);
}

fn latency(report: &Report, page: &mut Page) {
    page.section("Latency");
    let whole = Series::new("from the intended arrival", report.latency.tail(4)).bold();
    let sent = Series::new("from the sending", report.from_sending.tail(4));
    let latency = Plot::new("latency by quantile", Axis::tail("quantile", 4).unit(quantile), Axis::log("").unit(ms)).with(whole).with(sent);
    let mut calls = Plot::new("single calls by quantile", Axis::tail("quantile", 4).unit(quantile), Axis::log("").unit(ms));
    for (name, call) in &report.calls {
        calls = calls.with(Series::new(name, call.tail(4)));
    }
    page.plots([latency.svg(), calls.svg()]);
    let rows = [("tasks", &report.latency), ("tasks, from the sending", &report.from_sending), ("tasks that failed", &report.failures)];
    page.push(&table("", rows.into_iter().filter(|(_, row)| row.count > 0)));
}

fn over_time(report: &Report, page: &mut Page) {
    page.section("Over time");
    let moments = || report.timeline.iter();
    let seconds = |moment: &crate::report::Moment| moment.from_seconds;
    let answered = || moments().filter(|moment| moment.p50_ms > 0.0);
    let latency = Plot::new("latency by arrival", Axis::linear("seconds"), Axis::log("").unit(ms))
        .with(Series::new("p50", answered().map(|moment| (seconds(moment), moment.p50_ms))))
        .with(Series::new("p99", answered().map(|moment| (seconds(moment), moment.p99_ms))));
    let tasks = Plot::new("tasks", Axis::linear("seconds"), Axis::linear(""))
        .with(Series::new("in flight", moments().map(|moment| (seconds(moment), moment.in_flight as f64))))
        .with(Series::new("due and not begun", moments().map(|moment| (seconds(moment), moment.behind as f64))));
    let width = report.timeline.get(1).map_or(1.0, |moment| moment.from_seconds.max(1e-3));
    let rates = Plot::new("tasks a second", Axis::linear("seconds"), Axis::linear(""))
        .with(Series::new("arrived", moments().map(|moment| (seconds(moment), moment.arrived as f64 / width))))
        .with(Series::new("finished", moments().map(|moment| (seconds(moment), moment.finished as f64 / width))))
        .with(Series::new("failed", moments().map(|moment| (seconds(moment), moment.failed as f64 / width))));
    page.plots([latency.svg(), tasks.svg(), rates.svg()]);
}

fn split(report: &Report, page: &mut Page) {
    page.section("Where a task's time goes");
    let mean = |agent: Agent, phase: Phase| {
        let part = report.parts.iter().find(|part| part.agent == agent.name() && part.phase == phase.name());
        part.map_or(0.0, |part| part.mean_ms)
    };
    let row = |agent: Agent| StackRow { label: agent.to_string(), parts: Phase::ALL.iter().map(|phase| mean(agent, *phase)).collect() };
    let bars = Stack {
        title: "mean of a finished task, by agent and phase".into(),
        names: Phase::ALL.iter().map(ToString::to_string).collect(),
        rows: Agent::ALL.into_iter().map(row).collect(),
    };
    page.push(&bars.svg(ms));
    let coverage = &report.coverage;
    page.note(&format!(
        "The phases add up to {:.2}% of what the client saw ({:.3} s of {:.3} s; {:.3} s have no owner, {:.3} s have two); the worst task to {:.2}%.",
        100.0 * coverage.part,
        coverage.attributed_seconds,
        coverage.client_seconds,
        coverage.unattributed_seconds,
        coverage.overlap_seconds,
        100.0 * coverage.least
    ));
    let mut parts = Table::new(["part", "share", "mean", "p50", "p90", "p99", "longest"]);
    for part in &report.parts {
        let distribution = &part.distribution;
        let cells = [
            format!("{:.1}%", 100.0 * part.share),
            ms(part.mean_ms),
            ms(distribution.percentile("p50")),
            ms(distribution.percentile("p90")),
            ms(distribution.percentile("p99")),
            ms(distribution.max_ms),
        ];
        parts.row(&format!("{} {}", part.agent, part.phase), cells);
        let about = Phase::ALL.into_iter().find(|phase| phase.name() == part.phase);
        parts.remark(about.map_or("", Phase::about));
    }
    page.push(&parts.html());
    page.push(&table(
        "agent",
        Agent::ALL.iter().filter_map(|agent| report.agents.get_key_value(agent.name())).map(|(name, row)| (name.as_str(), row)),
    ));
    page.push(&table(
        "phase",
        Phase::ALL.iter().filter_map(|phase| report.phases.get_key_value(phase.name())).map(|(name, row)| (name.as_str(), row)),
    ));
}

fn calls(report: &Report, page: &mut Page) {
    if report.calls.is_empty() {
        return;
    }
    page.section("Single calls, as the gateway saw them");
    page.push(&table("call", report.calls.iter().map(|(name, row)| (name.as_str(), row))));
    if report.recalls_failed > 0 {
        page.say(&format!("{} recalls of the memory service failed.", report.recalls_failed));
    }
}

fn outcomes(report: &Report, page: &mut Page) {
    page.section("Outcomes");
    let mut outcomes = Table::new(["outcome", "tasks"]);
    report.outcomes.iter().for_each(|(name, count)| outcomes.row(name, [count]));
    let tasks = &report.tasks;
    let others = [("dropped", tasks.dropped), ("taken over", tasks.taken_over), ("resumed", tasks.resumed), ("warm-up", tasks.warmup)];
    for (name, count) in others {
        if count > 0 {
            outcomes.row(name, [count]);
        }
    }
    page.push(&outcomes.html());
    let mut codes = Table::new(["gRPC code", "tasks"]);
    for (code, count) in &report.codes {
        codes.row(code, [count]);
        codes.remark(&report.messages.get(code).map(|messages| messages.join(" · ")).unwrap_or_default());
    }
    page.push(&codes.html());
    for message in report.messages.get("failed").into_iter().flatten() {
        page.note(&format!("failed: {message}"));
    }
    if report.score.scored > 0 {
        let part = 100.0 * report.score.right as f64 / report.score.scored as f64;
        page.say(&format!("{} of {} answers are right ({part:.1}%).", report.score.right, report.score.scored));
    }
}

fn tokens(report: &Report, page: &mut Page) {
    page.section("Tokens and planning loops");
    let mut tokens = Table::new(["agent", "calls", "prompt", "of these cached", "written"]);
    for (agent, one) in &report.tokens {
        tokens.row(agent, [one.calls, one.prompt, one.cached, one.completion]);
    }
    page.push(&tokens.html());
    let mut rounds = Table::new(["planning loops", "tasks"]);
    report.rounds.iter().for_each(|(count, tasks)| rounds.row(&count.to_string(), [tasks]));
    page.push(&rounds.html());
}

fn table<'a>(name: &str, rows: impl IntoIterator<Item = (&'a str, &'a Distribution)>) -> String {
    let percentiles = QUANTILES.map(|(name, _)| name);
    let mut table = Table::new([name, "count", "mean"].into_iter().chain(percentiles).chain(["longest"]));
    for (name, row) in rows {
        let cells = [row.count.to_string(), ms(row.mean_ms)].into_iter();
        let cells = cells.chain(percentiles.iter().map(|percentile| ms(row.percentile(percentile)))).chain([ms(row.max_ms)]);
        table.row(name, cells);
    }
    table.html()
}

/// A quantile as it is spoken of.
fn quantile(quantile: f64) -> String {
    let percent = 100.0 * quantile;
    let digits = if (percent - percent.round()).abs() < 1e-6 {
        0
    } else if quantile < 0.9995 {
        1
    } else {
        2
    };
    format!("{percent:.digits$}%")
}

/// Milliseconds with a unit that fits.
pub fn ms(millis: f64) -> String {
    match millis {
        0.0 => "0".to_owned(),
        millis if millis < 0.9995 => format!("{:.0} µs", 1e3 * millis),
        millis if millis < 9.995 => format!("{millis:.2} ms"),
        millis if millis < 99.95 => format!("{millis:.1} ms"),
        millis if millis < 9_995.0 => format!("{millis:.0} ms"),
        millis => format!("{:.1} s", millis / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_become_markup() {
        let mut report = crate::testing::report(3);
        report.messages.insert("failed".into(), vec!["<b>".into()]);
        report.outcomes.insert("<b>".into(), 1);
        report.asked.gateway = "<b>".into();
        assert!(!html(&report).contains("<b>"));
    }

    #[test]
    fn numbers_are_short() {
        let texts: Vec<String> = [0.0, 0.25, 1.5, 42.0, 420.0, 42_000.0].into_iter().map(ms).collect();
        assert_eq!(texts, ["0", "250 µs", "1.50 ms", "42.0 ms", "420 ms", "42.0 s"]);
        assert_eq!([0.0, 0.9, 0.999, 0.9999].map(quantile), ["0%", "90%", "99.9%", "99.99%"]);
    }
}
