//! Agents that follow a script instead of a model, over real gRPC. For tests only.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_prompt::transcript;
use autoact_trajectory::Trajectory;
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::plan_agent_server::{PlanAgent, PlanAgentServer};
use autoact_wire::agents_v1::reflect_agent_server::{ReflectAgent, ReflectAgentServer};
use autoact_wire::agents_v1::token_counter_server::{TokenCounter, TokenCounterServer};
use autoact_wire::agents_v1::tool_agent_server::{ToolAgent, ToolAgentServer};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_server::{Memory, MemoryServer};
use autoact_wire::v1;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// What the group does, as functions of the trajectory.
pub struct Script {
    /// The tool that Plan-Agent chooses.
    pub plan: Box<dyn Fn(&v1::Trajectory) -> String + Send + Sync>,
    /// The parameters that Tool-Agent fills in.
    pub params: Box<dyn Fn(&v1::Trajectory) -> String + Send + Sync>,
    /// Whether Reflect-Agent says "right".
    pub right: Box<dyn Fn(&v1::Trajectory) -> bool + Send + Sync>,
    /// What tools return; `None`: the input and the task, or the failure that the input asks for.
    pub execute: Option<Execute>,
    /// Tokens that every reply costs.
    pub tokens: u32,
    /// What its judgements are worth.
    pub calibration: Option<agents_v1::Calibration>,
    /// Plan-Agent's thoughts wait for a permit after their first words; `None`: they do not.
    pub after_words: Option<Arc<Semaphore>>,
    /// The most tokens of a prompt, one for each byte; 0: the agents do not count.
    pub limit: u32,
    /// Names and definitions of tools that tasks can do without.
    pub optional: Vec<(String, String)>,
    /// Whether every call of `Send` waits for approval.
    pub approval: bool,
    /// Whether Tool-Agent names its library by a digest; earlier releases do not.
    pub digest: bool,
}

pub type Execute = Box<dyn Fn(&agents_v1::ExecuteRequest) -> agents_v1::ExecuteResponse + Send + Sync>;

/// Looks up the question, then answers it: approved at once.
impl Default for Script {
    fn default() -> Self {
        Script {
            plan: Box::new(|trajectory| if steps(trajectory).is_empty() { "Retrieve".into() } else { "Finish".into() }),
            params: Box::new(|trajectory| match steps(trajectory).last() {
                Some(step) if step.tool == "Finish" => format!("the answer to {}", trajectory.question),
                _ => trajectory.question.clone(),
            }),
            right: Box::new(|_| true),
            execute: None,
            tokens: 5,
            calibration: None,
            after_words: None,
            limit: 0,
            optional: Vec::new(),
            approval: false,
            digest: true,
        }
    }
}

pub fn steps(trajectory: &v1::Trajectory) -> Vec<&v1::Step> {
    trajectory
        .turns
        .iter()
        .filter_map(|turn| match &turn.turn {
            Some(v1::turn::Turn::Step(step)) => Some(step),
            _ => None,
        })
        .collect()
}

pub fn reflections(trajectory: &v1::Trajectory) -> usize {
    trajectory.turns.len() - steps(trajectory).len()
}

/// What memory does when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryIs {
    There,
    Away,
    /// It takes calls, and answers none.
    Silent,
}

/// What the test holds on to while the agents serve.
pub struct Inner {
    script: Script,
    /// Calls of Plan-Agent pass here one by one: a test that takes the permits holds the group.
    pub gate: Semaphore,
    /// How often each method was called.
    pub plans: AtomicUsize,
    pub runs: AtomicUsize,
    /// Those of them that may have been made before.
    pub may_have_run: AtomicUsize,
    /// Calls of Plan-Agent in progress.
    pub open: AtomicUsize,
    pub remembered: Mutex<Vec<memory_v1::TaskMemory>>,
    /// Turns of conversations, in the order they came.
    pub turns: Mutex<Vec<memory_v1::ConversationTurn>>,
    /// How often memory was asked to recall.
    pub recalls: AtomicUsize,
    /// What memory does.
    pub memory: Mutex<MemoryIs>,
    /// Plan-Agent refuses this many calls as busy.
    pub busy: AtomicUsize,
    /// How often the tools were sent, and how often it was said that they are known.
    pub listed: AtomicUsize,
    pub unchanged: AtomicUsize,
}

/// The three agents and the memory, each on a port of its own.
pub struct Group {
    pub inner: Arc<Inner>,
    servers: Vec<(SocketAddr, JoinHandle<()>)>,
}

impl Group {
    pub async fn start(script: Script) -> Group {
        let inner = Arc::new(Inner {
            script,
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            plans: AtomicUsize::new(0),
            runs: AtomicUsize::new(0),
            may_have_run: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            remembered: Mutex::default(),
            turns: Mutex::default(),
            recalls: AtomicUsize::new(0),
            memory: Mutex::new(MemoryIs::There),
            busy: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            unchanged: AtomicUsize::new(0),
        });
        let mut group = Group { inner: inner.clone(), servers: Vec::new() };
        for index in 0..4 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            group.servers.push((listener.local_addr().unwrap(), serve(&inner, index, listener)));
        }
        group
    }

    pub fn plan_address(&self) -> String {
        format!("http://{}", self.servers[0].0)
    }

    pub fn tool_address(&self) -> String {
        format!("http://{}", self.servers[1].0)
    }

    pub fn reflect_address(&self) -> String {
        format!("http://{}", self.servers[2].0)
    }

    pub fn memory_address(&self) -> String {
        format!("http://{}", self.servers[3].0)
    }

    /// From now on Plan-Agent answers this many calls, then holds the next.
    pub fn hold_after(&self, calls: usize) {
        self.inner.gate.forget_permits(Semaphore::MAX_PERMITS);
        self.inner.gate.add_permits(calls);
    }

    /// Plan-Agent goes on.
    pub fn go_on(&self) {
        self.inner.gate.add_permits(1_000_000);
    }

    /// Waits until Plan-Agent has been asked `calls` times.
    pub async fn asked(&self, calls: usize) {
        let asked = autoact_testkit::poll::until(super::LIMIT, async || (self.inner.plans.load(Ordering::SeqCst) >= calls).then_some(()));
        asked.await.expect("Plan-Agent is asked");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (_, server) in &self.servers {
            server.abort();
        }
    }
}

fn serve(inner: &Arc<Inner>, index: usize, listener: TcpListener) -> JoinHandle<()> {
    let incoming = TcpListenerStream::new(listener);
    let inner = inner.clone();
    tokio::spawn(async move {
        let mut server = tonic::transport::Server::builder();
        let counter = (inner.script.limit > 0 && index < 3).then(|| TokenCounterServer::from_arc(inner.clone()));
        let server = server.add_optional_service(counter);
        let router = match index {
            0 => server.add_service(PlanAgentServer::from_arc(inner)),
            1 => server.add_service(ToolAgentServer::from_arc(inner)),
            2 => server.add_service(ReflectAgentServer::from_arc(inner)),
            _ => server.add_service(MemoryServer::from_arc(inner)),
        };
        router.serve_with_incoming(incoming).await.unwrap();
    })
}

impl Inner {
    fn usage(&self) -> Option<v1::Usage> {
        // agents that count say nothing that the script cannot know
        let prompt_tokens = if self.script.limit > 0 { 0 } else { 10 };
        Some(v1::Usage {
            completion_tokens: self.script.tokens,
            prompt_tokens,
            log_prob: Some(-2.5),
            scored_tokens: 5,
            ..Default::default()
        })
    }
}

type Replies<T> = tokio_stream::Iter<std::vec::IntoIter<Result<T, Status>>>;

fn replies<T>(messages: Vec<T>) -> Response<Replies<T>> {
    Response::new(tokio_stream::iter(messages.into_iter().map(Ok).collect::<Vec<_>>()))
}

fn delta() -> agents_v1::Delta {
    agents_v1::Delta { text: "…".into() }
}

/// Counts the calls in progress: a client that hangs up drops its call.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tonic::async_trait]
impl PlanAgent for Inner {
    type PlanStream = Pin<Box<dyn Stream<Item = Result<agents_v1::PlanResponse, Status>> + Send>>;

    async fn plan(&self, request: Request<agents_v1::PlanRequest>) -> Result<Response<Self::PlanStream>, Status> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.open);
        self.plans.fetch_add(1, Ordering::SeqCst);
        if self.busy.try_update(Ordering::SeqCst, Ordering::SeqCst, |busy| busy.checked_sub(1)).is_ok() {
            return Err(Status::resource_exhausted("the queue is full"));
        }
        self.gate.acquire().await.unwrap().forget();
        let trajectory = request.into_inner().trajectory.unwrap();
        let tool = (self.script.plan)(&trajectory);
        let result = agents_v1::PlanResult { thought: format!("I use {tool}."), tool, usage: self.usage() };
        let words = agents_v1::PlanResponse { event: Some(agents_v1::plan_response::Event::Delta(delta())) };
        let result = agents_v1::PlanResponse { event: Some(agents_v1::plan_response::Event::Result(result)) };
        let held = self.script.after_words.clone();
        let last = futures::stream::once(async move {
            if let Some(held) = held {
                held.acquire().await.unwrap().forget();
            }
            Ok(result)
        });
        Ok(Response::new(Box::pin(futures::StreamExt::chain(tokio_stream::once(Ok(words)), last))))
    }
}

fn spec(name: &str, effect: v1::Effect) -> v1::ToolSpec {
    v1::ToolSpec {
        name: name.into(),
        definition: format!("{name} does something."),
        usage: format!("{name}[input]"),
        effect: effect as i32,
        terminal: name == "Finish",
        ..Default::default()
    }
}

#[tonic::async_trait]
impl ToolAgent for Inner {
    type ParameterizeStream = Replies<agents_v1::ParameterizeResponse>;

    async fn parameterize(&self, request: Request<agents_v1::ParameterizeRequest>) -> Result<Response<Self::ParameterizeStream>, Status> {
        let trajectory = request.into_inner().trajectory.unwrap();
        let result = agents_v1::ParameterizeResult { params: (self.script.params)(&trajectory), usage: self.usage() };
        Ok(replies(vec![agents_v1::ParameterizeResponse { event: Some(agents_v1::parameterize_response::Event::Result(result)) }]))
    }

    async fn execute(&self, request: Request<agents_v1::ExecuteRequest>) -> Result<Response<agents_v1::ExecuteResponse>, Status> {
        let request = request.into_inner();
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.may_have_run.fetch_add(usize::from(request.may_have_run), Ordering::SeqCst);
        if let Some(execute) = &self.script.execute {
            return Ok(Response::new(execute(&request)));
        }
        let action = request.action.unwrap();
        let usage = v1::Usage { tool: Some(Duration::from_millis(3).try_into().unwrap()), ..Default::default() };
        match action.params.as_str() {
            "break" => Err(Status::internal("the tool broke")),
            "vanish" => Err(Status::unavailable("the connection is gone")),
            params => Ok(Response::new(agents_v1::ExecuteResponse {
                observation: format!("{params} in task {}", request.task_id),
                usage: Some(usage),
                ..Default::default()
            })),
        }
    }

    async fn list_tools(&self, request: Request<agents_v1::ListToolsRequest>) -> Result<Response<agents_v1::ListToolsResponse>, Status> {
        let tools = [
            ("Search", v1::Effect::ReadOnly),
            ("Retrieve", v1::Effect::ReadOnly),
            ("Send", v1::Effect::SideEffect),
            ("Finish", v1::Effect::ReadOnly),
        ];
        let mut tools: Vec<v1::ToolSpec> = tools.map(|(name, effect)| spec(name, effect)).into();
        tools[2].needs_approval = self.script.approval;
        let mut optional = Vec::new();
        for (name, definition) in &self.script.optional {
            tools.push(v1::ToolSpec { definition: definition.clone(), ..spec(name, v1::Effect::ReadOnly) });
            optional.push(agents_v1::OptionalTool { name: name.clone(), ..Default::default() });
        }
        // no task goes without its end, whatever is said here
        optional.push(agents_v1::OptionalTool { name: "Finish".into(), ..Default::default() });
        let digest = if self.script.digest { "the digest".to_owned() } else { String::new() };
        let known = request.into_inner().known;
        if self.script.digest && known == digest {
            self.unchanged.fetch_add(1, Ordering::SeqCst);
            return Ok(Response::new(agents_v1::ListToolsResponse { digest, unchanged: true, ..Default::default() }));
        }
        self.listed.fetch_add(1, Ordering::SeqCst);
        Ok(Response::new(agents_v1::ListToolsResponse { tools, optional, corpus: Some("atlas".into()), digest, unchanged: false }))
    }
}

#[tonic::async_trait]
impl ReflectAgent for Inner {
    type ReflectStream = Replies<agents_v1::ReflectResponse>;

    async fn reflect(&self, request: Request<agents_v1::ReflectRequest>) -> Result<Response<Self::ReflectStream>, Status> {
        let trajectory = request.into_inner().trajectory.unwrap();
        let verdict = if (self.script.right)(&trajectory) { v1::Verdict::Right } else { v1::Verdict::Wrong };
        let result = agents_v1::ReflectResult {
            thought: "I looked.".into(),
            verdict: verdict as i32,
            usage: self.usage(),
            log_odds: Some(1.5),
            calibration: self.script.calibration.clone(),
        };
        Ok(replies(vec![agents_v1::ReflectResponse { event: Some(agents_v1::reflect_response::Event::Result(result)) }]))
    }
}

#[tonic::async_trait]
impl TokenCounter for Inner {
    async fn count_tokens(
        &self,
        request: Request<agents_v1::CountTokensRequest>,
    ) -> Result<Response<agents_v1::CountTokensResponse>, Status> {
        let trajectory = Trajectory::try_from(request.into_inner().trajectory.unwrap()).unwrap();
        let tokens = u32::try_from(transcript(&trajectory).len()).unwrap();
        Ok(Response::new(agents_v1::CountTokensResponse { tokens, limit: self.script.limit }))
    }
}

impl Inner {
    /// Whether memory answers.
    async fn memory(&self) -> Result<(), Status> {
        let now = *self.memory.lock().unwrap();
        match now {
            MemoryIs::There => Ok(()),
            MemoryIs::Away => Err(Status::unavailable("memory is away")),
            MemoryIs::Silent => std::future::pending().await,
        }
    }
}

#[tonic::async_trait]
impl Memory for Inner {
    async fn remember(&self, request: Request<memory_v1::RememberRequest>) -> Result<Response<memory_v1::RememberResponse>, Status> {
        self.memory().await?;
        match request.into_inner().memory {
            Some(memory_v1::remember_request::Memory::Task(task)) => self.remembered.lock().unwrap().push(task),
            Some(memory_v1::remember_request::Memory::Turn(turn)) => self.turns.lock().unwrap().push(turn),
            None => return Err(Status::invalid_argument("no memory")),
        }
        Ok(Response::new(memory_v1::RememberResponse { stored: true }))
    }

    /// All of the conversation, the latest first, scored by its place.
    async fn recall(&self, request: Request<memory_v1::RecallRequest>) -> Result<Response<memory_v1::RecallResponse>, Status> {
        self.recalls.fetch_add(1, Ordering::SeqCst);
        self.memory().await?;
        let request = request.into_inner();
        use memory_v1::recalled_memory::Memory as Recalled;
        let memories: Vec<Recalled> = match request.kind() {
            memory_v1::MemoryKind::Conversation => self.turns.lock().unwrap().iter().cloned().map(Recalled::Turn).collect(),
            _ => self.remembered.lock().unwrap().iter().cloned().map(Recalled::Task).collect(),
        };
        let here = |memory: &Recalled| {
            let (tenant, conversation) = match memory {
                Recalled::Turn(turn) => (&turn.tenant, &turn.conversation_id),
                Recalled::Task(task) => (&task.tenant, &task.conversation_id),
            };
            *tenant == request.tenant && *conversation == request.conversation_id
        };
        let scored = |(place, memory)| memory_v1::RecalledMemory { score: place as f32, memory: Some(memory) };
        let mut memories: Vec<_> = memories.into_iter().filter(here).enumerate().map(scored).collect();
        memories.reverse();
        Ok(Response::new(memory_v1::RecallResponse { memories }))
    }

    async fn list_memories(&self, _: Request<memory_v1::ListMemoriesRequest>) -> Result<Response<memory_v1::ListMemoriesResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn get_memory(&self, _: Request<memory_v1::GetMemoryRequest>) -> Result<Response<memory_v1::GetMemoryResponse>, Status> {
        Err(Status::unimplemented("not needed here"))
    }

    async fn forget(&self, request: Request<memory_v1::ForgetRequest>) -> Result<Response<memory_v1::ForgetResponse>, Status> {
        self.memory().await?;
        let memory_v1::ForgetRequest { id, tenant, .. } = request.into_inner();
        let mut remembered = self.remembered.lock().unwrap();
        let before = remembered.len();
        remembered.retain(|task| (&task.task_id, &task.tenant) != (&id, &tenant));
        let count = (before - remembered.len()) as u64;
        Ok(Response::new(memory_v1::ForgetResponse { forgotten: count > 0, count }))
    }
}
