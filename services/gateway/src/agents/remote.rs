//! Clients of the agents and of memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use autoact_bus::Bus;
use autoact_planning::{Agents, Call, Execution, Failure, FailureClass, Memories, PlanAgent, ReflectAgent, Reply, Seen, ToolAgent, Tools};
use autoact_replicas::{Outcome, Pool, SystemResolver};
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_trajectory::{Calibration, Judgement, Observation, Reflection, Thought, Usage};
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::reflect_agent_client::ReflectAgentClient;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{parameterize_response, plan_response, reflect_response};
use autoact_wire::client::{AddressError, Connector, Target};
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
use crate::agents::classify::failure;
use crate::agents::contexts::RemoteContexts;
use crate::agents::listing::{self, Told};
use crate::agents::patience::{Attempt, Patience};
use crate::agents::route::{Route, outcome};
use crate::agents::words::Words;
use crate::config::{AgentsConfig, ReplicasConfig};

/// How much longer than the server we wait: its own word on the deadline says more than ours.
const MARGIN: Duration = Duration::from_millis(500);
/// Beyond a tool's own deadline, which Tool-Agent keeps.
const TOOL_MARGIN: Duration = Duration::from_secs(5);

pub(super) type Traced = InterceptedService<Channel, TraceInterceptor>;

/// A service that the gateway calls.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Its name and its addresses as they were configured.
    who: String,
    /// Its replicas.
    pool: Arc<Pool>,
}

/// A client, whose it is, and how long it is tried.
pub(crate) struct Remote<C> {
    client: Box<dyn Fn(Channel) -> C + Send + Sync>,
    peer: Peer,
    settings: Settings,
}

/// What all clients share.
#[derive(Clone)]
pub(super) struct Settings {
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
    /// All tools; they are sent only to who does not have them.
    async fn list_tools(&self, known: Option<&Told>, limit: Duration) -> Result<Told, Failure>;
}

/// What remembers finished tasks and conversations.
#[async_trait]
pub(crate) trait MemoryService: Send + Sync {
    /// Stores or replaces a memory.
    async fn remember(&self, memory: memory_v1::remember_request::Memory, limit: Duration) -> Result<(), Failure>;
    /// Removes memories.
    async fn forget(&self, request: memory_v1::ForgetRequest, limit: Duration) -> Result<(), Failure>;
    /// What is like a question.
    async fn recall(&self, request: memory_v1::RecallRequest, limit: Duration) -> Result<Vec<memory_v1::RecalledMemory>, Failure>;
}

/// The agents at the configured addresses; connects on first use.
pub(crate) fn clients(
    connector: &Connector,
    config: &AgentsConfig,
    replicas: &ReplicasConfig,
    bus: Bus,
    memories: Arc<dyn Memories>,
) -> Result<Clients, AddressError> {
    let plan_agent = Peer::new("plan-agent", &config.plan, replicas, connector)?;
    let tool_agent = Peer::new("tool-agent", &config.tool, replicas, connector)?;
    let reflect_agent = Peer::new("reflect-agent", &config.reflect, replicas, connector)?;
    let settings = Settings { bus: Some(bus), call_limit: config.timeout, away: config.patience };
    let plan = |channel| limited!(PlanAgentClient::with_interceptor(channel, TraceInterceptor));
    let tool = |channel| limited!(ToolAgentClient::with_interceptor(channel, TraceInterceptor));
    let reflect = |channel| limited!(ReflectAgentClient::with_interceptor(channel, TraceInterceptor));
    let tool = Arc::new(Remote::new(&tool_agent, &settings, tool));
    let contexts = RemoteContexts::new([&plan_agent, &tool_agent, &reflect_agent], &settings);
    Ok(Clients {
        agents: Agents {
            plan: Arc::new(Remote::new(&plan_agent, &settings, plan)),
            tool: tool.clone(),
            reflect: Arc::new(Remote::new(&reflect_agent, &settings, reflect)),
            tools: tool.clone(),
            contexts: Arc::new(contexts),
            memories,
        },
        library: tool,
    })
}

/// The memory service.
pub(crate) fn memory(peer: &Peer) -> Arc<dyn MemoryService> {
    let settings = Settings { bus: None, call_limit: Duration::ZERO, away: Duration::ZERO };
    let client = |channel| limited!(MemoryClient::with_interceptor(channel, TraceInterceptor));
    Arc::new(Remote::new(peer, &settings, client))
}

impl Peer {
    /// The service `name` at one address or several, see [`AgentsConfig`].
    pub(crate) fn new(name: &'static str, addresses: &str, config: &ReplicasConfig, connector: &Connector) -> Result<Peer, AddressError> {
        let connector = connector.clone();
        let connect = Box::new(move |target: &Target, socket| connector.connect_lazy_to(target, socket));
        let pool = Pool::new(name, addresses, &config.options(), Arc::new(SystemResolver), connect)?;
        Ok(Peer { who: format!("{name} at `{addresses}`"), pool: Arc::new(pool) })
    }

    /// Its replicas.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Who was asked: which of its replicas, if there are several.
    fn who(&self, asked: SocketAddr) -> String {
        if self.pool.views().len() > 1 { format!("{} ({asked})", self.who) } else { self.who.clone() }
    }
}

impl<C> Remote<C> {
    pub(super) fn new(peer: &Peer, settings: &Settings, client: impl Fn(Channel) -> C + Send + Sync + 'static) -> Remote<C> {
        Remote { client: Box::new(client), peer: peer.clone(), settings: settings.clone() }
    }

    /// The way of one call of `key`.
    pub(super) fn route(&self, key: &str) -> Route {
        Route::new(&self.peer.pool, key)
    }

    /// Makes a call that does no harm if it runs twice: on another replica at once where that may
    /// help, and never after a pause.
    pub(super) async fn once<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        key: &str,
        limit: Duration,
        mut call: impl FnMut(Attempt) -> F,
    ) -> Result<T, Failure> {
        let (route, deadline, mut number) = (self.route(key), Instant::now() + limit, 0);
        loop {
            number += 1;
            let limit = deadline.saturating_duration_since(Instant::now());
            match call(Attempt { number, limit, may_have_run: number > 1, route: Some(route.clone()) }).await {
                Err(failure) if Instant::now() < deadline && route.moves_on(&failure) => {
                    tracing::debug!(failure = failure.chain(), class = failure.class.as_str(), "asking another replica");
                }
                answer => return answer,
            }
        }
    }

    /// Runs one call within its limit.
    pub(super) async fn within<T, O, F: Future<Output = Result<O, Status>>>(
        &self,
        attempt: &Attempt,
        message: T,
        call: impl FnOnce(C, Request<T>) -> F,
    ) -> Result<O, Failure> {
        let began = Instant::now();
        let route = attempt.route.clone().unwrap_or_else(|| self.route(""));
        // boxed: it waits for the first lookup of a name, and hardly ever again
        let to = match tokio::time::timeout(attempt.limit, Box::pin(route.begin())).await {
            Ok(Ok(to)) => to,
            Ok(Err(error)) => return Err(Failure::new(FailureClass::NotSent, self.peer.who.clone(), error)),
            Err(_) => return Err(Failure::new(FailureClass::NotSent, self.peer.who.clone(), "its name was not looked up in time")),
        };
        let limit = attempt.limit.saturating_sub(began.elapsed());
        let mut request = Request::new(message);
        request.set_timeout(limit);
        // A call of tonic's is kilobytes of state. In a box it is moved once, not by every future
        // around it.
        let call = Box::pin(call((self.client)(to.channel.clone()), request));
        let failure = match tokio::time::timeout(limit + MARGIN, call).await {
            Ok(Ok(reply)) => {
                to.ended(Outcome::Answered);
                return Ok(reply);
            }
            Ok(Err(status)) => failure(self.peer.who(to.socket), status),
            Err(_) => Failure::new(FailureClass::TimedOut, self.peer.who(to.socket), format!("no answer within {limit:?}")),
        };
        to.ended(outcome(failure.class, began.elapsed()));
        Err(failure)
    }

    /// Its replicas.
    pub(super) fn pool(&self) -> &Pool {
        self.peer.pool()
    }

    fn broken(&self, source: ConversionError) -> Failure {
        Failure::new(FailureClass::Broken, self.peer.who.clone(), source)
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
        Patience { deadline: Instant::now() + time_left, away, call: call_limit }
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
        ask(call.id.kind, call.task, self.patience(call.time_left), &self.route(&call.task.to_string()), |attempt| {
            self.plan_once(call, attempt)
        })
        .await
    }
}

impl Remote<PlanAgentClient<Traced>> {
    async fn plan_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(Thought, Usage), Failure> {
        let request = agents_v1::PlanRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let reply = self.within(&attempt, request, |mut client, request| async move {
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
        ask(call.id.kind, call.task, self.patience(call.time_left), &self.route(&call.task.to_string()), |attempt| {
            self.parameterize_once(call, attempt)
        })
        .await
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
        ask(call.id.kind, call.task, patience, &self.route(&call.task.to_string()), |attempt| self.execute_once(execution, attempt)).await
    }

    fn keeps_receipts(&self) -> bool {
        true
    }
}

impl Remote<ToolAgentClient<Traced>> {
    async fn parameterize_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(String, Usage), Failure> {
        let request = agents_v1::ParameterizeRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let reply = self.within(&attempt, request, |mut client, request| async move {
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
            epoch: execution.call.epoch,
            may_have_run: execution.may_have_run || attempt.may_have_run,
        };
        let call = |mut client: ToolAgentClient<Traced>, request| async move { Ok(client.execute(request).await?.into_inner()) };
        let reply = self.within(&attempt, request, call).await?;
        let agents_v1::ExecuteResponse { observation: text, is_error, truncated, sources, .. } = reply;
        let sources = sources.into_iter().map(Into::into).collect();
        let observation = Observation { text, is_error, repeated: false, truncated, sources, untrusted: true };
        let artifacts = reply.artifacts.into_iter().map(Into::into).collect();
        Ok((Seen { observation, artifacts }, usage(reply.usage)))
    }
}

#[async_trait]
impl Library for Remote<ToolAgentClient<Traced>> {
    async fn list_tools(&self, known: Option<&Told>, limit: Duration) -> Result<Told, Failure> {
        let call = |mut client: ToolAgentClient<Traced>, request| async move { Ok(client.list_tools(request).await?.into_inner()) };
        let request = agents_v1::ListToolsRequest { known: known.map(|known| known.digest.clone()).unwrap_or_default() };
        let reply = self.once("", limit, async |attempt| self.within(&attempt, request.clone(), call).await).await?;
        listing::read(reply, known).await.map_err(|error| Failure::new(FailureClass::Broken, self.peer.who.clone(), error))
    }
}

#[async_trait]
impl ReflectAgent for Remote<ReflectAgentClient<Traced>> {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        ask(call.id.kind, call.task, self.patience(call.time_left), &self.route(&call.task.to_string()), |attempt| {
            self.reflect_once(call, attempt)
        })
        .await
    }
}

impl Remote<ReflectAgentClient<Traced>> {
    async fn reflect_once(&self, call: Call<'_>, attempt: Attempt) -> Result<(Judgement, Usage), Failure> {
        let request = agents_v1::ReflectRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let reply = self.within(&attempt, request, |mut client, request| async move {
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
        let tenant = match &memory {
            memory_v1::remember_request::Memory::Task(task) => task.tenant.clone(),
            memory_v1::remember_request::Memory::Turn(turn) => turn.tenant.clone(),
        };
        let request = memory_v1::RememberRequest { memory: Some(memory) };
        let call = |mut client: MemoryClient<Traced>, request| async move { client.remember(request).await.map(|_| ()) };
        self.once(&tenant, limit, async |attempt| self.within(&attempt, request.clone(), call).await).await
    }

    async fn forget(&self, request: memory_v1::ForgetRequest, limit: Duration) -> Result<(), Failure> {
        let call = |mut client: MemoryClient<Traced>, request| async move { client.forget(request).await.map(|_| ()) };
        self.once(&request.tenant, limit, async |attempt| self.within(&attempt, request.clone(), call).await).await
    }

    async fn recall(&self, request: memory_v1::RecallRequest, limit: Duration) -> Result<Vec<memory_v1::RecalledMemory>, Failure> {
        let call = |mut client: MemoryClient<Traced>, request| async move { Ok(client.recall(request).await?.into_inner().memories) };
        self.once(&request.tenant, limit, async |attempt| self.within(&attempt, request.clone(), call).await).await
    }
}
