//! Versions promoted and rolled back under a plan-agent that never stops answering: a real engine
//! with tiny random weights, over real gRPC.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone)] // tests

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_agent::testing::{history, tiny_model};
use autoact_agent::{BackendConfig, EngineConfig};
use autoact_config::{Common, Section};
use autoact_model::{Backend, Engine, EngineOptions, ModelDir};
use autoact_registry::{NewVersion, Pointer, Promotion, ROLES, Registry, Version};
use autoact_service::{Running, Service, Setup};
use autoact_testkit::{OpenAiOptions, OpenAiServer};
use autoact_wire::agents_v1::PlanRequest;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::plan_response::Event;
use autoact_wire::v1::Usage;
use plan_agent::{PlanAgentConfig, PlanAgentService};
use tempfile::TempDir;
use tokio::time::Instant;

/// Much longer than a switch takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const CLIENTS: usize = 4;

/// Three copies of the checkpoint's adapter with another scale: another digest, and other replies.
fn publish(registry: &Registry, model: &Path, dir: &Path, alpha: u32) -> Version {
    let adapters = dir.join(format!("alpha-{alpha}"));
    for role in ROLES {
        let to = adapters.join(role);
        fs::create_dir_all(&to).unwrap();
        fs::copy(model.join("adapter/adapter_model.safetensors"), to.join("adapter_model.safetensors")).unwrap();
        scale(&model.join("adapter/adapter_config.json"), &to.join("adapter_config.json"), alpha);
    }
    let base = ModelDir::open(model).unwrap();
    let new = NewVersion {
        task: "switch".into(),
        base: "tiny".into(),
        base_sha256: base.digest().unwrap().into(),
        adapters,
        ..NewVersion::default()
    };
    registry.publish(new).unwrap()
}

fn scale(from: &Path, to: &Path, alpha: u32) {
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(from).unwrap()).unwrap();
    config["lora_alpha"] = alpha.into();
    fs::write(to, config.to_string()).unwrap();
}

struct Group {
    model: TempDir,
    dir: TempDir,
    registry: Registry,
}

impl Group {
    fn new() -> Group {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path().join("adapters")).unwrap();
        Group { model: tiny_model("llama3").unwrap(), dir, registry }
    }

    fn publish(&self, alpha: u32) -> Version {
        publish(&self.registry, self.model.path(), self.dir.path(), alpha)
    }

    /// The agent as its binary runs it: an adapter of its own, and the registry.
    async fn start(&self) -> Running {
        let adapter = self.model.path().join("adapter");
        self.start_as(PlanAgentConfig { model: self.model.path().to_owned(), adapter, ..PlanAgentConfig::default() }).await
    }

    async fn start_as(&self, config: PlanAgentConfig) -> Running {
        let config = PlanAgentConfig {
            adapter_registry: self.registry.root().to_owned(),
            engine: EngineConfig { threads: 1, ..EngineConfig::default() },
            ..config
        };
        let common = Common { grace_period: Duration::from_secs(5), ..Common::on_ports(0, 0) };
        let mut setup = Setup::bind(PlanAgentConfig::NAME, common).await.unwrap();
        PlanAgentService::build(config, &mut setup).await.unwrap();
        setup.finish().await.unwrap().start()
    }
}

/// One whole reply's usage, or what went wrong.
async fn plan(address: &str) -> Result<Usage, String> {
    let channel = autoact_wire::client::connect_lazy(address).map_err(|error| error.to_string())?;
    let request = PlanRequest { trajectory: Some(history(vec![])), sampling: None, ..Default::default() };
    let mut stream = PlanAgentClient::new(channel).plan(request).await.map_err(|status| status.to_string())?.into_inner();
    while let Some(response) = stream.message().await.map_err(|status| status.to_string())? {
        if let Some(Event::Result(result)) = response.event {
            return result.usage.ok_or_else(|| "no usage".to_owned());
        }
    }
    Err("a stream without a result".to_owned())
}

/// The adapters (name and digest) of each client's replies in order, without repetitions.
type Seen = Vec<Vec<(String, String)>>;

/// Clients that ask without a pause, and what they have seen.
struct Load {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    failed: Arc<Mutex<Vec<String>>>,
    clients: Vec<tokio::task::JoinHandle<usize>>,
}

impl Load {
    fn start(address: String) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(vec![Vec::new(); CLIENTS]));
        let failed = Arc::new(Mutex::new(Vec::new()));
        let clients = (0..CLIENTS)
            .map(|client| {
                let (stop, seen, failed, address) = (stop.clone(), seen.clone(), failed.clone(), address.clone());
                tokio::spawn(async move {
                    let mut replies = 0;
                    while !stop.load(Ordering::Relaxed) {
                        match plan(&address).await {
                            Ok(usage) => {
                                replies += 1;
                                let adapter = (usage.adapter, usage.adapter_digest);
                                let mine = &mut seen.lock().unwrap()[client];
                                if mine.last() != Some(&adapter) {
                                    mine.push(adapter);
                                }
                            }
                            Err(error) => failed.lock().unwrap().push(error),
                        }
                    }
                    replies
                })
            })
            .collect();
        Load { stop, seen, failed, clients }
    }

    /// Until every client's newest reply is of this adapter.
    async fn until_all_speak(&self, name: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let newest: Vec<Option<String>> =
                self.seen.lock().unwrap().iter().map(|seen| seen.last().map(|(name, _)| name.clone())).collect();
            if newest.iter().all(|newest| newest.as_deref() == Some(name)) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "waited for `{name}`, the clients hear {newest:?}; failures: {:?}",
                self.failed.lock().unwrap()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) -> (Seen, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let mut replies = 0;
        for client in self.clients {
            replies += client.await.unwrap();
        }
        assert_eq!(*self.failed.lock().unwrap(), Vec::<String>::new(), "no request may fail");
        let seen = self.seen.lock().unwrap().clone();
        (seen, replies)
    }
}

fn metric(line: &str) -> f64 {
    let text = autoact_telemetry::prometheus::recorder().unwrap().render();
    let value = text.lines().find_map(|found| found.strip_prefix(line)).map(str::trim);
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_versions_are_promoted_and_rolled_back() {
    let group = Group::new();
    let (first, second) = (group.publish(8), group.publish(9));
    let running = group.start().await;
    running.readiness().ready().await;
    let load = Load::start(running.addr().to_string());

    load.until_all_speak("adapter").await;
    group.registry.promote(first.id()).unwrap();
    load.until_all_speak(&first.adapter_name("plan")).await;
    group.registry.promote(second.id()).unwrap();
    load.until_all_speak(&second.adapter_name("plan")).await;
    group.registry.rollback().unwrap();
    load.until_all_speak(&first.adapter_name("plan")).await;
    group.registry.rollback().unwrap();
    load.until_all_speak("adapter").await;

    let (seen, replies) = load.end().await;
    println!("{replies} replies over four switches");
    let digest = |version: &Version| version.manifest.adapters["plan"].sha256.clone();
    let own = autoact_lora::Adapter::load(group.model.path().join("adapter")).unwrap().digest;
    let expected = [
        ("adapter".to_owned(), own.clone()),
        (first.adapter_name("plan"), digest(&first)),
        (second.adapter_name("plan"), digest(&second)),
        (first.adapter_name("plan"), digest(&first)),
        ("adapter".to_owned(), own),
    ];
    for seen in seen {
        assert_eq!(seen, expected, "each client hears the versions in order, with the published digests");
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_verify_is_refused_and_the_old_goes_on() {
    let group = Group::new();
    let (good, bad) = (group.publish(8), group.publish(9));
    group.registry.promote(good.id()).unwrap();
    let running = group.start().await;
    let address = running.addr().to_string();
    assert_eq!(plan(&address).await.unwrap().adapter, good.adapter_name("plan"), "a fresh agent speaks with the current version");

    // somebody edits a published adapter and puts it into service past `promote`, which would
    // refuse
    let config = bad.adapter("plan").join("adapter_config.json");
    scale(&config, &config, 99);
    let refused = "autoact_adapter_switches_total{agent=\"plan\",outcome=\"refused\"}";
    let before = metric(refused);
    let mut pointer = group.registry.pointer().unwrap();
    pointer.revision += 1;
    pointer.promotions.push(Promotion { version: bad.id().clone(), at: String::new() });
    write(&group.registry, &pointer);
    until(|| metric(refused) > before).await;
    assert_eq!(plan(&address).await.unwrap().adapter, good.adapter_name("plan"));

    // a pointer that cannot be read, and one that is gone
    fs::write(group.registry.root().join("current.json"), "{").unwrap();
    until(|| metric(refused) > before + 1.0).await;
    fs::remove_file(group.registry.root().join("current.json")).unwrap();
    until(|| metric(refused) > before + 2.0).await;
    assert_eq!(plan(&address).await.unwrap().adapter, good.adapter_name("plan"));

    // a good one is taken at once
    let next = group.publish(10);
    group.registry.promote(next.id()).unwrap();
    let deadline = Instant::now() + LIMIT;
    while plan(&address).await.unwrap().adapter != next.adapter_name("plan") {
        assert!(Instant::now() < deadline);
    }
    running.stop().await.unwrap();

    // an agent that starts now, on another base, speaks with its own adapter and says why
    let other = tiny_model("qwen3").unwrap();
    let elsewhere = Group { model: other, dir: group.dir, registry: group.registry };
    let before = metric(refused);
    let running = elsewhere.start().await;
    assert_eq!(plan(&running.addr().to_string()).await.unwrap().adapter, "adapter");
    assert!(metric(refused) > before);
    running.stop().await.unwrap();
}

/// The adapter that speaks, as soon as it is this one.
async fn until_it_speaks(address: &str, name: &str) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let speaks = plan(address).await.unwrap().adapter;
        if speaks == name {
            return;
        }
        assert!(Instant::now() < deadline, "waited for `{name}`, `{speaks}` speaks");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The server stands for vLLM with `VLLM_ALLOW_RUNTIME_LORA_UPDATING`; the model behind it is real.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_loads_what_is_promoted() {
    let group = Group::new();
    let (first, second) = (group.publish(8), group.publish(9));
    let model = ModelDir::open(group.model.path()).unwrap();
    let engine = Engine::start(&model, EngineOptions { threads: 1, ..EngineOptions::default() }).unwrap();
    let base = engine.info().name.clone();
    let server = OpenAiServer::of_engine(Arc::new(engine), OpenAiOptions::default()).await.unwrap();
    // the server sees the registry elsewhere
    let seen = group.dir.path().join("mounted");
    std::os::unix::fs::symlink(group.registry.root(), &seen).unwrap();
    let backend = BackendConfig { url: server.url(), model: base, registry_path: seen.clone(), ..BackendConfig::default() };
    let running = group.start_as(PlanAgentConfig { adapter: PathBuf::new(), backend, ..PlanAgentConfig::default() }).await;
    let address = running.addr().to_string();

    assert_eq!(plan(&address).await.unwrap().adapter, "", "nothing is promoted: the base speaks");
    group.registry.promote(first.id()).unwrap();
    until_it_speaks(&address, &first.adapter_name("plan")).await;
    group.registry.promote(second.id()).unwrap();
    until_it_speaks(&address, &second.adapter_name("plan")).await;
    let loaded: Vec<PathBuf> = server.loaded().iter().map(PathBuf::from).collect();
    assert_eq!(loaded.len(), 2);
    assert!(loaded.iter().all(|path| path.starts_with(&seen)), "{loaded:?}");
    group.registry.rollback().unwrap();
    until_it_speaks(&address, &first.adapter_name("plan")).await;
    running.stop().await.unwrap();

    // one that starts now speaks with it from its first word
    let backend = BackendConfig { url: server.url(), model: server.base(), ..BackendConfig::default() };
    let running = group.start_as(PlanAgentConfig { adapter: PathBuf::new(), backend, ..PlanAgentConfig::default() }).await;
    assert_eq!(plan(&running.addr().to_string()).await.unwrap().adapter, first.adapter_name("plan"));
    running.stop().await.unwrap();
}

fn write(registry: &Registry, pointer: &Pointer) {
    let path: PathBuf = registry.root().join("current.json");
    let new = path.with_extension("edited");
    fs::write(&new, serde_json::to_vec(pointer).unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

async fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
