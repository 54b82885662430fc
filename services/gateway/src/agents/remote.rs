//! Clients of the agents and of memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use autoact_bus::Bus;
use autoact_planning::{Agents, Call, Execution, Failure, FailureClass, Memories, PlanAgent, ReflectAgent, Reply, Seen, ToolAgent, Tools};
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::{Calibration, Effect, Judgement, Observation, Reflection, Thought, ToolBackground, ToolSpec, Usage};
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::reflect_agent_client::ReflectAgentClient;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{parameterize_response, plan_response, reflect_response};
use autoact_wire::client::{AddressError, Connector};
use autoact_wire::convert::known;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::v1::{self};
use autoact_wire::{ConversionError, limited};
use tokio::time::Instant;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::agents::call::ask;
use crate::agents::choice::Listed;
use crate::agents::classify::failure;
use crate::agents::contexts::RemoteContexts;
use crate::agents::patience::{Attempt, Patience};
use crate::agents::words::Words;
use crate::config::AgentsConfig;

/// How much longer than the server we wait: its own word on the deadline says more than ours.
const MARGIN: Duration = Duration::from_millis(500);
/// Beyond a tool's own deadline, which Tool-Agent keeps.
const TOOL_MARGIN: Duration = Duration::from_secs(5);

pub(super) type Traced = InterceptedService<Channel, TraceInterceptor>;

/// A client, whose it is, and how long it is tried.
pub(crate) struct Remote<C> {
    client: C,
    who: String,
    settings: Settings,
}

/// What all clients share.
#[derive(Clone)]
pub(super) struct Settings {
    /// Makes connections, with the gateway's certificate.
    pub(super) connector: Connector,
    /// Where the agents' words are told.
    pub(super) bus: Option<Bus>,
    /// How long one call of an agent may take.
    pub(super) call_limit: Duration,
    /// How long an agent may be away before the task waits elsewhere.
    pub(super) away: Duration,
}

/// The clients of a gateway.
pub(crate) struct Clients {
    pub(crate) agents: Agents,
    /// The tool library, asked of Tool-Agent.
    pub(crate) library: Arc<dyn Library>,
}

/// Where the list of tools comes from.
#[async_trait]
pub(crate) trait Library: Send + Sync {
    /// All tools.
    async fn list_tools(&self, limit: Duration) -> Result<Listed, Failure>;
}

/// What remembers finished tasks and conversations.
#[async_trait]
pub(crate) trait MemoryService: Send + Sync {
    /// Stores or replaces a memory.
    async fn remember(&self, memory: memory_v1::remember_request::Memory, limit: Duration) -> Result<(), Failure>;
    /// What is like a question.
    async fn recall(&self, request: memory_v1::RecallRequest, limit: Duration) -> Result<Vec<memory_v1::RecalledMemory>, Failure>;
}

/// The agents at the configured addresses; connects on first use.
pub(crate) fn clients(connector: Connector, config: &AgentsConfig, bus: Bus, memories: Arc<dyn Memories>) -> Result<Clients, AddressError> {
    let settings = Settings { connector, bus: Some(bus), call_limit: config.timeout, away: config.patience };
    let plan = |channel| limited!(PlanAgentClient::with_interceptor(channel, TraceInterceptor));
    let tool = |channel| limited!(ToolAgentClient::with_interceptor(channel, TraceInterceptor));
    let reflect = |channel| limited!(ReflectAgentClient::with_interceptor(channel, TraceInterceptor));
    let tool = Arc::new(Remote::new("tool-agent", &config.tool, &settings, tool)?);
    let contexts = RemoteContexts::new([&config.plan, &config.tool, &config.reflect], &settings)?;
    Ok(Clients {
        agents: Agents {
            plan: Arc::new(Remote::new("plan-agent", &config.plan, &settings, plan)?),
            tool: tool.clone(),
            reflect: Arc::new(Remote::new("reflect-agent", &config.reflect, &settings, reflect)?),
            tools: tool.clone(),
            contexts: Arc::new(contexts),
            memories,
        },
        library: tool,
    })
}

/// The memory service at `address`.
pub(crate) fn memory(connector: Connector, address: &str) -> Result<Arc<dyn MemoryService>, AddressError> {
    let settings = Settings { connector, bus: None, call_limit: Duration::ZERO, away: Duration::ZERO };
    let client = |channel| limited!(MemoryClient::with_interceptor(channel, TraceInterceptor));
    Ok(Arc::new(Remote::new("memory", address, &settings, client)?))
}

impl<C: Clone> Remote<C> {
    pub(super) fn new(
        name: &str,
        address: &str,
        settings: &Settings,
        client: impl FnOnce(Channel) -> C,
    ) -> Result<Remote<C>, AddressError> {
        let client = client(settings.connector.connect_lazy(address)?);
        Ok(Remote { client, who: format!("{name} at `{address}`"), settings: settings.clone() })
    }

    /// Runs one call within its limit.
    pub(super) async fn within<T, O, F: Future<Output = Result<O, Status>>>(
        &self,
        limit: Duration,
        message: T,
        call: impl FnOnce(C, Request<T>) -> F,
    ) -> Result<O, Failure> {
        let mut request = Request::new(message);
        request.set_timeout(limit);
        // A call of tonic's is kilobytes of state. In a box it is moved once, not by every future
        // around it.
        let call = Box::pin(call(self.client.clone(), request));
        match tokio::time::timeout(limit + MARGIN, call).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(status)) => Err(failure(self.who.clone(), status)),
            Err(_) => Err(Failure::new(FailureClass::TimedOut, self.who.clone(), format!("no answer within {limit:?}"))),
        }
    }

    fn broken(&self, source: ConversionError) -> Failure {
        Failure::new(FailureClass::Broken, self.who.clone(), source)
    }

    /// The reply to `call`, told as it is written and read to the message that is the result.
    async fn result<M, R>(
        &self,
        call: &Call<'_>,
        attempt: u32,
        stream: Result<tonic::Response<Streaming<M>>, Status>,
        pick: impl Fn(M) -> Piece<R>,
    ) -> Result<Option<R>, Status> {
        let mut stream = stream?.into_inner();
        let mut words = self.settings.bus.as_ref().map(|bus| Words::new(bus, call, attempt));
        loop {
            let message = match words.as_ref().and_then(Words::due) {
                None => stream.message().await?,
                Some(due) => match tokio::time::timeout_at(due, stream.message()).await {
                    Ok(message) => message?,
                    Err(_) => {
                        if let Some(words) = &mut words {
                            words.tell().await;
                        }
                        continue;
                    }
                },
            };
            let Some(message) = message else { return Ok(None) };
            match pick(message) {
                Piece::Result(result) => return Ok(Some(result)),
                Piece::Words(text) => {
                    if let Some(words) = &mut words {
                        words.add(&text).await;
                    }
                }
                Piece::Nothing => {}
            }
        }
    }

    /// How long an agent may keep this task waiting.
    pub(super) fn patience(&self, time_left: Duration) -> Patience {
        let Settings { call_limit, away, .. } = self.settings;
        Patience { deadline: Instant::now() + time_left, away, call: call_limit, repeatable: true }
    }
}

/// A message of a reply.
enum Piece<R> {
    Words(String),
    Result(R),
    Nothing,
}

fn usage(usage: Option<v1::Usage>) -> Usage {
    usage.map(Into::into).unwrap_or_default()
}

#[async_trait]
impl PlanAgent for Remote<PlanAgentClient<Traced>> {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        ask(call.id.kind, call.task, self.patience(call.time_left), |attempt| self.plan_once(call, attempt)).await
    }
}

impl Remote<PlanAgentClient<Traced>> {
    async fn plan_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(Thought, Usage), Failure> {
        let request = agents_v1::PlanRequest { trajectory: Some(call.trajectory.into()), sampling: Some(call.sampling.into()) };
        let reply = self.within(attempt.limit, request, |mut client, request| async move {
            let stream = client.plan(request).await;
            self.result(&call, attempt.number, stream, |message| match message.event {
                Some(plan_response::Event::Result(result)) => Piece::Result(result),
                Some(plan_response::Event::Delta(delta)) => Piece::Words(delta.text),
                None => Piece::Nothing,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.broken(ConversionError::MissingField("result")))?;
        if call.trajectory.tool(&reply.tool).is_none() {
            return Err(self.broken(ConversionError::UnknownValue { field: "tool", value: reply.tool }));
        }
        Ok((Thought { thought: reply.thought, tool: reply.tool }, usage(reply.usage)))
    }
}

#[async_trait]
impl ToolAgent for Remote<ToolAgentClient<Traced>> {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        ask(call.id.kind, call.task, self.patience(call.time_left), |attempt| self.parameterize_once(call, attempt)).await
    }
}

#[async_trait]
impl Tools for Remote<ToolAgentClient<Traced>> {
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        let call = execution.call;
        let mut patience = self.patience(call.time_left);
        if let Some(spec) = execution.spec {
            // the tool's own deadline decides, be it shorter or longer than an agent's
            patience.call = spec.timeout + TOOL_MARGIN;
        }
        patience.repeatable = execution.effect() != Effect::SideEffect;
        ask(call.id.kind, call.task, patience, |attempt| self.execute_once(execution, attempt)).await
    }
}

impl Remote<ToolAgentClient<Traced>> {
    async fn parameterize_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(String, Usage), Failure> {
        let request = agents_v1::ParameterizeRequest { trajectory: Some(call.trajectory.into()), sampling: Some(call.sampling.into()) };
        let reply = self.within(attempt.limit, request, |mut client, request| async move {
            let stream = client.parameterize(request).await;
            self.result(&call, attempt.number, stream, |message| match message.event {
                Some(parameterize_response::Event::Result(result)) => Piece::Result(result),
                Some(parameterize_response::Event::Delta(delta)) => Piece::Words(delta.text),
                None => Piece::Nothing,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.broken(ConversionError::MissingField("result")))?;
        Ok((reply.params, usage(reply.usage)))
    }

    async fn execute_once(&self, execution: Execution<'_>, attempt: Attempt) -> Result<(Seen, Usage), Failure> {
        let request = agents_v1::ExecuteRequest {
            tenant: execution.call.task.tenant.to_string(),
            task_id: execution.call.task.id.to_string(),
            step: execution.call.id.step,
            action: Some(execution.action.into()),
            trajectory: Some(execution.call.trajectory.into()),
        };
        let call = |mut client: ToolAgentClient<Traced>, request| async move { Ok(client.execute(request).await?.into_inner()) };
        let reply = self.within(attempt.limit, request, call).await?;
        let agents_v1::ExecuteResponse { observation: text, is_error, truncated, sources, .. } = reply;
        let sources = sources.into_iter().map(Into::into).collect();
        let observation = Observation { text, is_error, repeated: false, truncated, sources };
        let artifacts = reply.artifacts.into_iter().map(Into::into).collect();
        Ok((Seen { observation, artifacts }, usage(reply.usage)))
    }
}

#[async_trait]
impl Library for Remote<ToolAgentClient<Traced>> {
    async fn list_tools(&self, limit: Duration) -> Result<Listed, Failure> {
        let call = |mut client: ToolAgentClient<Traced>, request| async move { Ok(client.list_tools(request).await?.into_inner()) };
        let reply = self.within(limit, agents_v1::ListToolsRequest {}, call).await?;
        let tools = reply.tools.into_iter().map(|tool| ToolSpec::try_from(tool).map_err(|error| self.broken(error)));
        let tools = tools.collect::<Result<Vec<_>, _>>()?;
        let optional = reply.optional.into_iter().map(|tool| {
            let agents_v1::OptionalTool { name, title, about, details } = tool;
            (name, ToolBackground { title, about, details }.bounded())
        });
        let mut listed = Listed { tools, optional: optional.collect(), corpus: reply.corpus };
        // a task without these would have no end
        listed.tools.iter().filter(|tool| tool.is_terminal()).for_each(|tool| {
            listed.optional.remove(&tool.name);
        });
        Ok(listed)
    }
}

#[async_trait]
impl ReflectAgent for Remote<ReflectAgentClient<Traced>> {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        ask(call.id.kind, call.task, self.patience(call.time_left), |attempt| self.reflect_once(call, attempt)).await
    }
}

impl Remote<ReflectAgentClient<Traced>> {
    async fn reflect_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(Judgement, Usage), Failure> {
        let request = agents_v1::ReflectRequest { trajectory: Some(call.trajectory.into()), sampling: Some(call.sampling.into()) };
        let reply = self.within(attempt.limit, request, |mut client, request| async move {
            let stream = client.reflect(request).await;
            self.result(&call, attempt.number, stream, |message| match message.event {
                Some(reflect_response::Event::Result(result)) => Piece::Result(result),
                Some(reflect_response::Event::Delta(delta)) => Piece::Words(delta.text),
                None => Piece::Nothing,
            })
            .await
        });
        let reply = reply.await?.ok_or_else(|| self.broken(ConversionError::MissingField("result")))?;
        let verdict = reply.verdict().try_into().map_err(|error| self.broken(error))?;
        let calibration =
            reply.calibration.map(Calibration::try_from).transpose().map_err(|error| self.broken(error.into()))?.map(Arc::new);
        let reflection = Reflection { log_odds: known(reply.log_odds), ..Reflection::new(reply.thought, verdict) };
        Ok((Judgement { reflection, calibration }, usage(reply.usage)))
    }
}

#[async_trait]
impl MemoryService for Remote<MemoryClient<Traced>> {
    async fn remember(&self, memory: memory_v1::remember_request::Memory, limit: Duration) -> Result<(), Failure> {
        let request = memory_v1::RememberRequest { memory: Some(memory) };
        self.within(limit, request, |mut client, request| async move { client.remember(request).await.map(|_| ()) }).await
    }

    async fn recall(&self, request: memory_v1::RecallRequest, limit: Duration) -> Result<Vec<memory_v1::RecalledMemory>, Failure> {
        let call = |mut client: MemoryClient<Traced>, request| async move { Ok(client.recall(request).await?.into_inner().memories) };
        self.within(limit, request, call).await
    }
}
