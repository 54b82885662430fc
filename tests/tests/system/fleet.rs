//! The services as processes of their own, each of which can be killed and started again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files::Assets;
use autoact_testkit::poll::poll_until;
use autoact_testkit::{NatsServer, Program, Running, ports};
use autoact_wire::client::connect_lazy;
use nix::sys::signal::Signal;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// How long a service may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
/// In the order of their ports.
const SERVICES: [&str; 5] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];

/// Running services.
pub(crate) struct Fleet {
    dir: tempfile::TempDir,
    base_port: u16,
    running: BTreeMap<&'static str, Running>,
    _nats: NatsServer,
}

impl Fleet {
    /// A gateway and its agents, without memory.
    pub(crate) async fn start() -> anyhow::Result<Fleet> {
        Fleet::with_tools(|assets, _| Ok(assets.tools.clone())).await
    }

    /// Without memory, and with the tool library that `tools` makes in the fleet's directory.
    pub(crate) async fn with_tools(tools: impl FnOnce(&Assets, &Path) -> anyhow::Result<PathBuf>) -> anyhow::Result<Fleet> {
        Fleet::of(&SERVICES[..4], tools).await
    }

    /// All services.
    pub(crate) async fn with_memory() -> anyhow::Result<Fleet> {
        Fleet::of(&SERVICES, |assets, _| Ok(assets.tools.clone())).await
    }

    async fn of(services: &[&'static str], tools: impl FnOnce(&Assets, &Path) -> anyhow::Result<PathBuf>) -> anyhow::Result<Fleet> {
        let dir = tempfile::tempdir()?;
        let mut assets = Assets::bundled(dir.path())?;
        assets.tools = tools(&assets, dir.path())?;
        let offsets: Vec<u16> = (0..5).flat_map(|index| [index, 100 + index]).collect();
        let base_port = ports::free_block(&offsets)?;
        let nats = NatsServer::start().await?;
        let path = |path: PathBuf| format!("{:?}", path.display().to_string());
        let address = |index: u16| format!("http://127.0.0.1:{}", base_port + index);
        let memory = if services.contains(&"memory") { address(4) } else { String::new() };
        let mut config = format!("[common]\nnats.url = \"{}\"\n", nats.url());
        for (name, index) in services.iter().zip(0..) {
            let (port, metrics) = (base_port + index, base_port + 100 + index);
            config += &format!("\n[{name}]\nlisten = \"127.0.0.1:{port}\"\nmetrics_listen = \"127.0.0.1:{metrics}\"\n");
            if let Some(role) = name.strip_suffix("-agent") {
                config += &format!("model = {}\nadapter = {}\n", path(assets.model.clone()), path(assets.adapters.join(role)));
            }
            match *name {
                "gateway" => {
                    config += &format!("memory = \"{memory}\"\nbus.lease = \"2s\"\nbus.allow_unsynced = true\nrecall.timeout = \"1s\"\n");
                    for (role, index) in [("plan", 1), ("tool", 2), ("reflect", 3)] {
                        config += &format!("agents.{role} = \"{}\"\n", address(index));
                    }
                }
                "tool-agent" => {
                    let (tools, corpus) = (path(assets.tools.clone()), path(assets.corpus.clone()));
                    config += &format!("tools = {tools}\ncorpus = {corpus}\nmemory = \"{memory}\"\n");
                }
                "memory" => config += &format!("data_dir = {}\ndocuments_dir = \"\"\n", path(dir.path().join("memory"))),
                _ => {}
            }
        }
        std::fs::write(dir.path().join("config.toml"), config)?;
        let mut fleet = Fleet { dir, base_port, running: BTreeMap::new(), _nats: nats };
        for name in services {
            fleet.launch(name)?;
        }
        for name in services {
            fleet.ready(name).await?;
        }
        Ok(fleet)
    }

    /// Where its files are.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where a service listens.
    pub(crate) fn address(&self, name: &str) -> String {
        let index = SERVICES.iter().position(|service| *service == name).unwrap_or_default();
        format!("http://127.0.0.1:{}", self.base_port + u16::try_from(index).unwrap_or_default())
    }

    fn launch(&mut self, name: &'static str) -> anyhow::Result<()> {
        let config = self.dir.path().join("config.toml").display().to_string();
        self.running.insert(name, Program::new(name)?.args(["--config", &config]).start()?);
        Ok(())
    }

    async fn ready(&self, name: &str) -> anyhow::Result<()> {
        let address = self.address(name);
        poll_until(START_LIMIT, name, async || {
            let channel = connect_lazy(&address).ok()?;
            let health = HealthClient::new(channel).check(HealthCheckRequest::default()).await.ok()?;
            (health.into_inner().status() == ServingStatus::Serving).then_some(())
        })
        .await
    }

    /// Ends a service without a word.
    pub(crate) async fn kill(&mut self, name: &'static str) -> anyhow::Result<()> {
        let killed = self.running.remove(name).context("it runs")?;
        killed.signal(Signal::SIGKILL);
        killed.output(START_LIMIT).await?;
        Ok(())
    }

    /// Starts one that was killed.
    pub(crate) async fn restart(&mut self, name: &'static str) -> anyhow::Result<()> {
        self.launch(name)?;
        self.ready(name).await
    }
}
