//! tool-agent ends at a named point of an effect, or is asked to end in the middle of one, comes
//! back, and is asked for the same step by the next holder of the task's lease.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use autoact_base::failpoint;
use autoact_bus::{Bus, BusConfig};
use autoact_testkit::files::Assets;
use autoact_testkit::poll::poll_until;
use autoact_testkit::{NatsServer, Program, Running, ports};
use autoact_trajectory::UNKNOWN_OUTCOME;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{ExecuteRequest, ExecuteResponse};
use autoact_wire::client::connect_lazy;
use autoact_wire::limited;
use autoact_wire::v1::Action;
use nix::sys::signal::Signal;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::long;

/// How long a process may take to start; the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long the tools may take; the slow one takes longer than a process lets its calls go on that
/// ends.
const TOOL_TIMEOUT: &str = "500ms";
const SLOW_TIMEOUT: &str = "20s";
const SLOW: u32 = 4;
const GRACE: &str = "1s";

/// What a step came to after its first run was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    /// How often the tool ran.
    runs: usize,
    /// The caller is told that the outcome is unknown.
    unknown: bool,
}

/// What must be true of each point, for a side effect and for an effect that may be repeated.
const POINTS: [(&str, Expected, Expected); 4] = [
    ("before-claim", Expected { runs: 1, unknown: false }, Expected { runs: 1, unknown: false }),
    ("after-claim", Expected { runs: 0, unknown: true }, Expected { runs: 1, unknown: false }),
    ("after-effect", Expected { runs: 1, unknown: true }, Expected { runs: 2, unknown: false }),
    ("after-receipt", Expected { runs: 1, unknown: false }, Expected { runs: 1, unknown: false }),
];

/// A tool-agent alone, with its bus.
struct Alone {
    dir: tempfile::TempDir,
    assets: Assets,
    port: u16,
    nats: NatsServer,
    running: Option<Running>,
}

impl Alone {
    async fn new() -> anyhow::Result<Alone> {
        let dir = tempfile::tempdir()?;
        let assets = Assets::random(dir.path())?;
        let port = ports::free_block(&[0, 100])?;
        let nats = NatsServer::start().await?;
        // what a gateway does at its start: it makes the streams
        Bus::connect(BusConfig::new(nats.url())).await?.close().await;
        std::fs::write(dir.path().join("tools.toml"), library(&dir.path().join("ran")))?;
        Ok(Alone { dir, assets, port, nats, running: None })
    }

    /// Starts it; it ends where the failpoints say.
    async fn start(&mut self, failpoints: &str) -> anyhow::Result<ToolAgentClient<Channel>> {
        let path = |path: PathBuf| path.display().to_string();
        let (listen, metrics) = (format!("127.0.0.1:{}", self.port), format!("127.0.0.1:{}", self.port + 100));
        let program = Program::new("tool-agent")?
            .args(["--listen", &listen, "--metrics-listen", &metrics, "--adapter", "", "--memory", ""])
            .args(["--model", &path(self.assets.model.clone()), "--corpus", &path(self.assets.corpus.clone())])
            .args(["--tools", &path(self.dir.path().join("tools.toml")), "--set", "engine.threads=1"])
            .args(["--set", &format!("nats.url={}", self.nats.url()), "--set", &format!("grace_period={GRACE}")])
            .env(failpoint::VARIABLE, failpoints);
        self.running = Some(program.start()?);
        let address = format!("http://{listen}");
        let channel = connect_lazy(&address)?;
        poll_until(START_LIMIT, "tool-agent", async || {
            let health = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await.ok()?;
            (health.into_inner().status() == ServingStatus::Serving).then_some(())
        })
        .await?;
        Ok(limited!(ToolAgentClient::new(channel)))
    }

    /// Ends it without a word.
    async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(running) = &self.running {
            running.signal(Signal::SIGKILL);
        }
        self.ended().await
    }

    /// Waits until it has ended.
    async fn ended(&mut self) -> anyhow::Result<()> {
        let running = self.running.take().context("it was started")?;
        let output = running.output(START_LIMIT).await?;
        anyhow::ensure!(output.code.is_none(), "no signal ended it: {output:?}");
        Ok(())
    }

    /// How often a tool ran for a step.
    fn runs(&self, task: &str, step: u32) -> usize {
        let ran = std::fs::read_to_string(self.dir.path().join("ran")).unwrap_or_default();
        let key = format!("default/{task}/{step}");
        ran.lines().filter(|line| *line == key).count()
    }
}

/// Tools that note the call that runs.
fn library(ran: &Path) -> String {
    let tool = |name: &str, effect: &str, timeout: &str, takes: u32| {
        format!(
            "[[tool]]\nname = \"{name}\"\ndefinition = \"Notes a call.\"\nusage = \"{name}[x]\"\neffect = \"{effect}\"\n\
             timeout = \"{timeout}\"\nrun = {{ kind = \"command\", sandbox = false, program = \"sh\", \
             args = [\"-c\", 'echo \"$IDEMPOTENCY_KEY\" >> \"$RAN\"; sleep {takes}; echo noted'], env = {{ RAN = {:?} }} }}\n\n",
            ran.display().to_string()
        )
    };
    let finish =
        "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[x]\"\neffect = \"read_only\"\nrun = { kind = \"finish\" }\n";
    let quick = tool("Send", "side_effect", TOOL_TIMEOUT, 0) + &tool("Put", "idempotent", TOOL_TIMEOUT, 0);
    quick + &tool("Slow", "side_effect", SLOW_TIMEOUT, SLOW) + finish
}

fn request(task: &str, tool: &str, step: u32, epoch: u64) -> ExecuteRequest {
    ExecuteRequest {
        tenant: "default".to_owned(),
        task_id: task.to_owned(),
        step,
        action: Some(Action { tool: tool.to_owned(), params: "x".to_owned() }),
        epoch,
        may_have_run: epoch > 1,
        ..ExecuteRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_cut_off_is_done_at_most_once_and_known_where_it_is_recorded() -> anyhow::Result<()> {
    let steps = if long() { 125 } else { 3 };
    let mut alone = Alone::new().await?;
    let mut wrong = Vec::new();
    for (point, side_effect, idempotent) in POINTS {
        let task = format!("task-{point}");
        for (tool, expected, offset) in [("Send", side_effect, 0), ("Put", idempotent, 1000)] {
            for step in (1..=steps).map(|step| step + offset) {
                let mut client = alone.start(&format!("{point}@1")).await?;
                let error = client.execute(request(&task, tool, step, 1)).await.err().context("it was killed")?;
                anyhow::ensure!(error.code() != Code::InvalidArgument, "{error}");
                alone.ended().await?;
                let mut client = alone.start("").await?;
                let ExecuteResponse { observation, .. } = client.execute(request(&task, tool, step, 2)).await?.into_inner();
                alone.kill().await?;
                let seen = Expected { runs: alone.runs(&task, step), unknown: observation.contains(UNKNOWN_OUTCOME) };
                if seen != expected {
                    wrong.push(format!("{point}, {tool}, step {step}: {seen:?}, expected {expected:?}: {observation}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} cut-off effects: every one as promised", steps * 8);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_agent_that_is_asked_to_end_waits_for_the_effect_that_it_began() -> anyhow::Result<()> {
    let mut alone = Alone::new().await?;
    let mut client = alone.start("").await?;
    let asked = tokio::spawn(async move { client.execute(request("task", "Slow", 1, 1)).await });
    poll_until(START_LIMIT, "the effect to begin", async || (alone.runs("task", 1) == 1).then_some(())).await?;

    // its calls end with the grace period, and the effect does not
    let running = alone.running.take().context("it was started")?;
    running.signal(Signal::SIGTERM);
    let output = running.output(START_LIMIT).await?;
    anyhow::ensure!(output.code == Some(0), "{output:?}");
    let error = asked.await?.err().context("its call was ended")?;
    assert_eq!(error.code(), Code::Unavailable, "{error}");

    let mut client = alone.start("").await?;
    let seen = client.execute(request("task", "Slow", 1, 2)).await?.into_inner();
    assert_eq!((seen.observation.as_str(), seen.is_error, alone.runs("task", 1)), ("noted", false, 1));
    Ok(())
}
