//! Tool-Agent, π_tool: fills in the parameters of the tool that was chosen, and is the place where tools really run.

mod config;
mod error;
mod execute;
mod once;

use std::path::Path;
use std::sync::Arc;

use autoact_agent::{Agent, Request as Ask, Sources, Stream};
use autoact_service::{Flag, Service, Setup, StartError, deadline};
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::Role;
use autoact_wire::agents_v1::tool_agent_server::{ToolAgent, ToolAgentServer};
use autoact_wire::agents_v1::{
    ExecuteRequest, ExecuteResponse, ListToolsRequest, ListToolsResponse, ParameterizeRequest, ParameterizeResponse, ParameterizeResult,
    parameterize_response::Event,
};
use autoact_wire::status::to_status;
use tonic::{Request, Response, Status};

pub use config::{DEFAULT_ADAPTER, DEFAULT_CORPUS, DEFAULT_MODEL, DEFAULT_TOOLS, METRICS_PORT, PORT, ToolAgentConfig};
pub use error::ExecuteError;

use execute::Executor;

/// The service.
pub struct ToolAgentService;

impl Service for ToolAgentService {
    type Config = ToolAgentConfig;
    const ABOUT: &'static str = "Tool-Agent: fills in a tool's parameters, and runs the tools.";

    fn flags() -> Vec<Flag> {
        let mut flags = autoact_agent::engine_flags();
        flags.extend([
            Flag { name: "tools", key: "tools", value: "FILE", help: "Tool library (tools.toml)" },
            Flag { name: "corpus", key: "corpus", value: "FILE", help: "Pages the built-in tools read (JSON lines of title and text)" },
        ]);
        flags
    }

    async fn build(config: ToolAgentConfig, setup: &mut Setup) -> Result<(), StartError> {
        let library = open_library(&config.tools, &config.corpus).await?;
        let sources = Sources {
            model: &config.model,
            adapter: &config.adapter,
            registry: &config.adapter_registry,
            announcements: config.adapter_announcements,
            backend: &config.backend,
        };
        let agent = autoact_agent::open(Role::Tool, sources, &config.engine, setup).await?;
        install(agent, Arc::new(library), &config, setup);
        Ok(())
    }
}

async fn open_library(tools: &Path, corpus: &Path) -> Result<ToolLibrary, StartError> {
    let (tools, corpus) = (tools.to_owned(), corpus.to_owned());
    let opened = tokio::task::spawn_blocking(move || {
        let pages = Corpus::load(&corpus).map_err(|error| {
            StartError::because(format!("cannot open corpus `{}`", corpus.display()), &error)
                .fix("set `--corpus FILE` (or AUTOACT_CORPUS) to a file with one page `{\"title\": …, \"text\": …}` a line")
        })?;
        tracing::info!(corpus = %corpus.display(), pages = pages.pages().len(), "corpus opened");
        ToolLibrary::load(&tools, Arc::new(pages)).map_err(|error| {
            StartError::because(format!("cannot open tools `{}`", tools.display()), &error)
                .fix("set `--tools FILE` (or AUTOACT_TOOLS) to a tool library such as `corpora/atlas/tools.toml`")
        })
    });
    opened.await.map_err(StartError::new)?
}

/// Serves an agent and a library: [`Service::build`] does it with the configured ones, tests with theirs.
pub fn install(agent: Arc<Agent>, library: Arc<ToolLibrary>, config: &ToolAgentConfig, setup: &mut Setup) {
    let health = autoact_agent::watch_health(Arc::clone(&agent), setup.condition("model"), config.engine.health_interval);
    setup.tasks().spawn("model health", health);
    let content = setup.common().telemetry.capture_content;
    let executor = Arc::new(Executor::new(library, config.max_runs, config.remembered, setup.tasks(), content));
    setup.serve(autoact_wire::limited!(ToolAgentServer::new(Operator { agent, executor })));
}

struct Operator {
    agent: Arc<Agent>,
    executor: Arc<Executor>,
}

#[tonic::async_trait]
impl ToolAgent for Operator {
    type ParameterizeStream = Stream<ParameterizeResponse>;

    async fn parameterize(&self, request: Request<ParameterizeRequest>) -> Result<Response<Self::ParameterizeStream>, Status> {
        let deadline = deadline(&request);
        let ParameterizeRequest { trajectory, sampling } = request.into_inner();
        let speech = self.agent.speak(Ask { trajectory, sampling, deadline }).await.map_err(|error| to_status(&error))?;
        let delta = |delta| ParameterizeResponse { event: Some(Event::Delta(delta)) };
        let replies = autoact_agent::stream(speech, delta, |reply, usage| {
            let params = autoact_speaker::params(reply)?;
            Ok(ParameterizeResponse { event: Some(Event::Result(ParameterizeResult { params, usage: Some(usage) })) })
        });
        Ok(Response::new(replies))
    }

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<ExecuteResponse>, Status> {
        let response = self.executor.execute(request.into_inner()).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(response))
    }

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        let tools = self.executor.library().specs().iter().map(Into::into).collect();
        Ok(Response::new(ListToolsResponse { tools }))
    }
}
