//! Adapter versions promoted and rolled back with the `autoact` command under a whole running group
//! that is asked all the while.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files::root;
use autoact_testkit::{Assets, Group, GroupOptions, Program, poll_until};
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};

use crate::clients::{QUICK, ask, finished, gateway, task};
use crate::observability::page;

const ROLES: [&str; 3] = ["plan", "tool", "reflect"];
const SWITCH_LIMIT: Duration = Duration::from_secs(60);
/// It takes half a minute on two free cores with AVX2.
const LEARN_LIMIT: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread")]
async fn versions_change_under_a_group_that_is_asked_all_the_while() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let registry = dir.path().join("adapters");
    let args = vec!["--adapter-registry".to_owned(), registry.display().to_string()];
    let group = Group::start_with(GroupOptions { args, ..GroupOptions::default() }).await?;
    let first = publish(&group, &registry, &adapters(group.assets(), dir.path(), 0)?).await?;
    let second = publish(&group, &registry, &adapters(group.assets(), dir.path(), 1)?).await?;
    assert_ne!(first, second);
    let load = Load::start(group.gateway());

    let promoted = adapters_command(&group, &registry, &["promote", &first, "--nats-url", &group.nats(), "--json"]).await?;
    assert_eq!(promoted["current"], first.as_str());
    assert_eq!(promoted["announced"], true, "{promoted}");
    load.until_spoken(&first).await?;
    adapters_command(&group, &registry, &["promote", &second, "--json"]).await?;
    load.until_spoken(&second).await?;
    let back = adapters_command(&group, &registry, &["rollback", "--json"]).await?;
    assert_eq!((&back["current"], &back["before"]), (&first.as_str().into(), &second.as_str().into()));
    load.until_spoken(&first).await?;

    let tasks = load.end().await?;
    println!("{tasks} tasks over three switches");
    let listed = adapters_command(&group, &registry, &["list", "--json"]).await?;
    assert_eq!(listed["current"], first.as_str());
    assert_eq!(listed["versions"].as_array().map(Vec::len), Some(2));
    let metrics = page(&group.metrics("plan-agent"), "/metrics").await?;
    let line = format!("autoact_adapter_info{{agent=\"plan\",adapter=\"plan@{first}\"");
    assert!(metrics.lines().any(|found| found.starts_with(&line) && found.ends_with(" 1")), "{metrics}");

    // `watch --json` names the version that spoke
    let events = ask(&mut gateway(&group.gateway())?, task("What is the capital of Peru?")).await?;
    let watched = group.autoact(["watch", &events[0].task_id, "--json"])?.run(QUICK).await?;
    let adapters: Vec<String> =
        watched.json_lines()?.iter().filter_map(|event| event["usage"]["adapter"].as_str().map(str::to_owned)).collect();
    assert!(adapters.contains(&format!("plan@{first}")), "{adapters:?}");
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

/// A task so small that it is learned in seconds.
const SMALL_TASK: &str = r#"
[[examples]]
question = "Which planet does Europa circle?"
answer = "Jupiter"
[[examples]]
question = "In which city was the inventor of Dynamite born?"
answer = "Stockholm"
[instruct]
questions = 40
round = 12
[select]
votes = 4
[synthesize]
samples = 2
[filter]
sure = 0.0
[differentiate]
validation = 0.2
[train]
epochs = 1
[iterate]
rounds = 1
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_learned_is_spoken_by_the_agents_that_run() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let registry = dir.path().join("adapters");
    let args = vec!["--adapter-registry".to_owned(), registry.display().to_string()];
    let group = Group::start_with(GroupOptions { args, ..GroupOptions::default() }).await?;
    if !group.assets().trained {
        eprintln!("skipped: a model of random weights learns nothing");
        return Ok(());
    }
    let task = dir.path().join("task.toml");
    let (pages, tools) = (root().join("tasks/science/pages.jsonl"), root().join("corpora/atlas/tools.toml"));
    let head = format!("name = \"small\"\ndescription = \"Planets, moons and inventions.\"\ncorpus = {pages:?}\ntools = {tools:?}\n");
    std::fs::write(&task, head + SMALL_TASK)?;
    let text = |path: &Path| path.display().to_string();
    let (task, run, at, model, nats) =
        (text(&task), text(&dir.path().join("run")), text(&registry), text(&group.assets().model), group.nats());
    let learn = ["learn", &task, "--run", &run, "--model", &model, "--publish", &at, "--promote", "--nats-url", &nats, "--json"];
    let output = group.autoact(learn)?.run(LEARN_LIMIT).await?;
    assert_eq!(output.code, Some(0), "{}", output.text());
    assert!(!output.text().contains("not announced"), "{}", output.text());
    let report = output.json_lines()?.pop().context("a report")?;
    let version = report["version"].as_str().context("a version")?.to_owned();
    let load = Load::start(group.gateway());
    load.until_spoken(&version).await?;
    load.end().await?;

    // what is in service cannot be removed; what is not, is gone
    let refused = group.autoact(["adapters", "--registry", &at, "remove", &version])?.run(QUICK).await?;
    assert!(refused.code == Some(1) && refused.text().contains("is in service"), "{}", refused.text());
    adapters_command(&group, &registry, &["rollback", "--json"]).await?;
    let removed = adapters_command(&group, &registry, &["remove", &version, "--json"]).await?;
    assert_eq!(removed["removed"], version.as_str());
    let listed = adapters_command(&group, &registry, &["list", "--json"]).await?;
    assert_eq!(listed["versions"].as_array().map(Vec::len), Some(0));
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

#[tokio::test]
async fn mistakes_with_the_registry_say_what_to_do() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let assets = Assets::bundled(dir.path())?;
    let (registry, model) = (dir.path().join("adapters"), assets.model.display().to_string());
    let at = registry.display().to_string();
    let run = async |args: &[&str]| Program::new("autoact")?.args(["adapters", "--registry", &at]).args(args.to_vec()).run(QUICK).await;
    let fails = async |args: &[&str], code: i32, part: &str| -> anyhow::Result<()> {
        let output = run(args).await?;
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.text());
        assert!(output.text().contains(part), "{args:?}: {}", output.text());
        Ok(())
    };
    fails(&["list"], 64, "no adapter registry in").await?;
    fails(&["promote", "../x"], 64, "is not a version").await?;
    let source = adapters(&assets, dir.path(), 0)?.display().to_string();
    fails(&["publish", "no/such", "--task", "t", "--model", &model], 1, "plan adapter in `no/such/plan`").await?;
    fails(&["publish", &source, "--task", "t", "--model", "no/such"], 1, "no/such").await?;
    fails(&["publish", &source, "--task", "t", "--model", &model], 0, "published t-").await?;
    fails(&["rollback"], 1, "nothing to roll back").await?;
    fails(&["promote", "t-0"], 64, "published: `t-").await?;
    fails(&["verify", "--model", &model], 0, "ok       t-").await?;
    let other = root().join("tests/golden/fixtures/qwen3").display().to_string();
    fails(&["verify", "--model", &other], 1, "was trained on the base").await?;
    let listed = run(&["list", "--json"]).await?.json_lines()?;
    let id = listed[0]["versions"][0]["id"].as_str().context("a version")?.to_owned();
    fails(&["promote", &id, "--model", &other], 1, "was trained on the base").await?;
    fails(&["remove", "t-0"], 64, "published: `t-").await?;
    // the bus is a hint: the promotion holds without it
    fails(&["promote", &id, "--nats-url", "nats://127.0.0.1:1"], 0, "not announced on the bus").await?;
    let weights = registry.join("versions").join(&id).join("tool/adapter_model.safetensors");
    let bytes = std::fs::read(&weights)?;
    std::fs::write(&weights, &bytes[..bytes.len() / 2])?;
    fails(&["verify", &id, "--model", &model], 1, "refused").await?;
    fails(&["promote", &id], 1, "tool adapter").await
}

/// Adapters of the group's base: the bundled ones, or, for the random model, those of its fixture;
/// `more` changes their scale a little.
fn adapters(assets: &Assets, dir: &Path, more: u32) -> anyhow::Result<PathBuf> {
    let to = dir.join(format!("published-{more}"));
    for role in ROLES {
        let from = if assets.trained { assets.adapters.join(role) } else { root().join("tests/golden/fixtures/llama2/adapter") };
        let to = to.join(role);
        std::fs::create_dir_all(&to)?;
        std::fs::copy(from.join("adapter_model.safetensors"), to.join("adapter_model.safetensors"))?;
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(from.join("adapter_config.json"))?)?;
        let alpha = config["lora_alpha"].as_f64().context("`lora_alpha`")?;
        config["lora_alpha"] = (alpha + 0.01 * f64::from(more)).into();
        std::fs::write(to.join("adapter_config.json"), config.to_string())?;
    }
    Ok(to)
}

async fn publish(group: &Group, registry: &Path, adapters: &Path) -> anyhow::Result<String> {
    let (adapters, model) = (adapters.display().to_string(), group.assets().model.display().to_string());
    let manifest = adapters_command(group, registry, &["publish", &adapters, "--task", "Atlas", "--model", &model, "--json"]).await?;
    Ok(manifest["id"].as_str().context("a version has an id")?.to_owned())
}

async fn adapters_command(group: &Group, registry: &Path, args: &[&str]) -> anyhow::Result<serde_json::Value> {
    let registry = registry.display().to_string();
    let all: Vec<&str> = ["adapters", "--registry", &registry].into_iter().chain(args.iter().copied()).collect();
    let output = group.autoact(all)?.run(QUICK).await?;
    anyhow::ensure!(output.code == Some(0), "{args:?}: {}", output.text());
    output.json_lines()?.pop().context("a line of JSON")
}

/// Clients that ask one question after the other.
struct Load {
    stop: Arc<AtomicBool>,
    /// The adapters of the newest finished task, by agent.
    newest: Arc<Mutex<Vec<Vec<String>>>>,
    clients: Vec<tokio::task::JoinHandle<anyhow::Result<usize>>>,
}

impl Load {
    const CLIENTS: usize = 3;

    fn start(address: String) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let newest = Arc::new(Mutex::new(vec![Vec::new(); Load::CLIENTS]));
        let clients = (0..Load::CLIENTS)
            .map(|client| {
                let (stop, newest, address) = (Arc::clone(&stop), Arc::clone(&newest), address.clone());
                tokio::spawn(async move {
                    let mut gateway = gateway(&address)?;
                    let mut tasks = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let limits = v1::Limits { max_steps: Some(4), max_reflections: Some(1), ..v1::Limits::default() };
                        let request = v1::SubmitTaskRequest { limits: Some(limits), ..task("What is the capital of Peru?") };
                        let events = ask(&mut gateway, request).await?;
                        let end = finished(&events)?;
                        anyhow::ensure!(end.reason() != v1::FinishReason::Failed, "a task failed: {}", end.detail);
                        newest.lock().map_err(|_| anyhow::anyhow!("poisoned"))?[client] = spoke(&events);
                        tasks += 1;
                    }
                    Ok(tasks)
                })
            })
            .collect();
        Load { stop, newest, clients }
    }

    /// Until each client's newest task was spoken by this version alone.
    async fn until_spoken(&self, version: &str) -> anyhow::Result<()> {
        poll_until(SWITCH_LIMIT, version, async || {
            if self.clients.iter().any(|client| client.is_finished()) {
                return Some(());
            }
            let newest = self.newest.lock().ok()?;
            let ours = |adapter: &String| adapter.ends_with(&format!("@{version}"));
            newest.iter().all(|adapters| adapters.len() >= 2 && adapters.iter().all(ours)).then_some(())
        })
        .await
        .with_context(|| format!("the newest tasks were spoken by {:?}", self.newest.lock()))
    }

    async fn end(self) -> anyhow::Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        let mut tasks = 0;
        for client in self.clients {
            tasks += client.await??;
        }
        Ok(tasks)
    }
}

/// The adapters that spoke in a task.
fn spoke(events: &[TrajectoryEvent]) -> Vec<String> {
    let spoken = events.iter().filter(|event| matches!(event.body, Some(Body::Thought(_) | Body::Action(_) | Body::Reflection(_))));
    let mut adapters: Vec<String> = spoken.filter_map(|event| event.usage.as_ref().map(|usage| usage.adapter.clone())).collect();
    adapters.sort();
    adapters.dedup();
    adapters
}
