//! `autoact eval`: the whole group (models, tools, bus and all) over a set of questions, exact
//! match and F1 by kind; or planners in this process, against each other (`compare`).

mod approval;
pub(crate) mod calibrate;
pub(crate) mod compare;
mod judgement;
mod progress;
mod report;
pub(crate) mod set;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use autoact_client::{Following, Update};
use autoact_wire::v1::{self, trajectory_event::Body};
use futures::StreamExt as _;
use tokio::time::Instant;

use crate::args::{EvalOptions, GroupOptions, next_attempt};
use crate::client::{self, Gateway, Service};
use crate::exit;
use crate::json;
use crate::out;
use crate::up::Group;
use autoact_trajectory::JudgedAnswers;
use calibrate::Calibrated;
use progress::progress;
use report::{Outcome, Report};
use set::EvalQuestion;

/// How often a question is sent again when the gateway is full.
const FULL_RETRIES: u32 = 20;
/// How long a gateway is looked for when the connection is lost.
const RECONNECT: Duration = Duration::from_secs(60);

pub(crate) async fn run(gateway: &str, options: EvalOptions) -> anyhow::Result<u8> {
    if options.compare.asked() {
        return compare::run(options).await;
    }
    options.calibrate.check(&options.set)?;
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut group_options = options.group.clone();
    let mut questions = if options.counterfactual {
        let swapped = set::counterfactual(&options.set, options.seed, scratch.path())?;
        group_options.corpus = swapped.corpus;
        swapped.questions
    } else {
        set::load(&options.set)?
    };
    if let Some(limit) = options.limit {
        questions.truncate(limit);
    }
    anyhow::ensure!(!questions.is_empty(), "the set `{}` has no questions", options.set);

    let asked = if options.running {
        Some(ask_all(gateway, questions, &options).await?)
    } else {
        with_own_group(group_options, &scratch, |address| {
            let questions = questions.clone();
            let options = &options;
            async move { ask_all(&address, questions, options).await }
        })
        .await?
    };
    let Some((report, interrupted)) = asked else { return Ok(exit::INTERRUPTED) };
    if let Some(path) = &options.output {
        report.write(path)?;
    }
    // of some of the questions only, nothing is fitted
    let calibrate = options.calibrate.calibrate.as_deref().filter(|_| !interrupted);
    let (adapters, next_attempt) = (options.group.model.adapters_dir(), options.next_attempt.map(Into::into));
    let calibrated = calibrate.map(|path| Calibrated::new(&options.calibrate, path, report.judged(), &adapters, next_attempt)).transpose();
    let fitted = calibrated.as_ref().ok().and_then(Option::as_ref);
    if let Some(path) = &options.compare.plot {
        let page = report.page(&options, fitted.map(Calibrated::scored).as_deref());
        std::fs::write(path, page).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if options.json {
        let mut json = report.json(&options);
        if let Some(fitted) = fitted {
            json["calibration"] = fitted.json();
        }
        out::line(json)?;
    } else {
        out::text(report.table(&options))?;
        fitted.map_or(Ok(()), |fitted| out::text(fitted.text()))?;
    }
    // what was measured is printed in any case
    calibrated?;
    Ok(if interrupted { exit::INTERRUPTED } else { exit::OK })
}

/// Starts a group of its own, so that a running one keeps its memory and its ports, and stops it
/// whatever happens. Nothing comes of a group that Ctrl-C stopped while it started.
async fn with_own_group<F, Fut, T>(mut options: GroupOptions, scratch: &tempfile::TempDir, work: F) -> anyhow::Result<Option<T>>
where
    F: FnOnce(String) -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    options.state_dir = scratch.path().join("run");
    options.base_port = free_base(options.base_port, options.replicas)?;
    // Ctrl-C while starting has to stop what already runs
    let mut group = tokio::select! {
        group = Group::start(&options, &|_| {}) => group?,
        _ = tokio::signal::ctrl_c() => return Ok(None),
    };
    let result = work(group.gateway()).await;
    // a second Ctrl-C does not wait for what drains
    let in_a_hurry = tokio::select! {
        () = group.stop() => false,
        _ = tokio::signal::ctrl_c() => true,
    };
    if in_a_hurry {
        group.kill().await;
    }
    result.map(Some)
}

/// The given base if nothing listens there, else one further up.
fn free_base(wanted: u16, replicas: u16) -> anyhow::Result<u16> {
    crate::up::free_base(wanted, replicas)
}

async fn ask_all(address: &str, questions: Vec<EvalQuestion>, options: &EvalOptions) -> anyhow::Result<(Report, bool)> {
    let client = client::gateway(address)?;
    let bar = progress(questions.len() as u64, options.json);
    let begun = Instant::now();
    let address: Arc<str> = address.into();
    let mut answers = futures::stream::iter(questions.into_iter().map(|question| {
        let client = client.clone();
        let address = Arc::clone(&address);
        let request = v1::SubmitTaskRequest {
            question: question.question.clone(),
            sampling: Some(v1::SamplingParams { temperature: options.temperature, seed: options.seed, ..v1::SamplingParams::default() }),
            min_confidence: options.calibrate.least(),
            next_attempt: next_attempt(options.next_attempt),
            ..v1::SubmitTaskRequest::default()
        };
        async move { one(client, &address, question, request).await }
    }))
    .buffered(options.concurrency.clamp(1, 256));
    let mut report = Report::default();
    let mut interrupted = false;
    loop {
        let next = tokio::select! {
            next = answers.next() => next,
            _ = tokio::signal::ctrl_c() => { interrupted = true; None }
        };
        let Some(outcome) = next else { break };
        report.push(outcome?);
        bar.set_message(format!("exact match {:.1}%", 100.0 * report.exact_match()));
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.elapsed = begun.elapsed();
    // after the questions, whose time it would take
    report.machine = tokio::task::spawn_blocking(autoact_kernels::Machine::measure).await?;
    Ok((report, interrupted))
}

async fn one(client: Gateway, address: &str, question: EvalQuestion, request: v1::SubmitTaskRequest) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let mut attempts = 0;
    let Answer { events, judgements, finished } = loop {
        match answer(Following::ask(client.clone(), address, request.clone(), RECONNECT)).await {
            Ok(answer) => break answer,
            Err(status) if attempts < FULL_RETRIES && status.code() == tonic::Code::ResourceExhausted => {
                attempts += 1;
                let delay = autoact_wire::status::retry_after(&status).unwrap_or(Duration::from_millis(500));
                tokio::time::sleep(delay).await;
            }
            Err(status) => return Err(client::explain(status, Service::Gateway, address).await),
        }
    };
    let finished = finished.context("a task's stream ended before the task did")?;
    Ok(Outcome::new(question, &finished, events, judgements.into_all(), begun.elapsed()))
}

/// What became of a task.
#[derive(Default)]
struct Answer {
    events: Vec<serde_json::Value>,
    judgements: JudgedAnswers,
    finished: Option<v1::Finished>,
}

/// A task's events and its end.
async fn answer(mut following: Following) -> Result<Answer, tonic::Status> {
    let mut answer = Answer::default();
    while let Some(update) = following.next().await {
        let Update::Event { event, .. } = update? else { continue };
        answer.events.push(json::event(&event));
        judgement::take(&mut answer.judgements, &event);
        if let Some(Body::Finished(body)) = event.body {
            answer.finished = Some(body);
        }
    }
    Ok(answer)
}
