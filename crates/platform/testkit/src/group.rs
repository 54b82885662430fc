//! A whole group: `autoact up` with nats-server and the five services as real processes, on ports
//! and in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_tls::{Tls, TlsFiles};
use autoact_wire::client::Connector;
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::process::Child;
use tonic::transport::Channel;

use crate::files::{self, Assets};
use crate::poll::poll_until;
use crate::ports;
use crate::processes::{self, MARK};
use crate::program::Program;

/// How long a group may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long it may take to stop by itself before what is left is killed.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// The services in the order of their ports.
pub const SERVICES: [&str; 5] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];
/// Where the metrics ports begin, and NATS's port, counted from the first port.
const METRICS: u16 = 100;
const NATS: u16 = 22;
/// The port of NATS's monitoring.
const MONITORING: u16 = 23;
/// Where the ports of second replicas begin, counted from the first port.
const SECOND: u16 = 30;

/// How a group is started.
#[derive(Debug, Clone, Default)]
pub struct GroupOptions {
    /// Further arguments of `autoact up`.
    pub args: Vec<String>,
    /// Further variables: all services inherit them.
    pub env: Vec<(String, String)>,
    /// What it works with, in place of the bundled model.
    pub assets: Option<Assets>,
}

/// A running group. Everything it started is gone when it has been dropped.
#[derive(Debug)]
pub struct Group {
    child: Child,
    program: Program,
    mark: String,
    base_port: u16,
    assets: Assets,
    dir: TempDir,
}

impl Group {
    /// Starts one and waits until every service is ready.
    pub async fn start() -> anyhow::Result<Group> {
        Group::start_with(GroupOptions::default()).await
    }

    /// The same with further arguments and variables.
    pub async fn start_with(options: GroupOptions) -> anyhow::Result<Group> {
        let mut group = Group::spawn(options)?;
        group.ready().await?;
        Ok(group)
    }

    /// Starts one and does not wait: for runs that end by themselves.
    pub fn spawn(options: GroupOptions) -> anyhow::Result<Group> {
        processes::end_orphans();
        let dir = tempfile::Builder::new().prefix("autoact-").tempdir()?;
        let assets = options.assets.map_or_else(|| Assets::bundled(dir.path()), Ok)?;
        let offsets: Vec<u16> =
            (0..5).chain(SECOND..SECOND + 4).flat_map(|index| [index, METRICS + index]).chain([NATS, MONITORING]).collect();
        let base_port = ports::free_block(&offsets)?;
        let mark = processes::new_mark();
        let path = |path: &Path| path.display().to_string();
        let mut program = Program::new("autoact")?
            .args(["up", "--base-port", &base_port.to_string(), "--state-dir", &path(&dir.path().join("run"))])
            .args(["--model", &path(&assets.model), "--adapters", &path(&assets.adapters)])
            .args(["--corpus", &path(&assets.corpus), "--tools", &path(&assets.tools)])
            .args(options.args)
            .env(MARK, mark.as_str())
            .env("AUTOACT_NATS_SERVER", path(&files::nats_server()?));
        for (name, value) in options.env {
            program = program.env(&name, value);
        }
        let child = spawn_into(&program, dir.path())?;
        Ok(Group { child, program, mark, base_port, assets, dir })
    }

    /// Starts it again, with the same state directory and ports, after it has ended.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.child.try_wait()?.is_some(), "`autoact up` still runs");
        self.child = spawn_into(&self.program, self.dir.path())?;
        self.ready().await
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        let started = poll_until(START_LIMIT, "the group to start", async || match self.child.try_wait() {
            Ok(Some(status)) => Some(Err(anyhow::anyhow!("`autoact up` ended ({status})"))),
            Err(error) => Some(Err(error.into())),
            Ok(None) => self.said().contains("the group is up").then_some(Ok(())),
        })
        .await;
        started.and_then(|started| started).with_context(|| self.said())
    }

    /// What it works with.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// The gateway's address.
    pub fn gateway(&self) -> String {
        self.grpc("gateway")
    }

    /// The gRPC address of a service's second replica (`--replicas 2`).
    pub fn second_grpc(&self, service: &str) -> String {
        format!("{}://127.0.0.1:{}", scheme(service), self.base_port + SECOND + index(service))
    }

    /// The address (`host:port`) where a service's second replica shows its metrics.
    pub fn second_metrics(&self, service: &str) -> String {
        format!("127.0.0.1:{}", self.base_port + METRICS + SECOND + index(service))
    }

    /// The gRPC address of a service: with TLS, but for the gateway's.
    pub fn grpc(&self, service: &str) -> String {
        format!("{}://{}", scheme(service), self.door(service))
    }

    /// The same without its scheme: `host:port`.
    pub fn door(&self, service: &str) -> String {
        format!("127.0.0.1:{}", self.base_port + index(service))
    }

    /// A channel to a service, with the operator's certificate.
    pub fn channel(&self, service: &str) -> anyhow::Result<Channel> {
        Ok(self.connector("autoact")?.connect_lazy(&self.grpc(service))?)
    }

    /// Connects with the certificate of `name`: a service, or `autoact`, the operator.
    pub fn connector(&self, name: &str) -> anyhow::Result<Connector> {
        Ok(Connector::new(Some(Tls::read(self.tls_files(name), true)?)))
    }

    /// The files of mutual TLS of `name`, which `autoact up` has made.
    pub fn tls_files(&self, name: &str) -> TlsFiles {
        files::tls_files(&self.state_dir().join("tls"), name)
    }

    /// Arguments with which a service that is started singly has the certificate of `name`.
    pub fn tls_args(&self, name: &str) -> Vec<String> {
        let TlsFiles { ca, cert, key } = self.tls_files(name);
        let files = [("tls.ca", ca), ("tls.cert", cert), ("tls.key", key)];
        files.into_iter().flat_map(|(setting, path)| ["--set".to_owned(), format!("{setting}={}", path.display())]).collect()
    }

    /// Arguments with which a service that is started singly reaches the bus as the user `name`.
    pub fn nats_args(&self, name: &str) -> Vec<String> {
        let TlsFiles { ca, cert, key } = self.tls_files(name);
        let nkey = self.state_dir().join("nats").join(format!("{name}.nk"));
        let files = [("nats.ca", ca), ("nats.cert", cert), ("nats.key", key), ("nats.nkey_file", nkey)];
        let set = files.into_iter().flat_map(|(setting, path)| ["--set".to_owned(), format!("{setting}={}", path.display())]);
        ["--nats-url".to_owned(), self.nats()].into_iter().chain(set).collect()
    }

    /// The address (`host:port`) where a service shows its metrics.
    pub fn metrics(&self, service: &str) -> String {
        format!("127.0.0.1:{}", self.base_port + METRICS + index(service))
    }

    /// The bus.
    pub fn nats(&self) -> String {
        format!("nats://127.0.0.1:{}", self.base_port + NATS)
    }

    /// The state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// An `autoact` that talks to this group.
    pub fn autoact(&self, args: impl IntoIterator<Item = impl Into<String>>) -> anyhow::Result<Program> {
        Ok(Program::new("autoact")?
            .args(args)
            .env("AUTOACT_GATEWAY", self.gateway())
            .env("AUTOACT_MEMORY", self.grpc("memory"))
            .env("AUTOACT_STATE_DIR", self.state_dir().display().to_string())
            .env("AUTOACT_NATS_SERVER", files::nats_server()?.display().to_string()))
    }

    /// What `autoact up` has printed so far.
    pub fn said(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stdout"), read("stderr"))
    }

    /// The log of a service, or of `nats-server`.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.state_dir().join("logs").join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Every line of every log that says that something panicked.
    pub fn panics(&self) -> Vec<String> {
        let logs = SERVICES.iter().map(|name| (*name, self.log(name))).chain([("autoact", self.said())]);
        logs.flat_map(|(name, log)| {
            let lines: Vec<String> = log.lines().filter(|line| line.contains("panicked")).map(|line| format!("{name}: {line}")).collect();
            lines
        })
        .collect()
    }

    /// The process id of `autoact up`, while it runs.
    pub fn pid(&self) -> Option<i32> {
        self.child.id().and_then(|id| i32::try_from(id).ok())
    }

    /// Every process of the group.
    pub fn processes(&self) -> Vec<processes::Marked> {
        processes::marked(&self.mark)
    }

    /// Sends `autoact up` a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            processes::signal(pid, signal);
        }
    }

    /// Waits until `autoact up` has ended; its exit code, `None` when a signal ended it.
    pub async fn ended(&mut self, limit: Duration) -> anyhow::Result<Option<i32>> {
        let status = crate::poll::within(limit, "`autoact up`", self.child.wait()).await;
        Ok(status.with_context(|| self.said())??.code())
    }

    /// Waits until no process of the group is left.
    pub async fn all_gone(&self, limit: Duration) -> anyhow::Result<()> {
        processes::all_gone(&self.mark, limit).await
    }
}

impl Drop for Group {
    #[expect(clippy::disallowed_methods, reason = "a destructor cannot await, and it polls to a deadline")]
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
        let deadline = Instant::now() + STOP_LIMIT;
        while !(matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) && self.processes().is_empty()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        for left in self.processes() {
            processes::signal(left.pid, Signal::SIGKILL);
        }
        if std::thread::panicking() {
            eprintln!("`autoact up` said:\n{}", self.said());
            for name in SERVICES {
                let log = self.log(name);
                let tail: Vec<&str> = log.lines().rev().take(15).collect();
                eprintln!("--- {name}\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
    }
}

fn spawn_into(program: &Program, dir: &Path) -> anyhow::Result<Child> {
    let out = std::fs::File::create(dir.join("stdout"))?;
    let err = std::fs::File::create(dir.join("stderr"))?;
    // a process group of its own: a Ctrl-C at the terminal of the tests is not for it
    Ok(program.command().stdout(Stdio::from(out)).stderr(Stdio::from(err)).process_group(0).spawn()?)
}

/// How a service of a group is called.
fn scheme(service: &str) -> &'static str {
    if service == SERVICES[0] { "http" } else { "https" }
}

fn index(service: &str) -> u16 {
    SERVICES.iter().position(|name| *name == service).unwrap_or_default() as u16
}
