//! Starts and ends the processes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::{NatsServer, files};
use autoact_tls::Tls;
use autoact_wire::client::{Authorized, Bearer, Connector};
use autoact_wire::v1::gateway_client::GatewayClient;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::roles::TLS_VARIABLE;
use crate::security::Secured;

/// Time limit for the start and the end of a process.
const LIMIT: Duration = Duration::from_secs(20);

/// What the group's tool does, and where its bus keeps its files.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    /// What the tool does to the world, as a library says it.
    pub(super) effect: &'static str,
    /// Whether tool-agent keeps receipts.
    pub(super) receipts: bool,
    /// Where JetStream keeps its files; `None`: with other temporary files.
    pub(super) store: Option<PathBuf>,
    /// Mutual TLS between all of them, the client included, and its token; `None`: neither.
    pub(super) secured: Option<Secured>,
}

impl Default for Variant {
    fn default() -> Variant {
        Variant { effect: "read_only", receipts: true, store: None, secured: None }
    }
}

/// A gateway, three agents and a nats-server.
pub(super) struct Group {
    pub(super) client: GatewayClient<Authorized>,
    pub(super) steps: u32,
    children: Vec<Child>,
    _nats: NatsServer,
}

impl Group {
    /// Starts the processes of one build.
    pub(super) async fn start(build: &Path, steps: u32, variant: &Variant) -> anyhow::Result<Group> {
        let nats = match &variant.store {
            Some(store) => NatsServer::start_in(store, "").await?,
            None => NatsServer::start().await?,
        };
        let mut children = Vec::new();
        let secured = variant.secured.as_ref();
        let plan = role(build, secured, &["plan", &steps.to_string()], &mut children).await?;
        let tool = role(build, secured, &["tool", &nats.url(), variant.effect, &variant.receipts.to_string()], &mut children).await?;
        let reflect = role(build, secured, &["reflect"], &mut children).await?;
        let gateway = role(build, secured, &["gateway", &nats.url(), &plan, &tool, &reflect], &mut children).await?;
        let tls = secured.map(|secured| Tls::read(files::tls_files(secured.dir(), "autoact"), true)).transpose()?;
        let bearer = secured.map(|secured| Bearer::new(secured.token())).transpose()?.unwrap_or_default();
        let channel = Connector::new(tls).connect_lazy(&gateway)?;
        let client = autoact_wire::limited!(GatewayClient::with_interceptor(channel, bearer));
        Ok(Group { client, steps, children, _nats: nats })
    }

    /// The processor time so far of this process, the gateway and the agents, but not of nats-server.
    pub(super) fn processor_time(&self) -> Option<Duration> {
        let others = self.children.iter().map(|child| child.id().map(|id| id.to_string()));
        others.chain([Some("self".to_owned())]).map(|process| processor_time(&process?)).sum()
    }

    /// Ends the processes in reverse order.
    pub(super) async fn stop(mut self) {
        for child in self.children.iter_mut().rev() {
            drop(child.stdin.take());
            // the process is killed on drop if it has not ended
            let _ = tokio::time::timeout(LIMIT, child.wait()).await;
        }
    }
}

/// Starts a process and waits for its address.
async fn role(build: &Path, secured: Option<&Secured>, args: &[&str], children: &mut Vec<Child>) -> anyhow::Result<String> {
    let mut command = Command::new(build);
    command.arg("role").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    if let Some(secured) = secured {
        command.env(TLS_VARIABLE, secured.dir());
    }
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    children.push(child);
    let mut line = String::new();
    tokio::time::timeout(LIMIT, BufReader::new(stdout).read_line(&mut line))
        .await
        .with_context(|| format!("`{args:?}` does not start"))??;
    anyhow::ensure!(line.starts_with("http"), "`{args:?}` did not start");
    Ok(line.trim().to_owned())
}

/// What a process has used, by `/proc`; none where there is no such thing.
fn processor_time(process: &str) -> Option<Duration> {
    /// Linux counts in these, whatever the kernel's own clock.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // after the name, which may have blanks: user and system are the 12th and 13th
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}
