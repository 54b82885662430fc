//! The processes of a local group and how they are started: nats-server first, then all services at
//! once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_bus::{BusConfig, ServerConfig};
use autoact_certificates::{AUTHORITY, NATS};
use autoact_trajectory::{Role, Tenant};
use autoact_wire::client::Connector;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::args::GroupOptions;
use crate::bus::{self, CONFIG, KEYS_DIR};
use crate::connector::{self, TLS_DIR};
use crate::supervise::{self, Process, Program};
use crate::up::layout::{Ports, StateDir};
use crate::up::model::toml_string;
use crate::up::patience::Patience;

/// The services, in the order of their ports.
const SERVICES: [&str; 5] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];

/// The one that has no replicas under `up`: its store is a directory that one process opens.
const SINGLE: &str = "memory";

/// Those that are one program, which is told by its name which of them it is.
const AGENTS: [&str; 3] = ["plan-agent", "tool-agent", "reflect-agent"];

/// The library of the user's own tools, in the state directory.
pub(crate) const OWN_TOOLS: &str = "tools.toml";

/// How much longer than an agent for its server the group waits for the agent.
const BACKEND_MARGIN: Duration = Duration::from_secs(10);

/// A process of a service.
#[derive(Debug, Clone, Copy)]
struct Member {
    service: &'static str,
    /// Of the service.
    index: u16,
    /// 0 is the first.
    replica: u16,
}

impl Member {
    /// All processes, those of a service one after another.
    fn all(replicas: u16) -> impl Iterator<Item = Member> {
        (0u16..).zip(SERVICES).flat_map(move |(index, service)| {
            let replicas = if service == SINGLE { 1 } else { replicas };
            (0..replicas).map(move |replica| Member { service, index, replica })
        })
    }

    /// Its process and its log: the first replica is called like its service.
    fn name(self) -> String {
        if self.replica == 0 { self.service.to_owned() } else { format!("{}-{}", self.service, self.replica + 1) }
    }
}

/// A running group.
pub(crate) struct Group {
    processes: Vec<Process>,
    ports: Ports,
    state: StateDir,
    /// Calls the services, with the operator's certificate.
    operator: Connector,
}

impl Group {
    /// Starts nats-server and the services, and returns once every one of them is ready. `say`
    /// hears about progress. A start that reads weights is waited for as long as it goes on.
    pub(crate) async fn start(options: &GroupOptions, say: &dyn Fn(&str)) -> anyhow::Result<Group> {
        let ports = Ports::new(options.base_port, options.replicas)?;
        check_files(options)?;
        let programs = programs_dir()?;
        let nats = nats_server()?;
        let state = StateDir::hold(&options.state_dir)?;
        ports.check_free(SERVICES.len() as u16)?;
        let tls_dir = state.join(TLS_DIR);
        if !autoact_certificates::ensure(&tls_dir)?.is_empty() {
            say(&format!("made certificates for this group in {}", tls_dir.display()));
        }
        let operator = Connector::new(connector::operator(&options.state_dir)?);
        autoact_bus::make_keys(&state.join(KEYS_DIR), false)?;
        let config = state.join(CONFIG);
        std::fs::write(&config, config_file(options, ports, &state)?).with_context(|| format!("cannot write `{}`", config.display()))?;
        let nats_config = state.join("nats.conf");
        std::fs::write(&nats_config, nats_file(ports, &state)?)?;

        let mut group = Group { processes: Vec::new(), ports, state, operator };
        if let Some(said) = options.model.said() {
            say(&said);
        }
        // an agent that gives up first says why
        let limit = options.start_timeout + if options.model.backend.is_some() { BACKEND_MARGIN } else { Duration::ZERO };
        let started = group.start_all(&programs, nats, &config, &nats_config, limit, say).await;
        if let Err(error) = started {
            group.stop().await;
            return Err(error);
        }
        Ok(group)
    }

    async fn start_all(
        &mut self,
        programs: &Path,
        nats: PathBuf,
        config: &Path,
        nats_config: &Path,
        limit: Duration,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let ports = self.ports;
        let readers = Member::all(ports.replicas()).filter(|member| AGENTS.contains(&member.service));
        let readers = readers.map(|member| (member.name(), ports.metrics(member.index, member.replica)));
        let mut patience = Patience::new(limit, readers.collect(), say);
        let logs = self.state.join("logs");
        let server = Program {
            name: "nats-server".into(),
            path: nats,
            args: vec!["-c".into(), nats_config.display().to_string()],
            env: Vec::new(),
            dir: None,
        };
        self.processes.push(Process::start(&server, &logs)?);
        let address = format!("127.0.0.1:{}", self.ports.nats());
        supervise::until(&mut self.processes, &mut patience, "nats-server", || {
            let address = address.clone();
            async move { TcpStream::connect(address).await.is_ok() }
        })
        .await?;
        say(&format!("nats-server     ready on {address} (mutual TLS, a user for each service)"));
        // nobody else uses this bus, so what the release before stored is moved here and now
        let moved = autoact_bus::migrate(
            BusConfig::over(bus::operator(&self.state.join(""), &format!("nats://{address}"))),
            &Tenant::default(),
            |_| {},
        )
        .await?;
        if moved.events > 0 {
            say(&format!("moved {} tasks of the release before to the present schema", moved.tasks));
        }
        let mut path = PathBuf::new();
        for member in Member::all(ports.replicas()) {
            let service = member.service;
            // one link for all replicas: a second one would be put where the first is started just now
            if member.replica == 0 {
                path = if AGENTS.contains(&service) { self.state.link(service, &programs.join("agents"))? } else { programs.join(service) };
            }
            let mut args = vec!["--config".to_owned(), config.display().to_string()];
            if member.replica > 0 {
                // the file says where the first one listens
                let listens = [
                    ("--listen", ports.grpc(member.index, member.replica)),
                    ("--metrics-listen", ports.metrics(member.index, member.replica)),
                ];
                args.extend(listens.into_iter().flat_map(|(flag, port)| [flag.to_owned(), format!("127.0.0.1:{port}")]));
            }
            self.processes
                .push(Process::start(&Program { name: member.name(), path: path.clone(), args, env: Vec::new(), dir: None }, &logs)?);
        }
        for member in Member::all(ports.replicas()) {
            let (name, operator) = (member.name(), self.operator.clone());
            let address = ports.address(member.index, member.replica);
            supervise::until(&mut self.processes, &mut patience, &name, || serving(operator.clone(), address.clone())).await?;
            let (scheme, address) = address.split_once("://").unwrap_or_default();
            let door = if scheme == "https" { "mutual TLS" } else { "plain text: for this machine alone" };
            say(&format!("{name:<15} ready on {address} ({door})"));
        }
        say(&format!("the group is up after {:.1} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Where the first gateway listens.
    pub(crate) fn gateway(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.grpc(0, 0))
    }

    /// Waits until a process ends by itself, which is an error.
    pub(crate) async fn watch(&mut self) -> anyhow::Result<()> {
        let waits = self.processes.iter_mut().map(|process| {
            Box::pin(async move {
                let status = process.wait().await;
                (process.name.clone(), status, process.tail(), process.log.clone())
            })
        });
        let ((name, status, tail, log), _, _) = futures::future::select_all(waits).await;
        anyhow::bail!("`{name}` ended ({}):\n{tail}\nlog: {}", status?, log.display())
    }

    /// Stops everything: the gateway first, because its tasks need the agents while it drains;
    /// nats-server last.
    pub(crate) async fn stop(&mut self) {
        let Some((server, services)) = self.processes.split_first_mut() else { return };
        supervise::stop_all(services).await;
        server.stop().await;
    }

    /// Ends everything at once.
    pub(crate) async fn kill(&mut self) {
        for process in &mut self.processes {
            process.kill().await;
        }
    }

    /// What a person can do now.
    pub(crate) fn instructions(&self) -> String {
        let gateway = self.ports.grpc(0, 0);
        let flag = if gateway == 7400 { String::new() } else { format!(" --gateway http://127.0.0.1:{gateway}") };
        let program = std::env::args_os().next().map_or_else(|| "autoact".into(), |program| program.to_string_lossy().into_owned());
        let mut text = String::from("the group stays up; in another terminal:\n");
        let _ = writeln!(text, "  {program}{flag} ask \"Who wrote Hamlet?\"");
        let _ = writeln!(text, "  {program}{flag} tasks list");
        let _ = writeln!(
            text,
            "  grpcurl -plaintext -d '{{\"task\": {{\"question\": \"Who wrote Hamlet?\"}}}}' 127.0.0.1:{gateway} autoact.v1.Gateway/Ask"
        );
        let _ = writeln!(text, "  curl -s http://127.0.0.1:{}/metrics", self.ports.metrics(0, 0));
        let _ = writeln!(text, "logs: {}", self.state.join("logs").display());
        let pids: Vec<String> =
            self.processes.iter().filter_map(|process| process.id().map(|id| format!("{} {id}", process.name))).collect();
        let _ = writeln!(text, "processes: {}", pids.join(", "));
        text.push_str("stop: Ctrl-C here, or `autoact down`");
        text
    }
}

async fn serving(operator: Connector, address: String) -> bool {
    let Ok(channel) = operator.connect_lazy(&address) else { return false };
    let check = async move { HealthClient::new(channel).check(HealthCheckRequest { service: String::new() }).await };
    match timeout(Duration::from_secs(1), check).await {
        Ok(Ok(response)) => response.into_inner().status() == ServingStatus::Serving,
        _ => false,
    }
}

/// Says early, and in the user's words, what is missing.
fn check_files(options: &GroupOptions) -> anyhow::Result<()> {
    for (path, what, flag) in [(&options.corpus, "knowledge base", "--corpus"), (&options.tools, "tool library", "--tools")] {
        anyhow::ensure!(
            path.exists(),
            "the {what} `{}` is missing; fix: run in the project's root directory, or name another with `{flag}`",
            path.display()
        );
    }
    options.model.check()
}

/// The services are built next to us.
fn programs_dir() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find our own program")?;
    Ok(own.parent().unwrap_or(Path::new(".")).to_path_buf())
}

fn nats_server() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("AUTOACT_NATS_SERVER").map(PathBuf::from);
    let bundled = Some(PathBuf::from(".quickstart/bin/nats-server"));
    let on_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|file| file.is_file()));
    [named, bundled, on_path]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .context("no nats-server found; fix: `./quickstart --fetch-nats`, or set AUTOACT_NATS_SERVER to its path")
}

fn config_file(options: &GroupOptions, ports: Ports, state: &StateDir) -> anyhow::Result<String> {
    let path = |path: &Path| toml_string(&std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string());
    let tls = state.join(TLS_DIR);
    let mut text = format!(
        "# written by `autoact up`; what it says is in docs/operations.md\n[common]\nnats.url = \"nats://127.0.0.1:{}\"\ntls.ca = {ca}\nnats.ca = {ca}\n",
        ports.nats(),
        ca = path(&autoact_certificates::files(&tls, AUTHORITY).0)
    );
    for (index, name) in SERVICES.iter().enumerate() {
        let index = index as u16;
        let _ = write!(
            text,
            "\n[{name}]\nlisten = \"127.0.0.1:{}\"\nmetrics_listen = \"127.0.0.1:{}\"\n",
            ports.grpc(index, 0),
            ports.metrics(index, 0)
        );
        let (cert, key) = autoact_certificates::files(&tls, name);
        let _ = writeln!(text, "tls.cert = {}\ntls.key = {}", path(&cert), path(&key));
        // memory does not use the bus
        if autoact_bus::user(name).is_some() {
            let nkey = autoact_bus::key_file(&state.join(KEYS_DIR), name);
            let _ = writeln!(text, "nats.cert = {}\nnats.key = {}\nnats.nkey_file = {}", path(&cert), path(&key), path(&nkey));
        }
        if let Some(role) = Role::ALL.into_iter().find(|role| name.strip_suffix("-agent") == Some(role.as_str())) {
            text.push_str(&options.model.section(role, options.start_timeout)?);
            let _ = writeln!(text, "engine.shared_prefixes = {}", path(state.shared_prefixes()));
            if let Some(registry) = &options.adapter_registry {
                let _ = writeln!(text, "adapter_registry = {}\nadapter_announcements = true", path(registry));
            }
        }
        match *name {
            "gateway" => {
                for (role, index) in [("plan", 1), ("tool", 2), ("reflect", 3)] {
                    let addresses = (0..ports.replicas()).map(|replica| ports.address(index, replica));
                    let _ = writeln!(text, "agents.{role} = \"{}\"", addresses.collect::<Vec<_>>().join(","));
                }
                let _ = writeln!(text, "memory = \"{}\"", ports.address(4, 0));
                let _ = writeln!(text, "bus.monitoring = \"http://127.0.0.1:{}\"", ports.nats_monitoring());
                // the door of people and programs on this machine; to the others it calls with TLS
                let _ = writeln!(text, "tls.insecure = true");
                if !options.model.has_chat_format() {
                    // such a model knows the tools that it was trained with, and others disturb it
                    let _ = writeln!(text, "tool_choice.above = 0");
                }
            }
            "tool-agent" => {
                let _ = writeln!(text, "tools = {}\ncorpus = {}", path(&options.tools), path(&options.corpus));
                let _ = writeln!(text, "own_tools = {}", path(&state.join(OWN_TOOLS)));
                let _ = writeln!(text, "memory = \"{}\"", ports.address(4, 0));
            }
            "memory" => {
                let directory = |name: &str| toml_string(&state.join(name).display().to_string());
                let _ = writeln!(text, "data_dir = {}\ndocuments_dir = {}", directory("memories"), directory("documents"));
            }
            _ => {}
        }
    }
    Ok(text)
}

fn nats_file(ports: Ports, state: &StateDir) -> anyhow::Result<String> {
    let keys = autoact_bus::public_keys(&state.join(KEYS_DIR))?;
    let tls = state.join(TLS_DIR);
    let (cert, key) = autoact_certificates::files(&tls, NATS);
    let tls = Some((autoact_certificates::files(&tls, AUTHORITY).0, cert, key));
    let users = autoact_bus::server_config(&keys, &ServerConfig { tls, ..ServerConfig::default() });
    Ok(format!(
        "# written by `autoact up`\nserver_name: autoact\nlisten: \"127.0.0.1:{}\"\n# the gateway asks there whether acknowledged means written\nhttp: \"127.0.0.1:{}\"\njetstream {{\n  store_dir: {}\n  max_file_store: 4GB\n  # what is acknowledged is on the disk\n  sync_interval: always\n}}\n{users}",
        ports.nats(),
        ports.nats_monitoring(),
        toml_string(&state.join("jetstream").display().to_string())
    ))
}

/// `wanted` if a group fits there, else the next base that is free.
pub(crate) fn free_base(wanted: u16, replicas: u16) -> anyhow::Result<u16> {
    (0..100)
        .filter_map(|step: u16| wanted.checked_add(step.checked_mul(200)?))
        .find(|base| Ports::new(*base, replicas).is_ok_and(|ports| ports.check_free(SERVICES.len() as u16).is_ok()))
        .context("no free ports found for a group; fix: choose some with `--base-port`")
}
