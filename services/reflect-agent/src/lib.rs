//! Reflect-Agent, π_reflect: judges whether the observations of a finished history support its answer. The verdict is always right or
//! wrong, because decoding is held to the two words.

mod config;

use std::sync::Arc;

use autoact_agent::{Agent, Request as Ask, Sources, Stream};
use autoact_service::{Flag, Service, Setup, StartError, deadline};
use autoact_trajectory::{Reflection, Role};
use autoact_wire::agents_v1::reflect_agent_server::{ReflectAgent, ReflectAgentServer};
use autoact_wire::agents_v1::{ReflectRequest, ReflectResponse, ReflectResult, reflect_response::Event};
use autoact_wire::status::to_status;
use autoact_wire::v1::Verdict;
use tonic::{Request, Response, Status};

pub use config::{DEFAULT_ADAPTER, DEFAULT_MODEL, METRICS_PORT, PORT, ReflectAgentConfig};

/// The service.
pub struct ReflectAgentService;

impl Service for ReflectAgentService {
    type Config = ReflectAgentConfig;
    const ABOUT: &'static str = "Reflect-Agent: judges whether what was observed supports the group's answer.";

    fn flags() -> Vec<Flag> {
        autoact_agent::engine_flags()
    }

    async fn build(config: ReflectAgentConfig, setup: &mut Setup) -> Result<(), StartError> {
        let sources = Sources {
            model: &config.model,
            adapter: &config.adapter,
            registry: &config.adapter_registry,
            announcements: config.adapter_announcements,
            backend: &config.backend,
        };
        let agent = autoact_agent::open(Role::Reflect, sources, &config.engine, setup).await?;
        install(agent, &config, setup);
        Ok(())
    }
}

/// Serves an agent: [`Service::build`] does it with the configured model, tests with one of theirs.
pub fn install(agent: Arc<Agent>, config: &ReflectAgentConfig, setup: &mut Setup) {
    let health = autoact_agent::watch_health(Arc::clone(&agent), setup.condition("model"), config.engine.health_interval);
    setup.tasks().spawn("model health", health);
    setup.serve(autoact_wire::limited!(ReflectAgentServer::new(Judge { agent })));
}

struct Judge {
    agent: Arc<Agent>,
}

#[tonic::async_trait]
impl ReflectAgent for Judge {
    type ReflectStream = Stream<ReflectResponse>;

    async fn reflect(&self, request: Request<ReflectRequest>) -> Result<Response<Self::ReflectStream>, Status> {
        let deadline = deadline(&request);
        let ReflectRequest { trajectory, sampling } = request.into_inner();
        let speech = self.agent.speak(Ask { trajectory, sampling, deadline }).await.map_err(|error| to_status(&error))?;
        let delta = |delta| ReflectResponse { event: Some(Event::Delta(delta)) };
        let replies = autoact_agent::stream(speech, delta, |reply, usage| {
            let Reflection { thought, verdict } = autoact_speaker::reflection(reply)?;
            let verdict = Verdict::from(verdict) as i32;
            Ok(ReflectResponse { event: Some(Event::Result(ReflectResult { thought, verdict, usage: Some(usage) })) })
        });
        Ok(Response::new(replies))
    }
}
