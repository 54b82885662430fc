//! Tool-Agent, π_tool: fills in the parameters of the tool that was chosen, and is the place where
//! tools really run.

mod collections;
mod config;
mod error;
mod execute;
mod once;

use std::path::Path;
use std::sync::Arc;

use autoact_agent::{Agent, AgentConfig, AgentRole, AgentService, Reply, Stream, Whole, answer};
use autoact_sandbox::Tier;
use autoact_service::{Flag, Setup, StartError};
use autoact_tools::{Collections, Corpus, Knowledge, ToolLibrary};
use autoact_trajectory::Role;
use autoact_wire::agents_v1::tool_agent_server::{ToolAgent, ToolAgentServer};
use autoact_wire::agents_v1::{
    Delta, ExecuteRequest, ExecuteResponse, ListToolsRequest, ListToolsResponse, ParameterizeRequest, ParameterizeResponse,
    ParameterizeResult, parameterize_response::Event,
};
use autoact_wire::status::to_status;
use autoact_wire::v1;
use tonic::{Request, Response, Status};

pub use config::ToolSettings;
pub use error::ExecuteError;

use collections::RemoteCollections;
use execute::Executor;

/// The service.
pub type ToolAgentService = AgentService<Operator>;
/// The section `[tool-agent]`.
pub type ToolAgentConfig = AgentConfig<Operator>;

/// What makes an agent Tool-Agent.
#[derive(Debug, Clone)]
pub struct Operator;

impl AgentRole for Operator {
    const ROLE: Role = Role::Tool;
    const NAME: &'static str = "tool-agent";
    const ABOUT: &'static str = "Tool-Agent: fills in a tool's parameters, and runs the tools.";
    const PORT: u16 = 7402;
    const DEFAULT_ADAPTER: &'static str = "models/stem/adapters/tool";

    type Settings = ToolSettings;
    type Resources = Arc<ToolLibrary>;
    type Request = ParameterizeRequest;
    type Response = ParameterizeResponse;

    fn flags() -> Vec<Flag> {
        vec![
            Flag { name: "tools", key: "tools", value: "FILE", help: "Tool library (tools.toml)" },
            Flag { name: "corpus", key: "corpus", value: "FILE", help: "Pages the built-in tools read (JSON lines of title and text)" },
            Flag { name: "memory", key: "memory", value: "URL", help: "The memory service, which keeps the collections that tasks name" },
        ]
    }

    async fn open(settings: &ToolSettings) -> Result<Arc<ToolLibrary>, StartError> {
        open_library(settings).await.map(Arc::new)
    }

    fn serve(agent: Arc<Agent>, library: Arc<ToolLibrary>, settings: &ToolSettings, setup: &mut Setup) {
        let content = setup.common().telemetry.capture_content;
        let executor = Executor::new(library, settings.max_runs, settings.remembered, setup.tasks(), content);
        setup.serve(autoact_wire::limited!(ToolAgentServer::new(Rpc { agent, executor: Arc::new(executor) })));
    }

    fn asked(request: ParameterizeRequest) -> (Option<v1::Trajectory>, Option<v1::SamplingParams>) {
        (request.trajectory, request.sampling)
    }

    fn delta(delta: Delta) -> ParameterizeResponse {
        ParameterizeResponse { event: Some(Event::Delta(delta)) }
    }

    fn result(Whole { reply, chosen, .. }: Whole<'_>, usage: v1::Usage) -> Reply<ParameterizeResponse> {
        let params = autoact_speaker::params(&reply.text, chosen)?;
        Ok(ParameterizeResponse { event: Some(Event::Result(ParameterizeResult { params, usage: Some(usage) })) })
    }
}

async fn open_library(settings: &ToolSettings) -> Result<ToolLibrary, StartError> {
    let collections = match settings.memory.as_str() {
        "" => None,
        address => Some(Arc::new(RemoteCollections::new(address).map_err(StartError::new)?) as Arc<dyn Collections>),
    };
    let (tools, corpus) = (settings.tools.clone(), settings.corpus.clone());
    let opened = tokio::task::spawn_blocking(move || {
        let corpus = if corpus.as_os_str().is_empty() { None } else { Some((name(&corpus), open_corpus(&corpus)?)) };
        let library = ToolLibrary::load(&tools, Knowledge::new(corpus, collections)).map_err(|error| {
            StartError::because(format!("cannot open tools `{}`", tools.display()), &error)
                .fix("set `--tools FILE` (or AUTOACT_TOOLS) to a tool library such as `corpora/atlas/tools.toml`")
        })?;
        check_sandboxes(&library)?;
        Ok(library)
    });
    opened.await.map_err(StartError::new)?
}

/// A tool whose sandbox is not to be had is refused here, not in the middle of a task.
fn check_sandboxes(library: &ToolLibrary) -> Result<(), StartError> {
    for (tool, sandbox) in library.sandboxes() {
        let tiers = Tier::probe().map_err(StartError::new)?;
        let tier = tiers.choose(sandbox.tier, sandbox.allow_lesser);
        let tier = tier.map_err(|error| StartError::because(format!("the tool `{tool}` cannot be confined"), &error))?;
        tracing::info!(tool, %tier, "a tool's program is confined");
    }
    Ok(())
}

fn open_corpus(path: &Path) -> Result<Arc<Corpus>, StartError> {
    let corpus = Corpus::load(path).map_err(|error| {
        StartError::because(format!("cannot open corpus `{}`", path.display()), &error)
            .fix("set `--corpus FILE` (or AUTOACT_CORPUS) to a file with one page `{\"title\": …, \"text\": …}` a line")
    })?;
    tracing::info!(corpus = %path.display(), pages = corpus.pages().len(), "corpus opened");
    Ok(Arc::new(corpus))
}

/// By this name tasks ask for the corpus beside collections: `atlas` for `atlas/pages.jsonl`, and
/// otherwise the file's.
fn name(corpus: &Path) -> String {
    let stem = corpus.file_stem().unwrap_or_default();
    let directory = corpus.parent().and_then(Path::file_name).filter(|_| stem == "pages");
    directory.unwrap_or(stem).to_string_lossy().into_owned()
}

struct Rpc {
    agent: Arc<Agent>,
    executor: Arc<Executor>,
}

#[tonic::async_trait]
impl ToolAgent for Rpc {
    type ParameterizeStream = Stream<ParameterizeResponse>;

    async fn parameterize(&self, request: Request<ParameterizeRequest>) -> Result<Response<Self::ParameterizeStream>, Status> {
        answer::<Operator>(&self.agent, request).await
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
