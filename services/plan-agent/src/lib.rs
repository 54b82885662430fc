//! Plan-Agent, π_plan: writes a thought and chooses the next tool. Only tools of the trajectory can be chosen, because decoding is held
//! to their names.

mod config;

use std::sync::Arc;

use autoact_agent::{Agent, Request as Ask, Sources, Stream};
use autoact_service::{Flag, Service, Setup, StartError, deadline};
use autoact_trajectory::{Role, Thought};
use autoact_wire::agents_v1::plan_agent_server::{PlanAgent, PlanAgentServer};
use autoact_wire::agents_v1::{PlanRequest, PlanResponse, PlanResult, plan_response::Event};
use autoact_wire::status::to_status;
use tonic::{Request, Response, Status};

pub use config::{DEFAULT_ADAPTER, DEFAULT_MODEL, METRICS_PORT, PORT, PlanAgentConfig};

/// The service.
pub struct PlanAgentService;

impl Service for PlanAgentService {
    type Config = PlanAgentConfig;
    const ABOUT: &'static str = "Plan-Agent: given a question and what is known so far, thinks and chooses the next tool.";

    fn flags() -> Vec<Flag> {
        autoact_agent::engine_flags()
    }

    async fn build(config: PlanAgentConfig, setup: &mut Setup) -> Result<(), StartError> {
        let sources = Sources {
            model: &config.model,
            adapter: &config.adapter,
            registry: &config.adapter_registry,
            announcements: config.adapter_announcements,
            backend: &config.backend,
        };
        let agent = autoact_agent::open(Role::Plan, sources, &config.engine, setup).await?;
        install(agent, &config, setup);
        Ok(())
    }
}

/// Serves an agent: [`Service::build`] does it with the configured model, tests with one of theirs.
pub fn install(agent: Arc<Agent>, config: &PlanAgentConfig, setup: &mut Setup) {
    let health = autoact_agent::watch_health(Arc::clone(&agent), setup.condition("model"), config.engine.health_interval);
    setup.tasks().spawn("model health", health);
    setup.serve(autoact_wire::limited!(PlanAgentServer::new(Planner { agent })));
}

struct Planner {
    agent: Arc<Agent>,
}

#[tonic::async_trait]
impl PlanAgent for Planner {
    type PlanStream = Stream<PlanResponse>;

    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<Self::PlanStream>, Status> {
        let deadline = deadline(&request);
        let PlanRequest { trajectory, sampling } = request.into_inner();
        let speech = self.agent.speak(Ask { trajectory, sampling, deadline }).await.map_err(|error| to_status(&error))?;
        let delta = |delta| PlanResponse { event: Some(Event::Delta(delta)) };
        let tools = speech.tools().to_vec();
        let replies = autoact_agent::stream(speech, delta, move |reply, usage| {
            let Thought { thought, tool } = autoact_speaker::thought(reply, &tools)?;
            Ok(PlanResponse { event: Some(Event::Result(PlanResult { thought, tool, usage: Some(usage) })) })
        });
        Ok(Response::new(replies))
    }
}
