//! The same driver over the three services and over the group in one process: the same events.
#![allow(clippy::unwrap_used, clippy::result_large_err)] // tests

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use autoact_agent::EngineConfig;
use autoact_config::{Common, Section};
use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, Engine, EngineOptions, ModelDir};
use autoact_planning::{
    Agents, Call, Contexts, Driver, DriverOptions, Execution, Failure, FailureClass, MemoryLog, PlanAgent, Progress, ReflectAgent, Reply,
    Seen, ToolAgent, Tools,
};
use autoact_service::{Running, Setup};
use autoact_speaker::testing::tiny_model;
use autoact_tools::{Corpus, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{
    EventBody, FinishReason, Judgement, Limits, Observation, PromptSize, Reflection, Role, Sampling, Submitted, Task, TaskId, TaskKey,
    Tenant, Thought, ToolSpec, Trajectory, Usage, Verdict,
};
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::reflect_agent_client::ReflectAgentClient;
use autoact_wire::agents_v1::token_counter_client::TokenCounterClient;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::client::connect_lazy;
use autoact_wire::v1;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

const QUESTION: &str = "What is the capital of the country where the Loire flows?";
/// Random weights use up every step; a few of them show enough.
const STEPS: u32 = 3;

/// A context that holds a few steps of random words.
const LONG: usize = 8192;
/// One that holds hardly two.
const SHORT: usize = 1600;

/// A model, and where its adapters are.
struct Model {
    dir: PathBuf,
    adapters: Option<PathBuf>,
    limits: Limits,
    template: bool,
}

/// The services of one group, and clients for them.
struct Services {
    running: Vec<Running>,
    plan: PlanAgentClient<Channel>,
    tool: ToolAgentClient<Channel>,
    reflect: ReflectAgentClient<Channel>,
    counters: [TokenCounterClient<Channel>; 3],
}

impl Services {
    async fn start(model: &Model, library: &Arc<ToolLibrary>) -> Services {
        let mut running = Vec::new();
        let mut channels = Vec::new();
        for role in Role::ALL {
            let adapter = model.adapters.as_ref().map(|dir| dir.join(role.as_str())).unwrap_or_default();
            let agent = autoact_agent::load(role, &model.dir, &adapter, &EngineConfig::default(), false).await.unwrap();
            let common = Common { grace_period: Duration::from_secs(5), ..Common::on_ports(0, 0) };
            let agent = Arc::new(agent);
            let mut setup = Setup::bind(plan_agent::PlanAgentConfig::NAME, common).await.unwrap();
            match role {
                Role::Plan => autoact_agent::install(agent, (), &plan_agent::PlanAgentConfig::default(), &mut setup),
                Role::Tool => {
                    let tools = Arc::new(tool_agent::Tools::from(Arc::clone(library)));
                    autoact_agent::install(agent, tools, &tool_agent::ToolAgentConfig::default(), &mut setup);
                }
                Role::Reflect => autoact_agent::install(agent, (), &reflect_agent::ReflectAgentConfig::default(), &mut setup),
            }
            let service = setup.finish().await.unwrap().start();
            channels.push(connect_lazy(&service.addr().to_string()).unwrap());
            running.push(service);
        }
        let counters = std::array::from_fn(|at| TokenCounterClient::new(channels[at].clone()));
        let [plan, tool, reflect]: [Channel; 3] = channels.try_into().unwrap();
        let (plan, tool, reflect) = (PlanAgentClient::new(plan), ToolAgentClient::new(tool), ReflectAgentClient::new(reflect));
        Services { running, plan, tool, reflect, counters }
    }
}

fn failed(role: Role) -> impl Fn(Status) -> Failure {
    move |status| {
        let class = if status.code() == tonic::Code::InvalidArgument { FailureClass::Refused } else { FailureClass::Broken };
        let too_long = autoact_wire::status::prompt_size(&status);
        Failure { too_long, ..Failure::new(class, format!("{}-agent", role.as_str()), status.message().to_owned()) }
    }
}

/// The last message of a stream.
async fn last<T>(mut stream: Streaming<T>) -> Result<T, Status> {
    let mut last = None;
    while let Some(message) = stream.message().await? {
        last = Some(message);
    }
    last.ok_or_else(|| Status::internal("an empty stream"))
}

fn usage(usage: Option<v1::Usage>) -> Usage {
    usage.map(Usage::from).unwrap_or_default()
}

#[async_trait]
impl PlanAgent for Services {
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure> {
        let request = agents_v1::PlanRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let asked = async { last(self.plan.clone().plan(request).await?.into_inner()).await };
        match asked.await.map_err(failed(Role::Plan))?.event.unwrap() {
            agents_v1::plan_response::Event::Result(agents_v1::PlanResult { thought, tool, usage: cost }) => {
                Ok(Reply::new(Thought { thought, tool }, usage(cost)))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[async_trait]
impl ToolAgent for Services {
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure> {
        let request = agents_v1::ParameterizeRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let asked = async { last(self.tool.clone().parameterize(request).await?.into_inner()).await };
        match asked.await.map_err(failed(Role::Tool))?.event.unwrap() {
            agents_v1::parameterize_response::Event::Result(agents_v1::ParameterizeResult { params, usage: cost }) => {
                Ok(Reply::new(params, usage(cost)))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[async_trait]
impl ReflectAgent for Services {
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure> {
        let request = agents_v1::ReflectRequest {
            trajectory: Some(call.trajectory.into()),
            sampling: Some(call.sampling.into()),
            tenant: call.task.tenant.to_string(),
        };
        let asked = async { last(self.reflect.clone().reflect(request).await?.into_inner()).await };
        match asked.await.map_err(failed(Role::Reflect))?.event.unwrap() {
            agents_v1::reflect_response::Event::Result(result) => {
                let verdict = Verdict::try_from(result.verdict()).unwrap();
                let reflection = Reflection { log_odds: result.log_odds, ..Reflection::new(result.thought, verdict) };
                Ok(Reply::new(reflection.into(), usage(result.usage)))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[async_trait]
impl Tools for Services {
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure> {
        let request = agents_v1::ExecuteRequest {
            tenant: execution.call.task.tenant.to_string(),
            task_id: execution.call.task.id.to_string(),
            step: execution.call.id.step,
            action: Some(execution.action.into()),
            trajectory: Some(execution.call.trajectory.into()),
            epoch: execution.call.epoch,
            may_have_run: false,
        };
        let asked = self.tool.clone().execute(Request::new(request)).await;
        let agents_v1::ExecuteResponse { observation: text, is_error, truncated, usage: cost, artifacts: _, sources } =
            asked.map_err(failed(Role::Tool))?.into_inner();
        let sources = sources.into_iter().map(Into::into).collect();
        Ok(Reply::new(Observation { text, is_error, truncated, sources, ..Observation::default() }.into(), usage(cost)))
    }
}

#[async_trait]
impl Contexts for Services {
    /// Unknown: every prompt is measured.
    fn room(&self, _: Role) -> Option<usize> {
        None
    }

    async fn measure(&self, role: Role, _: &TaskKey, trajectory: &Trajectory, _: Duration) -> Result<PromptSize, Failure> {
        let request = agents_v1::CountTokensRequest { trajectory: Some(trajectory.into()) };
        let counted = self.counters[role as usize].clone().count_tokens(request).await.map_err(failed(role))?.into_inner();
        Ok(PromptSize { tokens: counted.tokens as usize, limit: counted.limit as usize })
    }
}

/// The bodies that the driver writes over the services. With `take_over`, another holder goes on
/// after every event.
async fn served(services: &Arc<Services>, tools: &[ToolSpec], options: &RunOptions, take_over: bool) -> Vec<Said> {
    let agents = Agents {
        plan: Arc::clone(services) as _,
        tool: Arc::clone(services) as _,
        reflect: Arc::clone(services) as _,
        tools: Arc::clone(services) as _,
        contexts: Arc::clone(services) as _,
        memories: Arc::new(autoact_planning::NoMemories),
    };
    let submitted = Submitted {
        question: QUESTION.to_owned(),
        tools: tools.to_vec(),
        limits: options.limits,
        sampling: options.sampling,
        ..Submitted::default()
    };
    let key = TaskKey::new(Tenant::default(), TaskId::generate());
    let settings = DriverOptions { writer: "served".to_owned(), judgements: None };
    let mut driver = Driver::begin(agents.clone(), MemoryLog::default(), settings.clone(), &key, submitted).await.unwrap();
    while take_over && matches!(driver.step(std::future::pending()).await.unwrap(), Progress::Advanced) {
        driver.settle().await.unwrap();
        let (_, log) = driver.into_parts();
        let task = Task::fold(&log.events).unwrap();
        driver = Driver::take_up(agents.clone(), log, settings.clone(), task).await.unwrap();
    }
    driver.run().await.unwrap();
    bodies(driver.into_parts().1)
}

/// What happened, and how likely it was to the model.
type Said = (EventBody, Option<f64>);

/// What happened, without who took the task up.
fn bodies(log: MemoryLog) -> Vec<Said> {
    let said = log.events.into_iter().map(|event| (event.body, event.usage.and_then(|usage| usage.log_prob)));
    let said: Vec<Said> = said.filter(|(body, _)| !matches!(body, EventBody::Started(_))).collect();
    for (body, log_prob) in &said {
        let spoken = matches!(body, EventBody::Thought(_) | EventBody::Action(_) | EventBody::Reflection(_));
        assert_eq!(log_prob.is_some(), spoken, "{body:?}");
        assert!(!matches!(body, EventBody::Reflection(reflection) if reflection.log_odds.is_none()), "{body:?}");
    }
    said
}

/// The bundled tools.
fn atlas() -> ToolLibrary {
    let atlas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora/atlas");
    let corpus = Arc::new(Corpus::load(atlas.join("pages.jsonl")).unwrap());
    ToolLibrary::load(atlas.join("tools.toml"), corpus).unwrap()
}

/// How many of the bodies are observations.
fn observations(bodies: &[Said]) -> usize {
    bodies.iter().filter(|(body, _)| matches!(body, EventBody::Observation(_))).count()
}

/// Asks the group in process, over the services, and over services whose gateways take over from
/// each other, greedily and not. What happened.
async fn compare(model: &Model, library: ToolLibrary, tools: Vec<ToolSpec>) -> Vec<Said> {
    let library = Arc::new(library);
    let services = Arc::new(Services::start(model, &library).await);
    let engine = Engine::start(&ModelDir::open(&model.dir).unwrap(), EngineOptions::default()).unwrap();
    assert_eq!(engine.info().chat_template, model.template);
    let voices = if model.adapters.is_some() { Voices::by_role() } else { Voices::base() };
    for (role, dir) in Role::ALL.into_iter().zip(std::iter::repeat(&model.adapters)) {
        if let Some(dir) = dir {
            engine.load_adapter(role.as_str(), dir.join(role.as_str())).unwrap();
        }
    }
    let group = LocalGroup::new(Arc::new(engine), Arc::clone(&library), voices);
    let mut all = Vec::new();
    for temperature in [0.0, 0.7] {
        let sampling = Sampling { temperature, seed: 7, ..Sampling::default() };
        let options = RunOptions { limits: model.limits, sampling, ..RunOptions::default() };
        let there = served(&services, &tools, &options, false).await;
        let held = served(&services, &tools, &options, true).await;
        let (group, tools) = (group.clone(), tools.clone());
        let here = tokio::task::spawn_blocking(move || bodies(group.run_logged(QUESTION, &tools, &options).unwrap().1));
        let here = here.await.unwrap();
        assert_eq!(here, there, "at temperature {temperature}");
        assert_eq!(here, held, "at temperature {temperature}, after take-overs");
        all.extend(here);
    }
    for service in Arc::into_inner(services).unwrap().running {
        service.stop().await.unwrap();
    }
    all
}

/// A tool whose observations are longer than a context.
struct Read(ToolSpec);

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Ok("The Loire is a river in France. It is long, and it flows into the sea. ".repeat(100).into())
    }
}

/// A tiny model with this context, with or without its chat template.
fn tiny(template: bool, context: usize) -> (tempfile::TempDir, Model) {
    let dir = tiny_model("qwen3").unwrap();
    if !template {
        std::fs::remove_file(dir.path().join("chat_template.jinja")).unwrap();
    }
    let config = dir.path().join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("\"max_position_embeddings\": 2048", &format!("\"max_position_embeddings\": {context}"))).unwrap();
    let limits = Limits { max_steps: STEPS, ..Limits::default() };
    let model = Model { dir: dir.path().to_owned(), adapters: None, limits, template };
    (dir, model)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_chat_template_writes_the_same_events() {
    let (_dir, model) = tiny(false, LONG);
    let library = atlas();
    let tools = library.specs().to_vec();
    assert!(observations(&compare(&model, library, tools).await) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_a_chat_template_writes_the_same_events() {
    let (_dir, model) = tiny(true, LONG);
    let library = atlas();
    let tools = library.specs().to_vec();
    assert!(observations(&compare(&model, library, tools).await) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn histories_that_do_not_fit_are_shortened_in_the_same_way() {
    for template in [false, true] {
        let (_dir, model) = tiny(template, SHORT);
        let library = atlas();
        let spec =
            ToolSpec { name: "Read".into(), usage: "Read[title]".into(), max_observation_bytes: 16_384, ..library.specs()[0].clone() };
        let finish = library.specs().iter().find(|spec| spec.is_answer()).cloned().unwrap();
        let tools = vec![spec.clone(), finish];
        let happened = compare(&model, library.with_tool(Arc::new(Read(spec))).unwrap(), tools).await;
        assert!(observations(&happened) > 0, "{happened:?}");
        assert!(happened.iter().any(|(body, _)| matches!(body, EventBody::Shortened(_))), "{happened:?}");
        for (body, _) in &happened {
            assert!(!matches!(body, EventBody::Finished(end) if end.reason == FinishReason::Failed), "{body:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bundled_model_writes_the_same_events() {
    let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/stem");
    let model = Model { adapters: Some(stem.join("adapters")), dir: stem, limits: Limits::default(), template: false };
    let library = atlas();
    let tools = library.specs().to_vec();
    assert!(observations(&compare(&model, library, tools).await) > 0);
}
