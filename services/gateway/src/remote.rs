//! The agents over gRPC.

use std::sync::Arc;
use std::time::Duration;

use autoact_proto::client::{AddressError, connect_lazy};
use autoact_proto::v1::memory_client::MemoryClient;
use autoact_proto::v1::plan_agent_client::PlanAgentClient;
use autoact_proto::v1::reflect_agent_client::ReflectAgentClient;
use autoact_proto::v1::tool_agent_client::ToolAgentClient;
use autoact_proto::v1::{self, parameterize_response, plan_response, reflect_response};
use autoact_proto::{ConversionError, limited};
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::{Action, Observation, Reflection, Thought, ToolSpec, Usage};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::agents::{AgentError, Agents, Ask, MemoryService, PlanAgent, ReflectAgent, ToolAgent};
use crate::config::AgentsConfig;

/// How much longer than the server we wait: its own word on the deadline says more than ours.
const MARGIN: Duration = Duration::from_millis(500);

type Traced = InterceptedService<Channel, TraceInterceptor>;

/// A client and whose it is.
struct Remote<C> {
    client: C,
    agent: &'static str,
    address: String,
}

/// The agents at the configured addresses; connects on first use.
pub(crate) fn agents(config: &AgentsConfig) -> Result<Agents, AddressError> {
    let remote = |agent, address: &String| (agent, address.clone());
    let (plan, tool, reflect) =
        (remote("plan-agent", &config.plan), remote("tool-agent", &config.tool), remote("reflect-agent", &config.reflect));
    Ok(Agents {
        plan: Arc::new(Remote::new(plan, |channel| limited!(PlanAgentClient::with_interceptor(channel, TraceInterceptor)))?),
        tool: Arc::new(Remote::new(tool, |channel| limited!(ToolAgentClient::with_interceptor(channel, TraceInterceptor)))?),
        reflect: Arc::new(Remote::new(reflect, |channel| limited!(ReflectAgentClient::with_interceptor(channel, TraceInterceptor)))?),
    })
}

/// The memory service at `address`.
pub(crate) fn memory(address: &str) -> Result<Arc<dyn MemoryService>, AddressError> {
    let client = |channel| limited!(MemoryClient::with_interceptor(channel, TraceInterceptor));
    Ok(Arc::new(Remote::new(("memory", address.to_owned()), client)?))
}

impl<C: Clone> Remote<C> {
    fn new((agent, address): (&'static str, String), client: impl FnOnce(Channel) -> C) -> Result<Remote<C>, AddressError> {
        Ok(Remote { client: client(connect_lazy(&address)?), agent, address })
    }

    /// Runs one call within its limit.
    async fn within<T, O, F: Future<Output = Result<O, Status>>>(
        &self,
        limit: Duration,
        message: T,
        call: impl FnOnce(C, Request<T>) -> F,
    ) -> Result<O, AgentError> {
        let mut request = Request::new(message);
        request.set_timeout(limit);
        match tokio::time::timeout(limit + MARGIN, call(self.client.clone(), request)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(status)) => Err(AgentError::Call { agent: self.agent, address: self.address.clone(), status: Box::new(status) }),
            Err(_) => Err(AgentError::TimedOut { agent: self.agent, address: self.address.clone(), limit }),
        }
    }

    fn broken(&self, source: ConversionError) -> AgentError {
        AgentError::Contract { agent: self.agent, address: self.address.clone(), source }
    }

    fn missing(&self, field: &'static str) -> AgentError {
        self.broken(ConversionError::MissingField(field))
    }
}

/// Reads a stream to the message that is the result.
async fn result<M, R>(mut stream: Streaming<M>, pick: impl Fn(M) -> Option<R>) -> Result<Option<R>, Status> {
    while let Some(message) = stream.message().await? {
        if let Some(result) = pick(message) {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn usage(usage: Option<v1::Usage>) -> Usage {
    usage.map(Into::into).unwrap_or_default()
}

#[tonic::async_trait]
impl PlanAgent for Remote<PlanAgentClient<Traced>> {
    async fn plan(&self, ask: Ask<'_>) -> Result<(Thought, Usage), AgentError> {
        let request = v1::PlanRequest { trajectory: Some(ask.trajectory.into()), sampling: Some((*ask.sampling).into()) };
        let reply = self.within(ask.limit, request, |mut client, request| async move {
            result(client.plan(request).await?.into_inner(), |message| match message.event {
                Some(plan_response::Event::Result(result)) => Some(result),
                _ => None,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.missing("result"))?;
        if ask.trajectory.tool(&reply.tool).is_none() {
            return Err(self.broken(ConversionError::UnknownValue { field: "tool", value: reply.tool }));
        }
        Ok((Thought { thought: reply.thought, tool: reply.tool }, usage(reply.usage)))
    }
}

#[tonic::async_trait]
impl ToolAgent for Remote<ToolAgentClient<Traced>> {
    async fn parameterize(&self, ask: Ask<'_>) -> Result<(String, Usage), AgentError> {
        let request = v1::ParameterizeRequest { trajectory: Some(ask.trajectory.into()), sampling: Some((*ask.sampling).into()) };
        let reply = self.within(ask.limit, request, |mut client, request| async move {
            result(client.parameterize(request).await?.into_inner(), |message| match message.event {
                Some(parameterize_response::Event::Result(result)) => Some(result),
                _ => None,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.missing("result"))?;
        Ok((reply.params, usage(reply.usage)))
    }

    async fn execute(&self, ask: Ask<'_>, action: &Action, step: u32) -> Result<(Observation, Usage), AgentError> {
        let request = v1::ExecuteRequest {
            task_id: ask.trajectory.task_id.clone(),
            step,
            action: Some(action.into()),
            trajectory: Some(ask.trajectory.into()),
        };
        let reply =
            self.within(ask.limit, request, |mut client, request| async move { Ok(client.execute(request).await?.into_inner()) }).await?;
        let observation = Observation { text: reply.observation, is_error: reply.is_error, repeated: false, truncated: reply.truncated };
        Ok((observation, usage(reply.usage)))
    }

    async fn list_tools(&self, limit: Duration) -> Result<Vec<ToolSpec>, AgentError> {
        let reply = self
            .within(limit, v1::ListToolsRequest {}, |mut client, request| async move { Ok(client.list_tools(request).await?.into_inner()) })
            .await?;
        reply.tools.into_iter().map(|tool| tool.try_into().map_err(|error| self.broken(error))).collect()
    }
}

#[tonic::async_trait]
impl ReflectAgent for Remote<ReflectAgentClient<Traced>> {
    async fn reflect(&self, ask: Ask<'_>) -> Result<(Reflection, Usage), AgentError> {
        let request = v1::ReflectRequest { trajectory: Some(ask.trajectory.into()), sampling: Some((*ask.sampling).into()) };
        let reply = self.within(ask.limit, request, |mut client, request| async move {
            result(client.reflect(request).await?.into_inner(), |message| match message.event {
                Some(reflect_response::Event::Result(result)) => Some(result),
                _ => None,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.missing("result"))?;
        let verdict = reply.verdict().try_into().map_err(|error| self.broken(error))?;
        Ok((Reflection { thought: reply.thought, verdict }, usage(reply.usage)))
    }
}

#[tonic::async_trait]
impl MemoryService for Remote<MemoryClient<Traced>> {
    async fn remember(&self, memory: v1::TaskMemory, limit: Duration) -> Result<(), AgentError> {
        let request = v1::RememberRequest { memory: Some(v1::remember_request::Memory::Task(memory)) };
        self.within(limit, request, |mut client, request| async move { client.remember(request).await.map(|_| ()) }).await
    }
}
