//! `autoact eval`: the whole group (models, tools, bus and all) over a set of questions, exact
//! match and F1 by kind; or planners in this process, against each other (`compare`).

pub(crate) mod compare;
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

use crate::args::{EvalOptions, GroupOptions};
use crate::client::{self, Gateway, Service};
use crate::exit;
use crate::json;
use crate::out;
use crate::up::Group;
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
    if options.json {
        out::line(report.json(&options))?;
    } else {
        out::text(report.table(&options))?;
    }
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
    options.base_port = free_base(options.base_port)?;
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
fn free_base(wanted: u16) -> anyhow::Result<u16> {
    crate::up::free_base(wanted)
}

async fn ask_all(address: &str, questions: Vec<EvalQuestion>, options: &EvalOptions) -> anyhow::Result<(Report, bool)> {
    let client = client::gateway(address)?;
    let bar = progress(questions.len() as u64, options.json);
    let begun = Instant::now();
    let address: Arc<str> = address.into();
    let mut answers = futures::stream::iter(questions.into_iter().map(|question| {
        let client = client.clone();
        let address = Arc::clone(&address);
        let (temperature, seed) = (options.temperature, options.seed);
        async move { one(client, &address, question, temperature, seed).await }
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
    Ok((report, interrupted))
}

async fn one(client: Gateway, address: &str, question: EvalQuestion, temperature: f32, seed: u64) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let request = v1::SubmitTaskRequest {
        question: question.question.clone(),
        sampling: Some(v1::SamplingParams { temperature, seed, ..v1::SamplingParams::default() }),
        ..v1::SubmitTaskRequest::default()
    };
    let mut attempts = 0;
    let (events, finished) = loop {
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
    Ok(Outcome::new(question, &finished, events, begun.elapsed()))
}

/// A task's events and its end.
async fn answer(mut following: Following) -> Result<(Vec<serde_json::Value>, Option<v1::Finished>), tonic::Status> {
    let mut events = Vec::new();
    let mut finished = None;
    while let Some(update) = following.next().await {
        let Update::Event { event, .. } = update? else { continue };
        events.push(json::event(&event));
        if let Some(Body::Finished(body)) = event.body {
            finished = Some(body);
        }
    }
    Ok((events, finished))
}
