//! The processes of the group: the real services over scripted models.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use autoact_access::AccessConfig;
use autoact_agent::testing::ScriptedBackend;
use autoact_agent::{Agent, AgentOptions};
use autoact_config::{Common, Loaded, TlsConfig};
use autoact_prompt::Role;
use autoact_service::{App, Running, Setup};
use autoact_tools::{Corpus, Page, ToolLibrary};
use gateway::{AgentsConfig, BusSettings, Gateway, GatewayConfig};
use tokio::io::AsyncReadExt as _;

use crate::security::TOKENS;

/// The directory of certificates with which the processes talk; without it they talk plain text.
pub(super) const TLS_VARIABLE: &str = "STEP_OVERHEAD_TLS";
/// Time limit for the end of a service.
const GRACE: Duration = Duration::from_secs(2);

/// Runs one process of the group until its standard input is closed. Its first line is its address.
pub(super) async fn run(args: Vec<String>) -> anyhow::Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let tls = std::env::var_os(TLS_VARIABLE).map(|dir| tls(Path::new(&dir), args.first().copied().unwrap_or_default()));
    let scheme = if tls.as_ref().is_some_and(|tls| !tls.insecure) { "https" } else { "http" };
    let common = Common { grace_period: GRACE, tls: tls.unwrap_or_default(), ..Common::on_ports(0, 0) };
    // logs and metrics have the same cost as in a service
    let telemetry = autoact_telemetry::init(&common.telemetry, "step-overhead", "0")?;
    let running = match args.as_slice() {
        ["plan", steps] => plan(common, steps.parse()?).await?,
        ["tool", nats, effect, receipts] => tool(common, nats, effect, receipts.parse()?).await?,
        ["reflect"] => reflect(common).await?,
        ["gateway", nats, plan, tool, reflect] => gateway(common, nats, [plan, tool, reflect]).await?,
        other => bail!("no role: {other:?}"),
    };
    running.readiness().ready().await;
    println!("{scheme}://{}", running.addr());
    let mut end = Vec::new();
    tokio::io::stdin().read_to_end(&mut end).await?;
    running.stop().await?;
    telemetry.shutdown().await;
    Ok(())
}

/// The certificate of a role, in a directory that `autoact certs init` made. The gateway asks its
/// clients for a certificate, and for a token of the directory's file.
fn tls(dir: &Path, role: &str) -> TlsConfig {
    let name = if role == "gateway" { role.to_owned() } else { format!("{role}-agent") };
    TlsConfig {
        ca: Some(dir.join("ca.pem")),
        cert: Some(dir.join(format!("{name}.pem"))),
        key: Some(dir.join(format!("{name}.key"))),
        ..TlsConfig::default()
    }
}

fn speaker(role: Role, backend: ScriptedBackend) -> Arc<Agent> {
    Arc::new(Agent::new(role, Arc::new(backend), AgentOptions::default()))
}

/// Retrieves a page in every step, then finishes.
async fn plan(common: Common, steps: usize) -> anyhow::Result<Running> {
    let config = plan_agent::PlanAgentConfig::default();
    let script = ScriptedBackend::new(move |request| {
        let done = request.prompt.matches("\nAction: ").count();
        Ok(format!(" I read page {done} and see what it says.\nAction: {}\n", if done < steps { "Retrieve" } else { "Finish" }))
    });
    let mut setup = Setup::bind("plan-agent", common).await?;
    autoact_agent::install(speaker(Role::Plan, script), (), &config, &mut setup);
    Ok(setup.finish().await?.start())
}

/// The name of a page for each step. The tool that reads it says that it has this effect.
async fn tool(mut common: Common, nats: &str, effect: &str, receipts: bool) -> anyhow::Result<Running> {
    nats.clone_into(&mut common.nats.url);
    let mut config = tool_agent::ToolAgentConfig::default();
    config.own.receipts = receipts;
    let page = |number| Page {
        title: format!("Page {number}"),
        text: format!("Page {number} is a page of a book. It stands between page {} and page {}.", number - 1, number + 1),
    };
    let file = autoact_testkit::files::root().join("corpora/atlas/tools.toml");
    let bundled = std::fs::read_to_string(&file)?;
    let tools = bundled.split("[[tool]]").map(|entry| {
        let effect = if entry.contains("name = \"Retrieve\"\n") { effect } else { "read_only" };
        entry.replace("effect = \"read_only\"", &format!("effect = \"{effect}\""))
    });
    let tools = tools.collect::<Vec<_>>().join("[[tool]]");
    let corpus = Arc::new(Corpus::from_pages((1..=100).map(page).collect())?);
    let library = ToolLibrary::parse(&tools, &file.display().to_string(), corpus)?;
    let script = ScriptedBackend::new(|request| Ok(format!(" Page {}\n", request.prompt.matches("\nAction: ").count())));
    let mut setup = Setup::bind("tool-agent", common).await?;
    autoact_agent::install(speaker(Role::Tool, script), Arc::new(tool_agent::Tools::from(Arc::new(library))), &config, &mut setup);
    Ok(setup.finish().await?.start())
}

async fn reflect(common: Common) -> anyhow::Result<Running> {
    let config = reflect_agent::ReflectAgentConfig::default();
    let mut setup = Setup::bind("reflect-agent", common).await?;
    let script = ScriptedBackend::saying(" The pages say so.\nVerdict: right\n");
    autoact_agent::install(speaker(Role::Reflect, script), (), &config, &mut setup);
    Ok(setup.finish().await?.start())
}

async fn gateway(mut common: Common, nats: &str, [plan, tool, reflect]: [&str; 3]) -> anyhow::Result<Running> {
    nats.clone_into(&mut common.nats.url);
    let agents = AgentsConfig { plan: plan.to_owned(), tool: tool.to_owned(), reflect: reflect.to_owned(), ..AgentsConfig::default() };
    let bus = BusSettings { max_bytes: 512 << 20, allow_unsynced: true, ..BusSettings::default() };
    let settings =
        GatewayConfig { agents, bus, memory: String::new(), max_running: 1000, drain: Duration::from_secs(1), ..GatewayConfig::default() };
    let tokens = std::env::var_os(TLS_VARIABLE).map(|dir| Path::new(&dir).join(TOKENS));
    let settings = GatewayConfig { access: AccessConfig { tokens, ..AccessConfig::default() }, ..settings };
    let app = App::build::<Gateway>(Loaded::new(common, settings)).await;
    app.map(App::start).context("the gateway does not start")
}
