//! The services as processes of their own on one bus, one or several of each, any of which can be
//! killed, stopped, cut off and started again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_certificates as certificates;
use autoact_tls::{Tls, TlsFiles};
use autoact_wire::client::Connector;
use nix::sys::signal::Signal;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::files::{Assets, tls_files};
use crate::nats::NatsServer;
use crate::poll::poll_until;
use crate::ports;
use crate::program::{Output, Program, Running};
use crate::proxy::Proxy;

/// How long a service may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
/// In the order of their ports.
const SERVICES: [&str; COUNT as usize] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];
const COUNT: u16 = 5;
/// The metrics ports begin so far behind the others.
const METRICS: u16 = 100;

/// A process of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Its service.
    pub service: &'static str,
    /// Which replica of it, from 0 on.
    pub replica: u16,
}

impl From<&'static str> for Member {
    /// The first of a service.
    fn from(service: &'static str) -> Member {
        Member { service, replica: 0 }
    }
}

/// How a cluster is started.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Of every service.
    pub replicas: u16,
    /// With the memory service, of which there is one.
    pub memory: bool,
    /// How long a lease lasts that is not kept alive.
    pub lease: Duration,
    /// Further lines of a service's section of the configuration.
    pub settings: Vec<(&'static str, String)>,
    /// Put a [`Proxy`] between every service and the bus, and between every gateway and every agent.
    pub proxies: bool,
    /// The library that gives every process a clock of its own, [`faketime`](crate::files::faketime):
    /// [`Cluster::set_clock`] sets it.
    pub clocks: Option<PathBuf>,
    /// Mutual TLS between all of them, clients included.
    pub tls: bool,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            replicas: 1,
            memory: false,
            lease: Duration::from_secs(2),
            settings: Vec::new(),
            proxies: false,
            clocks: None,
            tls: false,
        }
    }
}

/// Where a connection of a member leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Bus,
    Agent(Member),
}

/// Running services. Everything is gone when it has been dropped.
#[derive(Debug)]
pub struct Cluster {
    options: ClusterOptions,
    dir: tempfile::TempDir,
    base_port: u16,
    running: BTreeMap<Member, Running>,
    links: BTreeMap<(Member, End), Proxy>,
    /// The bus: one server, or several that are one cluster.
    pub nats: Vec<NatsServer>,
}

impl Cluster {
    /// Starts all of them and waits until they are ready, with the bundled model and the tool
    /// library that `tools` makes in the cluster's directory.
    pub async fn start(
        nats: Vec<NatsServer>,
        options: ClusterOptions,
        tools: impl FnOnce(&Assets, &Path) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Cluster> {
        let dir = tempfile::tempdir()?;
        let mut assets = Assets::bundled(dir.path())?;
        assets.tools = tools(&assets, dir.path())?;
        let offsets: Vec<u16> = (0..options.replicas * COUNT).flat_map(|index| [index, METRICS + index]).collect();
        let base_port = ports::free_block(&offsets)?;
        let mut cluster = Cluster { options, dir, base_port, running: BTreeMap::new(), links: BTreeMap::new(), nats };
        if cluster.options.tls {
            certificates::init(&cluster.certificates(), &certificates::Options::default())?;
        }
        if cluster.options.proxies {
            cluster.link().await?;
        }
        let members = cluster.members();
        for member in &members {
            std::fs::write(cluster.config(*member), cluster.settings(*member, &assets))?;
            cluster.launch(*member)?;
        }
        for member in &members {
            cluster.ready(*member).await?;
        }
        Ok(cluster)
    }

    /// Every process but the bus.
    pub fn members(&self) -> Vec<Member> {
        let of = |service: &'static str| {
            let replicas = if service == "memory" { u16::from(self.options.memory) } else { self.options.replicas };
            (0..replicas).map(move |replica| Member { service, replica })
        };
        SERVICES.into_iter().flat_map(of).collect()
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Where a member listens.
    pub fn address(&self, member: impl Into<Member>) -> String {
        format!("{}://{}", self.scheme(), self.socket(member.into()))
    }

    fn scheme(&self) -> &'static str {
        if self.options.tls { "https" } else { "http" }
    }

    /// What a client connects with: the operator's certificate where there is TLS.
    pub fn connector(&self) -> anyhow::Result<Connector> {
        let tls = self.options.tls.then(|| Tls::read(self.tls_files("autoact"), true)).transpose()?;
        Ok(Connector::new(tls))
    }

    fn certificates(&self) -> PathBuf {
        self.dir.path().join("tls")
    }

    fn tls_files(&self, name: &str) -> TlsFiles {
        tls_files(&self.certificates(), name)
    }

    /// The same for all replicas of a service.
    pub fn addresses(&self, service: &'static str) -> Vec<String> {
        self.members().into_iter().filter(|member| member.service == service).map(|member| self.address(member)).collect()
    }

    /// Where a member listens.
    pub fn socket(&self, member: Member) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port(member)))
    }

    /// Where clients of the bus find it.
    pub fn bus(&self) -> String {
        self.nats.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    /// The connections of a member, by names for people: to the bus, and of a gateway to each agent.
    /// None without [`ClusterOptions::proxies`].
    pub fn links(&self, member: Member) -> Vec<(String, &Proxy)> {
        let of = self.links.range((member, End::Bus)..).take_while(|((from, _), _)| *from == member);
        of.map(|((Member { service, replica }, end), proxy)| {
            let end = match end {
                End::Bus => "the bus".to_owned(),
                End::Agent(agent) => format!("{} {}", agent.service, agent.replica),
            };
            (format!("{service} {replica} and {end}"), proxy)
        })
        .collect()
    }

    async fn link(&mut self) -> anyhow::Result<()> {
        let servers: Vec<SocketAddr> = self.nats.iter().map(NatsServer::addr).collect();
        for member in self.members() {
            self.links.insert((member, End::Bus), Proxy::start(servers.clone()).await?);
            for agent in self.members().into_iter().filter(|agent| member.service == "gateway" && agent.service.ends_with("-agent")) {
                self.links.insert((member, End::Agent(agent)), Proxy::start([self.socket(agent)]).await?);
            }
        }
        Ok(())
    }

    fn port(&self, Member { service, replica }: Member) -> u16 {
        let index = SERVICES.iter().position(|name| *name == service).unwrap_or_default();
        self.base_port + u16::try_from(index).unwrap_or_default() * self.options.replicas + replica
    }

    fn config(&self, Member { service, replica }: Member) -> PathBuf {
        self.dir.path().join(format!("{service}-{replica}.toml"))
    }

    fn settings(&self, member: Member, assets: &Assets) -> String {
        let (service, port) = (member.service, self.port(member));
        let path = |path: &Path| format!("{:?}", path.display().to_string());
        let through = |end: End| self.links.get(&(member, end)).map(Proxy::addr);
        let bus = through(End::Bus).map_or_else(|| self.bus(), |proxy| format!("nats://{proxy}"));
        let memory = if self.options.memory { self.address("memory") } else { String::new() };
        let mut text = format!(
            "[common]\nnats.url = \"{bus}\"\n\n[{service}]\nlisten = \"127.0.0.1:{port}\"\nmetrics_listen = \"127.0.0.1:{}\"\n",
            port + METRICS
        );
        if self.options.tls {
            let TlsFiles { ca, cert, key } = self.tls_files(service);
            text += &format!("tls.ca = {}\ntls.cert = {}\ntls.key = {}\n", path(&ca), path(&cert), path(&key));
        }
        if let Some(role) = service.strip_suffix("-agent") {
            text += &format!("model = {}\nadapter = {}\n", path(&assets.model), path(&assets.adapters.join(role)));
            if self.options.replicas > 1 {
                text += "engine.threads = 1\n";
            }
        }
        match service {
            "gateway" => {
                let lease = self.options.lease.as_millis();
                text += &format!("memory = \"{memory}\"\nbus.lease = \"{lease}ms\"\nbus.allow_unsynced = true\nrecall.timeout = \"1s\"\n");
                for role in ["plan", "tool", "reflect"] {
                    let agents = self.members().into_iter().filter(|agent| agent.service.strip_suffix("-agent") == Some(role));
                    let all = agents.map(|agent| {
                        through(End::Agent(agent)).map_or_else(|| self.address(agent), |proxy| format!("{}://{proxy}", self.scheme()))
                    });
                    text += &format!("agents.{role} = \"{}\"\n", all.collect::<Vec<_>>().join(","));
                }
            }
            "tool-agent" => {
                text += &format!("tools = {}\ncorpus = {}\nmemory = \"{memory}\"\n", path(&assets.tools), path(&assets.corpus));
            }
            "memory" => text += &format!("data_dir = {}\ndocuments_dir = \"\"\n", path(&self.dir.path().join("memory"))),
            _ => {}
        }
        for (_, lines) in self.options.settings.iter().filter(|(of, _)| *of == service) {
            text += lines;
            text.push('\n');
        }
        text
    }

    fn launch(&mut self, member: Member) -> anyhow::Result<()> {
        let config = self.config(member).display().to_string();
        let mut program = Program::new(member.service)?.args(["--config", &config]);
        if let Some(library) = &self.options.clocks {
            let clock = self.clock(member);
            if !clock.exists() {
                std::fs::write(&clock, "+0")?;
            }
            program = program
                .env("LD_PRELOAD", library.display().to_string())
                .env("FAKETIME_TIMESTAMP_FILE", clock.display().to_string())
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        self.running.insert(member, program.start()?);
        Ok(())
    }

    fn clock(&self, Member { service, replica }: Member) -> PathBuf {
        self.dir.path().join(format!("{service}-{replica}.clock"))
    }

    /// Sets a member's clock so many seconds before or after the machine's. It is seen within a
    /// second, and by later starts too.
    pub fn set_clock(&self, member: impl Into<Member>, seconds: i64) -> anyhow::Result<()> {
        let clock = self.clock(member.into());
        let next = clock.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}"))?;
        // whole, or not at all
        Ok(std::fs::rename(next, clock)?)
    }

    /// Waits until a member answers that it is ready.
    pub async fn ready(&self, member: impl Into<Member>) -> anyhow::Result<()> {
        let member = member.into();
        let (address, connector) = (self.address(member), self.connector()?);
        poll_until(START_LIMIT, &format!("{member:?}"), async || {
            let channel = connector.connect_lazy(&address).ok()?;
            let health = HealthClient::new(channel).check(HealthCheckRequest::default()).await.ok()?;
            (health.into_inner().status() == ServingStatus::Serving).then_some(())
        })
        .await
    }

    /// Sends a member a signal.
    pub fn signal(&self, member: impl Into<Member>, signal: Signal) {
        if let Some(running) = self.running.get(&member.into()) {
            running.signal(signal);
        }
    }

    /// Ends a member without a word.
    pub async fn kill(&mut self, member: impl Into<Member>) -> anyhow::Result<()> {
        self.end(member.into(), Signal::SIGKILL, START_LIMIT).await.map(drop)
    }

    /// Asks a member to end, as Kubernetes does, and waits until it has; what it left behind.
    pub async fn stop(&mut self, member: impl Into<Member>, limit: Duration) -> anyhow::Result<Output> {
        self.end(member.into(), Signal::SIGTERM, limit).await
    }

    async fn end(&mut self, member: Member, signal: Signal, limit: Duration) -> anyhow::Result<Output> {
        let running = self.running.remove(&member).with_context(|| format!("{member:?} does not run"))?;
        running.signal(signal);
        running.output(limit).await
    }

    /// What running members wrote about `word`, a line each with the member's name before it.
    pub fn lines_about(&self, word: &str) -> anyhow::Result<Vec<String>> {
        let mut lines = Vec::new();
        for (Member { service, replica }, running) in &self.running {
            let log = running.complaints()?;
            lines.extend(log.lines().filter(|line| line.contains(word)).map(|line| format!("{service} {replica}: {line}")));
        }
        Ok(lines)
    }

    /// Starts a member that has ended, and does not wait until it is ready.
    pub fn resume(&mut self, member: impl Into<Member>) -> anyhow::Result<()> {
        self.launch(member.into())
    }

    /// Starts a member that has ended, and waits until it is ready.
    pub async fn restart(&mut self, member: impl Into<Member>) -> anyhow::Result<()> {
        let member = member.into();
        self.launch(member)?;
        self.ready(member).await
    }
}
