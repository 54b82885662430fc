//! Services that are killed in mid-call: every task ends as it does without kills, event for event.
//!
//! `AUTOACT_TEST_LONG=1` also kills each agent thirty times, one every ten seconds, under tools
//! that change the world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_testkit::{Cluster, ClusterOptions, NatsServer, effects};
use autoact_trajectory::UNKNOWN_OUTCOME;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};

use crate::clients::{gateway, long, watch};

/// Those that are killed.
const SERVICES: [&str; 4] = ["gateway", "plan-agent", "tool-agent", "reflect-agent"];
/// Kills of each service while its tasks run.
const KILLS: usize = 3;
/// What a task has: kills must not end it for its time.
const TIME: Duration = Duration::from_secs(300);
/// Temperatures at which every question is asked.
const TEMPERATURES: [f32; 2] = [0.0, 0.7];

fn questions() -> anyhow::Result<Vec<String>> {
    let path = autoact_testkit::files::root().join("corpora/atlas/questions/dev.jsonl");
    let text = std::fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    let text = |line: &&str| {
        let row: serde_json::Value = serde_json::from_str(line)?;
        Ok(row["text"].as_str().context("a question has a text")?.to_owned())
    };
    lines.iter().step_by(lines.len() / 8).map(text).collect()
}

/// What a task was asked, and everything that was said in it, without who ran it and when.
fn said(events: &[TrajectoryEvent]) -> Vec<Body> {
    let body = |event: &TrajectoryEvent| event.body.clone();
    events.iter().filter_map(body).filter(|body| !matches!(body, Body::Submitted(_) | Body::Started(_) | Body::Released(_))).collect()
}

/// Asks every question at every temperature, all at once; what was said, by question and
/// temperature.
async fn ask_all(address: String, round: String) -> anyhow::Result<BTreeMap<(String, String), Vec<Body>>> {
    let mut asked = Vec::new();
    for (number, question) in questions()?.into_iter().enumerate() {
        for temperature in TEMPERATURES {
            let mut client = gateway(&address)?;
            let task = v1::SubmitTaskRequest {
                task_id: format!("{round}-{number}-{}", (temperature * 10.0) as u32),
                question: question.clone(),
                sampling: Some(v1::SamplingParams { temperature, seed: 11, ..v1::SamplingParams::default() }),
                limits: Some(v1::Limits { max_time: Some(TIME.try_into()?), ..v1::Limits::default() }),
                ..v1::SubmitTaskRequest::default()
            };
            let question = question.clone();
            asked.push(tokio::spawn(async move {
                let events = tokio::time::timeout(TIME, async {
                    // a gateway that was killed is asked again: the same id is the same task
                    let mut seen: Vec<TrajectoryEvent> = Vec::new();
                    let mut ticks = tokio::time::interval(Duration::from_millis(50));
                    loop {
                        ticks.tick().await;
                        let submitted = client.submit_task(task.clone()).await;
                        if submitted.is_ok() {
                            let after = seen.last().map_or(0, |event| event.sequence);
                            seen.extend(watch(&mut client, &task.task_id, after).await.unwrap_or_default());
                            if matches!(seen.last().and_then(|event| event.body.as_ref()), Some(Body::Finished(_))) {
                                return seen;
                            }
                        }
                    }
                });
                let Ok(events) = events.await else {
                    let request = v1::GetTaskRequest { task_id: task.task_id.clone(), view: 0 };
                    let stands = client.get_task(request).await.map(|task| task.into_inner().task);
                    anyhow::bail!("`{}` has not ended after {TIME:?}: {stands:#?}", task.task_id)
                };
                anyhow::Ok(((question, temperature.to_string()), said(&events)))
            }));
        }
    }
    let mut all = BTreeMap::new();
    for asked in asked {
        let (question, said) = asked.await??;
        all.insert(question, said);
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_under_kills_are_the_tasks_without_kills() -> anyhow::Result<()> {
    let mut fleet =
        Cluster::start(vec![NatsServer::start().await?], ClusterOptions::default(), |assets, _| Ok(assets.tools.clone())).await?;
    let address = fleet.address("gateway");
    let expected = ask_all(address.clone(), "quiet".to_owned()).await?;
    for victim in SERVICES {
        let asked = tokio::spawn(ask_all(address.clone(), format!("kill-{victim}")));
        for _ in 0..KILLS {
            fleet.kill(victim).await?;
            fleet.restart(victim).await?;
        }
        let seen = asked.await??;
        assert_eq!(seen.len(), expected.len());
        for (question, said) in &expected {
            assert_eq!(&seen[question], said, "{question:?} while {victim} is killed");
        }
    }
    Ok(())
}

/// How long the long test goes on killing: each agent thirty times.
const LONG_KILLS: usize = 30;
/// Between two kills of one agent.
const BETWEEN_KILLS: Duration = Duration::from_secs(10);
/// An agent that was killed answers again within this time.
const BACK_WITHIN: Duration = Duration::from_secs(3);
const AGENTS: [&str; 3] = ["plan-agent", "tool-agent", "reflect-agent"];

/// Whether a task was told that the outcome of a side effect is unknown.
fn told_unknown(said: &[Body]) -> bool {
    said.iter().any(|body| matches!(body, Body::Observation(seen) if seen.text.contains(UNKNOWN_OUTCOME)))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_effect_is_run_twice_under_kills() -> anyhow::Result<()> {
    let mut fleet = Cluster::start(vec![NatsServer::start().await?], ClusterOptions::default(), effects::library).await?;
    let address = fleet.address("gateway");
    let expected = ask_all(address.clone(), "quiet".to_owned()).await?;

    // rounds of questions for as long as agents are killed
    let ended = Arc::new(AtomicBool::new(false));
    let asked = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            let mut rounds = Vec::new();
            while rounds.is_empty() || !ended.load(Ordering::Relaxed) {
                rounds.push(ask_all(address.clone(), format!("round-{}", rounds.len())).await?);
            }
            anyhow::Ok(rounds)
        }
    });
    let (kills, between) = if long() { (LONG_KILLS, BETWEEN_KILLS) } else { (1, Duration::from_secs(1)) };
    let mut ticks = tokio::time::interval(between / 3);
    let mut slowest = Duration::ZERO;
    for _ in 0..kills {
        for victim in AGENTS {
            ticks.tick().await;
            let killed = Instant::now();
            fleet.kill(victim).await?;
            fleet.restart(victim).await?;
            slowest = slowest.max(killed.elapsed());
        }
    }
    ended.store(true, Ordering::Relaxed);
    let rounds = asked.await??;

    let (mut tasks, mut unknown) = (0, 0);
    for round in &rounds {
        for (question, said) in &expected {
            tasks += 1;
            if told_unknown(&round[question]) {
                unknown += 1;
                assert!(matches!(round[question].last(), Some(Body::Finished(_))), "{question:?} ended");
            } else {
                assert_eq!(&round[question], said, "{question:?}");
            }
        }
    }
    let ran = effects::runs(fleet.dir())?;
    let runs = ran.len();
    let twice: Vec<_> = ran.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "effects were run twice: {twice:?}");
    println!(
        "{kills} kills of each agent, the slowest back after {slowest:?}: {tasks} tasks, {runs} effects, {unknown} tasks were told that an \
         outcome is unknown"
    );
    if long() {
        assert!(slowest < BACK_WITHIN, "an agent was back after {slowest:?} only");
    }
    Ok(())
}
