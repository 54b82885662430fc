//! `autoact learn`: from a handful of examples to three adapters.

mod args;
mod view;

use std::sync::Arc;

pub(crate) use args::LearnArgs;
use args::Telling;
use autoact_base::error::chain;
use autoact_learn::{LearnError, LearningPlan, Report, Stage, Stop, TaskMistakes};
use autoact_registry::Registry;

use crate::{adapters, exit, out};

pub(crate) async fn run(args: LearnArgs) -> anyhow::Result<u8> {
    let (plan, telling) = args.plan()?;
    let json = telling.json;
    let stop = Stop::default();
    let raised = stop.clone();
    let listener = tokio::spawn(async move {
        // the first asks, the second ends: what was written is whole either way
        while tokio::signal::ctrl_c().await.is_ok() {
            if raised.is_raised() {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            out::note("\nstopping: what has begun is finished first; Ctrl-C again ends at once");
            raised.raise();
        }
    });
    let view = Arc::new(view::Terminal::new(json));
    let shown = Arc::clone(&view);
    // the engines block: they are waited for on a thread of their own
    let result = tokio::task::spawn_blocking(move || {
        let result = autoact_learn::learn(&plan, shown, stop);
        (plan, result)
    });
    let (plan, result) = result.await?;
    listener.abort();
    view.clear();
    match result {
        Ok(report) => {
            if report.version.is_some() && plan.promote {
                announce(&plan, &telling).await;
            }
            if json {
                out::line(serde_json::to_string(&report)?)?;
            } else {
                out::text(told(&report, &plan))?;
            }
            Ok(exit::OK)
        }
        Err(LearnError::Stopped { stage }) => {
            out::note(format_args!("stopped during `{stage}`; the same command goes on from here"));
            Ok(exit::INTERRUPTED)
        }
        Err(error) => {
            let usage = matches!(error, LearnError::Task(TaskMistakes { .. }));
            out::error(format_args!("{}", chain(&error)));
            Ok(if usage { exit::USAGE } else { exit::FAILED })
        }
    }
}

/// Tells the bus, where one is named; it is a hint, and nothing is lost without it.
async fn announce(plan: &LearningPlan, telling: &Telling) {
    let (Some(registry), Some(url)) = (&plan.publish, &telling.nats_url) else { return };
    let told = async {
        let registry = Registry::open(registry)?;
        adapters::announce(&registry, url, &registry.pointer()?).await
    };
    if let Err(error) = told.await {
        let cause = chain(error.as_ref());
        out::note(format_args!("warning: not announced on the bus: {cause}; the agents see it in the registry all the same"));
    }
}

/// What the whole came to, for people.
fn told(report: &Report, plan: &LearningPlan) -> String {
    let mut text = String::new();
    for row in &report.evaluation {
        text.push_str(&format!(
            "{:<16}{:>5.1}% exact match ({:.1} to {:.1}), F1 {:.1}%, {:.2} planning loops, {} questions\n",
            row.title,
            100.0 * row.exact.mean,
            100.0 * row.exact.low,
            100.0 * row.exact.high,
            100.0 * row.f1,
            row.steps,
            row.questions
        ));
    }
    if let Some(gain) = report.gain {
        text.push_str(&format!(
            "gain over the base: {:+.1} points ({:+.1} to {:+.1})\n",
            100.0 * gain.mean,
            100.0 * gain.low,
            100.0 * gain.high
        ));
    }
    for judge in &report.judges {
        let part = |part: Option<f64>| part.map_or_else(|| "–".to_owned(), |part| format!("{:.0}%", 100.0 * part));
        text.push_str(&format!(
            "reflections of {}: precision {}, recall {} of wrong answers on {} held-out histories\n",
            judge.row,
            part(judge.precision),
            part(judge.recall),
            judge.right.0 + judge.wrong.0
        ));
    }
    if let Some(calibration) = &report.calibration {
        text.push_str(&format!("{calibration}\n"));
        text.extend(calibration.discrimination.iter().map(|discrimination| format!("of the validation questions, {discrimination}\n")));
    }
    let seconds: f64 = report.seconds.values().sum();
    text.push_str(&format!("{:.1} minutes, {:.0} MB at most", seconds / 60.0, report.peak_memory as f64 / 1e6));
    if plan.only.is_none() && plan.until == Stage::Report {
        text.push_str(&format!("; adapters in {0}/adapters, report in {0}/report.html", report.run));
    } else {
        text.push_str(&format!("; everything so far is in {}", report.run));
    }
    text.push('\n');
    let sentences = report.selection.as_ref().map_or(0, |selection| selection.sentences);
    if sentences > 0 {
        text.push_str(&format!(
            "to serve them, give Retrieve's entry in the tool library `run = {{ kind = \"retrieve\", sentences = {sentences} }}`\n"
        ));
    }
    if let Some(version) = &report.version {
        text.push_str(&format!("published as `{version}`; `autoact adapters list` shows it\n"));
    }
    text
}
