//! Gateways and agents, several of each, as processes of their own on one bus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::files::Assets;
use autoact_testkit::poll::poll_until;
use autoact_testkit::{NatsServer, Program, Running, effects, ports};
use autoact_wire::client::connect_lazy;
use nix::sys::signal::Signal;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// How long a service may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
/// A lease that is not kept alive passes on after this long.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// Replicas of every service.
pub(crate) const REPLICAS: u16 = 2;
/// In the order of their ports.
const SERVICES: [&str; 4] = ["gateway", "plan-agent", "tool-agent", "reflect-agent"];

/// A process of the cluster: its service, and which replica it is.
pub(crate) type Member = (&'static str, u16);

/// Running services, with a `Retrieve` that notes its runs.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    base_port: u16,
    running: BTreeMap<Member, Running>,
    pub(crate) nats: NatsServer,
}

impl Cluster {
    /// Starts all of them.
    pub(crate) async fn start() -> anyhow::Result<Cluster> {
        let dir = tempfile::tempdir()?;
        let mut assets = Assets::bundled(dir.path())?;
        assets.tools = effects::library(&assets, dir.path())?;
        let offsets: Vec<u16> = (0..SERVICES.len() as u16 * REPLICAS).flat_map(|index| [index, 100 + index]).collect();
        let mut cluster =
            Cluster { dir, base_port: ports::free_block(&offsets)?, running: BTreeMap::new(), nats: NatsServer::start().await? };
        for member in Cluster::members() {
            std::fs::write(cluster.config(member), cluster.settings(member, &assets))?;
            cluster.launch(member)?;
        }
        for member in Cluster::members() {
            cluster.ready(member).await?;
        }
        Ok(cluster)
    }

    /// Every process but the bus.
    pub(crate) fn members() -> impl Iterator<Item = Member> {
        SERVICES.into_iter().flat_map(|service| (0..REPLICAS).map(move |replica| (service, replica)))
    }

    /// Where its files are.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where a member listens.
    pub(crate) fn address(&self, member: Member) -> String {
        format!("http://127.0.0.1:{}", self.port(member))
    }

    fn port(&self, (service, replica): Member) -> u16 {
        let index = SERVICES.iter().position(|name| *name == service).unwrap_or_default();
        self.base_port + u16::try_from(index).unwrap_or_default() * REPLICAS + replica
    }

    fn config(&self, (service, replica): Member) -> PathBuf {
        self.dir.path().join(format!("{service}-{replica}.toml"))
    }

    fn settings(&self, member: Member, assets: &Assets) -> String {
        let (service, _) = member;
        let port = self.port(member);
        let path = |path: &Path| format!("{:?}", path.display().to_string());
        let mut text = format!(
            "[common]\nnats.url = \"{}\"\n\n[{service}]\nlisten = \"127.0.0.1:{port}\"\nmetrics_listen = \"127.0.0.1:{}\"\n",
            self.nats.url(),
            port + 100
        );
        match service.strip_suffix("-agent") {
            Some(role) => {
                text += &format!("model = {}\nadapter = {}\nengine.threads = 1\n", path(&assets.model), path(&assets.adapters.join(role)))
            }
            None => {
                text += &format!("memory = \"\"\nbus.lease = \"{}s\"\nbus.allow_unsynced = true\n", LEASE.as_secs());
                for role in ["plan", "tool", "reflect"] {
                    let name = SERVICES.into_iter().find(|name| name.strip_suffix("-agent") == Some(role)).unwrap_or_default();
                    let all: Vec<String> = (0..REPLICAS).map(|replica| self.address((name, replica))).collect();
                    text += &format!("agents.{role} = \"{}\"\n", all.join(","));
                }
            }
        }
        if service == "tool-agent" {
            text += &format!("tools = {}\ncorpus = {}\nmemory = \"\"\n", path(&assets.tools), path(&assets.corpus));
        }
        text
    }

    fn launch(&mut self, member: Member) -> anyhow::Result<()> {
        let config = self.config(member).display().to_string();
        self.running.insert(member, Program::new(member.0)?.args(["--config", &config]).start()?);
        Ok(())
    }

    async fn ready(&self, member: Member) -> anyhow::Result<()> {
        let address = self.address(member);
        poll_until(START_LIMIT, &format!("{member:?}"), async || {
            let channel = connect_lazy(&address).ok()?;
            let health = HealthClient::new(channel).check(HealthCheckRequest::default()).await.ok()?;
            (health.into_inner().status() == ServingStatus::Serving).then_some(())
        })
        .await
    }

    /// Sends a member a signal.
    pub(crate) fn signal(&self, member: Member, signal: Signal) {
        if let Some(running) = self.running.get(&member) {
            running.signal(signal);
        }
    }

    /// Ends a member without a word, and starts it again.
    pub(crate) async fn kill(&mut self, member: Member) -> anyhow::Result<()> {
        let killed = self.running.remove(&member).context("it runs")?;
        killed.signal(Signal::SIGKILL);
        killed.output(START_LIMIT).await?;
        self.launch(member)
    }
}
