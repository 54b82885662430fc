//! Runs tasks and adds up the durations of their steps.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_load::{Durations, ms};
use autoact_wire::client::Authorized;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, trajectory_event::Body};
use futures::future::try_join_all;
use serde_json::json;

use crate::Options;
use crate::group::Group;

/// The parts of a step's overhead.
const PARTS: [&str; 5] = ["call plan", "call parameterize", "call execute", "bus", "gateway"];

/// Steps of tasks that ran one at a time.
#[derive(Default)]
pub(super) struct Measured {
    /// Durations of steps without model and tool.
    steps: Durations,
    /// Durations of the parts; zero for builds that do not report them.
    parts: [Durations; 5],
    /// From `Ask` to the first event of an agent: accepted, queued, leased.
    accepted: Durations,
}

/// Steps of several concurrent tasks.
pub(super) struct Saturated {
    at_once: usize,
    steps: u64,
    seconds: f64,
}

async fn ask(client: &mut GatewayClient<Authorized>, steps: u32) -> anyhow::Result<Vec<v1::TrajectoryEvent>> {
    let task = v1::SubmitTaskRequest {
        question: "What does the last page say?".to_owned(),
        limits: Some(v1::Limits { max_steps: Some(steps + 2), max_tokens: Some(1 << 20), ..v1::Limits::default() }),
        ..v1::SubmitTaskRequest::default()
    };
    let mut stream = client.ask(v1::AskRequest { task: Some(task), ..v1::AskRequest::default() }).await?.into_inner();
    let mut events = Vec::with_capacity(3 * steps as usize + 8);
    while let Some(response) = stream.message().await? {
        events.extend(response.event);
    }
    match events.last().and_then(|event| event.body.as_ref()) {
        Some(Body::Finished(finished)) if finished.approved => Ok(events),
        other => anyhow::bail!("a task did not end as its script says: {other:?}"),
    }
}

/// Runs tasks one after the other.
pub(super) async fn one_by_one(group: &Group, options: &Options, measured: &mut Measured) -> anyhow::Result<()> {
    let mut client = group.client.clone();
    for number in 0..options.warmup + options.tasks {
        let events = ask(&mut client, group.steps).await?;
        if number >= options.warmup {
            measured.add(&events).context("a task's events have no times")?;
        }
    }
    Ok(())
}

impl Saturated {
    /// Number of steps.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Steps a second.
    pub(super) fn rate(&self) -> f64 {
        self.steps as f64 / self.seconds.max(1e-9)
    }
}

impl Measured {
    /// How long a step takes, without model and tool: median and 90th percentile.
    pub(super) fn step(&self) -> (Duration, Duration) {
        (self.steps.quantile(0.5), self.steps.quantile(0.9))
    }
}

/// Keeps `at_once` tasks in flight for `seconds` seconds.
pub(super) async fn at_once(group: &Group, at_once: usize, seconds: f64) -> anyhow::Result<Saturated> {
    let begun = Instant::now();
    let end = begun + Duration::from_secs_f64(seconds);
    let work = (0..at_once).map(|_| async move {
        let mut client = group.client.clone();
        let mut steps = 0;
        while Instant::now() < end {
            let events = ask(&mut client, group.steps).await?;
            steps += events.iter().filter(|event| matches!(event.body, Some(Body::Thought(_)))).count() as u64;
        }
        anyhow::Ok(steps)
    });
    let steps = try_join_all(work).await?.into_iter().sum();
    Ok(Saturated { at_once, steps, seconds: begun.elapsed().as_secs_f64() })
}

impl Measured {
    /// Adds the steps of a task: from each thought to the next, without the time of model and tool.
    fn add(&mut self, events: &[v1::TrajectoryEvent]) -> Option<()> {
        let thoughts: Vec<usize> = (0..events.len()).filter(|at| matches!(events[*at].body, Some(Body::Thought(_)))).collect();
        self.accepted.record(time(&events[*thoughts.first()?])?.checked_sub(time(events.first()?)?)?);
        for pair in thoughts.windows(2) {
            let [from, to] = [pair[0], pair[1]];
            let whole = time(&events[to])?.checked_sub(time(&events[from])?)?;
            let mut parts = [Duration::ZERO; 5];
            let mut inside = Duration::ZERO;
            for event in &events[from + 1..=to] {
                let usage = event.usage.clone().unwrap_or_default();
                let model = [usage.queue, usage.prefill, usage.decode, usage.tool].into_iter().map(duration).sum();
                inside += model;
                let call = match event.body {
                    Some(Body::Thought(_)) => 0,
                    Some(Body::Action(_)) => 1,
                    _ => 2,
                };
                parts[call] += duration(usage.total).saturating_sub(model);
                let timing = event.timing.unwrap_or_default();
                parts[3] += duration(timing.bus);
                parts[4] += duration(timing.own);
            }
            self.steps.record(whole.saturating_sub(inside));
            self.parts.iter_mut().zip(parts).for_each(|(all, one)| all.record(one));
        }
        Some(())
    }
}

fn time(event: &v1::TrajectoryEvent) -> Option<Duration> {
    let time = event.time?;
    Some(Duration::new(time.seconds.try_into().ok()?, time.nanos.try_into().ok()?))
}

fn duration(value: Option<prost_types::Duration>) -> Duration {
    value.and_then(|value| Duration::try_from(value).ok()).unwrap_or_default()
}

/// Steps per second by number of concurrent tasks: the median of the rounds.
fn saturated(all: &[Saturated]) -> Vec<(usize, f64)> {
    let mut counts: Vec<usize> = all.iter().map(|one| one.at_once).collect();
    counts.sort_unstable();
    counts.dedup();
    let median = |at_once: usize| {
        let mut rates: Vec<f64> = all.iter().filter(|one| one.at_once == at_once).map(Saturated::rate).collect();
        rates.sort_by(f64::total_cmp);
        (at_once, rates.get(rates.len() / 2).copied().unwrap_or_default())
    };
    counts.into_iter().map(median).collect()
}

fn rows(measured: &Measured) -> impl Iterator<Item = (&'static str, &Durations)> {
    let parts = PARTS.into_iter().zip(&measured.parts);
    [("a step", &measured.steps)].into_iter().chain(parts).chain([("accepted to first thought", &measured.accepted)])
}

pub(super) fn table(name: &str, measured: &Measured, all: &[Saturated]) -> String {
    let mut out = format!("{name}: {} steps, one task at a time, without model and tools\n", measured.steps.count());
    // writing to a string cannot fail
    let _ = writeln!(out, "  {:<28}{:>10}{:>10}{:>10}{:>10}", "", "p50", "p90", "p99", "longest");
    for (row, durations) in rows(measured) {
        let time = |quantile: f64| ms(durations.quantile(quantile).as_secs_f64() * 1e3);
        let _ = writeln!(out, "  {row:<28}{:>10}{:>10}{:>10}{:>10}", time(0.5), time(0.9), time(0.99), time(1.0));
    }
    for (at_once, rate) in saturated(all) {
        let _ = writeln!(out, "  {at_once:>4} tasks at once: {rate:.0} steps a second");
    }
    out
}

pub(super) fn json(name: &str, measured: &Measured, all: &[Saturated]) -> serde_json::Value {
    let micros = |durations: &Durations, quantile: f64| durations.quantile(quantile).as_secs_f64() * 1e6;
    let row = |(row, durations): (&str, &Durations)| {
        (row.to_owned(), json!({ "p50_us": micros(durations, 0.5), "p90_us": micros(durations, 0.9), "p99_us": micros(durations, 0.99) }))
    };
    json!({
        "build": name, "steps": measured.steps.count(), "parts": rows(measured).map(row).collect::<serde_json::Map<_, _>>(),
        "steps_per_second": saturated(all).into_iter().map(|(at_once, rate)| (at_once.to_string(), json!(rate))).collect::<serde_json::Map<_, _>>(),
    })
}
