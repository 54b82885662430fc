//! The group in one process and the running services give a question the same events.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Engine, EngineOptions, ModelDir};
use autoact_speaker::testing::tiny_model;
use autoact_testkit::{Assets, Group, GroupOptions};
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::{Calibration, Limits, Role, Sampling};
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};

use crate::clients::{QUESTION, ask, check_whole, gateway};

/// Random weights use up every step; a few of them show enough.
const STEPS: u32 = 3;
const SEED: u64 = 7;

#[tokio::test(flavor = "multi_thread")]
async fn the_bundled_model() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    compare(Assets::bundled(dir.path())?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_a_chat_template() -> anyhow::Result<()> {
    let (dir, assets) = tiny()?;
    anyhow::ensure!(ModelDir::open(&assets.model)?.chat_template()?.is_some(), "the fixture has a template");
    compare(assets).await.map(|()| drop(dir))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_chat_template() -> anyhow::Result<()> {
    let (dir, assets) = tiny()?;
    std::fs::remove_file(assets.model.join("chat_template.jinja"))?;
    compare(assets).await.map(|()| drop(dir))
}

/// Random weights with a context that is long enough for a few steps, and three pages.
fn tiny() -> anyhow::Result<([tempfile::TempDir; 2], Assets)> {
    let (model, dir) = (tiny_model("qwen3")?, tempfile::tempdir()?);
    let config = model.path().join("config.json");
    let mut json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&config)?)?;
    json["max_position_embeddings"] = 8192.into();
    std::fs::write(&config, json.to_string())?;
    let assets = Assets { model: model.path().to_owned(), ..Assets::random(dir.path())? };
    Ok(([model, dir], assets))
}

/// Asks the services and the group in this process, greedily and not.
async fn compare(assets: Assets) -> anyhow::Result<()> {
    let group = Group::start_with(GroupOptions { assets: Some(assets.clone()), ..GroupOptions::default() }).await?;
    let local = local(&assets)?;
    let max_steps = if assets.trained { Limits::default().max_steps } else { STEPS };
    let limits = Limits { max_steps, ..Limits::default() };
    for temperature in [0.0, 0.7] {
        let sampling = Sampling { temperature, seed: SEED, ..Sampling::default() };
        let request = v1::SubmitTaskRequest {
            question: QUESTION.to_owned(),
            limits: Some(limits.into()),
            sampling: Some(sampling.into()),
            ..v1::SubmitTaskRequest::default()
        };
        let served = ask(&mut gateway(&group.gateway())?, request).await?;
        check_whole(&served, QUESTION)?;
        let options = RunOptions { limits, sampling, ..RunOptions::default() };
        let (local, specs) = (local.clone(), local.library().specs().to_vec());
        let (_, log) = tokio::task::spawn_blocking(move || local.run_logged(QUESTION, &specs, &options)).await??;
        let here: Vec<TrajectoryEvent> = log.events.iter().map(Into::into).collect();
        let (here, there) = (bodies(&here)?, bodies(&served)?);
        // random weights may answer at once
        assert!(!assets.trained || here.iter().any(|body| matches!(body, Body::Observation(_))), "{here:?}");
        assert_eq!(here, there, "at temperature {temperature}");
    }
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

/// The same model, tools and pages in this process.
fn local(assets: &Assets) -> anyhow::Result<LocalGroup> {
    let engine = Engine::start(&ModelDir::open(&assets.model)?, EngineOptions::default())?;
    let voices = if assets.adapters == Path::new("none") { Voices::base() } else { Voices::by_role() };
    for role in Role::ALL {
        if let Some(name) = voices.of(role) {
            engine.load_adapter(name, assets.adapters.join(role.as_str()))?;
        }
    }
    let library = ToolLibrary::load(&assets.tools, Arc::new(Corpus::load(&assets.corpus)?))?;
    let group = LocalGroup::new(Arc::new(engine), Arc::new(library), voices);
    match std::fs::read_to_string(assets.adapters.join("reflect/calibration.json")) {
        Ok(text) => Ok(group.calibrated(Calibration::parse(&text)?)),
        // a model without adapters has none
        Err(_) => Ok(group),
    }
}

/// What happened, without who took the task up and what only the door knows of the request.
fn bodies(events: &[TrajectoryEvent]) -> anyhow::Result<Vec<Body>> {
    let mut bodies = Vec::new();
    for event in events {
        match event.body.clone().context("every event has a body")? {
            Body::Started(_) => {}
            Body::Submitted(submitted) => bodies.push(Body::Submitted(v1::Submitted {
                question: submitted.question,
                tools: submitted.tools,
                limits: submitted.limits,
                sampling: submitted.sampling,
                ..v1::Submitted::default()
            })),
            body => bodies.push(body),
        }
    }
    Ok(bodies)
}
