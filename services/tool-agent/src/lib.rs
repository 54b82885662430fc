//! Tool-Agent, π_tool: fills in the parameters of the tool that was chosen, and is the place where
//! tools really run.

mod collections;
mod config;
mod effects;
mod error;
mod execute;
mod library;
mod once;
mod told;
mod watch;

use std::sync::Arc;

use autoact_agent::{Agent, AgentConfig, AgentRole, AgentService, Reply, Stream, Whole, answer};
use autoact_bus::BusConfig;
use autoact_service::{Flag, Setup, StartError};
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
pub use library::Tools;

use execute::Executor;
use library::Current;

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
    type Resources = Arc<Tools>;
    type Request = ParameterizeRequest;
    type Response = ParameterizeResponse;

    fn flags() -> Vec<Flag> {
        vec![
            Flag { name: "tools", key: "tools", value: "FILE", help: "Tool library (tools.toml)" },
            Flag {
                name: "own-tools",
                key: "own_tools",
                value: "FILE",
                help: "A second tool library whose entries are added; it need not exist",
            },
            Flag { name: "corpus", key: "corpus", value: "FILE", help: "Pages the built-in tools read (JSON lines of title and text)" },
            Flag { name: "memory", key: "memory", value: "URL", help: "The memory service, which keeps the collections that tasks name" },
        ]
    }

    async fn open(settings: &ToolSettings, setup: &Setup) -> Result<Arc<Tools>, StartError> {
        Tools::open(settings, &setup.connector()).await.map(Arc::new)
    }

    fn serve(agent: Arc<Agent>, tools: Arc<Tools>, settings: &ToolSettings, setup: &mut Setup) {
        tools.watch(&setup.tasks());
        let content = setup.common().telemetry.capture_content;
        let name = format!("tool-agent-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let bus = BusConfig { name, ..BusConfig::over(setup.common().nats.clone()) };
        let executor = Executor::new(tools, settings, bus, setup.tasks(), content);
        setup.serve(autoact_wire::limited!(ToolAgentServer::new(Rpc { agent, executor: Arc::new(executor) })));
    }

    fn asked(request: ParameterizeRequest) -> (Option<v1::Trajectory>, Option<v1::SamplingParams>, String) {
        (request.trajectory, request.sampling, request.tenant)
    }

    fn delta(delta: Delta) -> ParameterizeResponse {
        ParameterizeResponse { event: Some(Event::Delta(delta)) }
    }

    fn result(Whole { reply, chosen, .. }: Whole<'_>, usage: v1::Usage) -> Reply<ParameterizeResponse> {
        let params = autoact_speaker::params(&reply.text, chosen)?;
        Ok(ParameterizeResponse { event: Some(Event::Result(ParameterizeResult { params, usage: Some(usage) })) })
    }
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
        let deadline = autoact_service::deadline(&request);
        let response = self.executor.execute(request.into_inner(), deadline).await.map_err(|error| to_status(&error))?;
        Ok(Response::new(response))
    }

    async fn list_tools(&self, request: Request<ListToolsRequest>) -> Result<Response<ListToolsResponse>, Status> {
        let Current { library, digest } = self.executor.current();
        let digest = digest.to_string();
        if request.into_inner().known == digest {
            return Ok(Response::new(ListToolsResponse { digest, unchanged: true, ..ListToolsResponse::default() }));
        }
        let whole = tokio::task::spawn_blocking(move || told::whole(&library)).await;
        let whole = whole.map_err(|error| Status::internal(format!("listing the tools broke: {error}; see the log of tool-agent")))?;
        Ok(Response::new(ListToolsResponse { digest, ..whole }))
    }
}
