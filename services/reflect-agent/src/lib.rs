//! Reflect-Agent, π_reflect: judges whether the observations of a finished history support its
//! answer. The verdict is always right or wrong, because decoding is held to the two words.

use std::sync::Arc;

use autoact_agent::{Agent, AgentConfig, AgentRole, AgentService, NoSettings, Reply, Stream, Whole, answer};
use autoact_service::{Setup, StartError};
use autoact_trajectory::{Reflection, Role};
use autoact_wire::agents_v1::reflect_agent_server::{ReflectAgent, ReflectAgentServer};
use autoact_wire::agents_v1::{Delta, ReflectRequest, ReflectResponse, ReflectResult, reflect_response::Event};
use autoact_wire::v1;
use tonic::{Request, Response, Status};

/// The service.
pub type ReflectAgentService = AgentService<Judge>;
/// The section `[reflect-agent]`.
pub type ReflectAgentConfig = AgentConfig<Judge>;

/// What makes an agent Reflect-Agent.
#[derive(Debug, Clone)]
pub struct Judge;

impl AgentRole for Judge {
    const ROLE: Role = Role::Reflect;
    const NAME: &'static str = "reflect-agent";
    const ABOUT: &'static str = "Reflect-Agent: judges whether what was observed supports the group's answer.";
    const PORT: u16 = 7403;
    const DEFAULT_ADAPTER: &'static str = "models/stem/adapters/reflect";

    type Settings = NoSettings;
    type Resources = ();
    type Request = ReflectRequest;
    type Response = ReflectResponse;

    async fn open(_: &NoSettings, _: &Setup) -> Result<(), StartError> {
        Ok(())
    }

    fn serve(agent: Arc<Agent>, (): (), _: &NoSettings, setup: &mut Setup) {
        setup.serve(autoact_wire::limited!(ReflectAgentServer::new(Rpc { agent })));
    }

    fn asked(request: ReflectRequest) -> (Option<v1::Trajectory>, Option<v1::SamplingParams>, String) {
        (request.trajectory, request.sampling, request.tenant)
    }

    fn delta(delta: Delta) -> ReflectResponse {
        ReflectResponse { event: Some(Event::Delta(delta)) }
    }

    fn result(Whole { reply, calibration, .. }: Whole<'_>, usage: v1::Usage) -> Reply<ReflectResponse> {
        let Reflection { thought, verdict, log_odds, .. } = autoact_speaker::reflection(reply)?;
        let verdict = v1::Verdict::from(verdict) as i32;
        let calibration = calibration.map(Into::into);
        Ok(ReflectResponse { event: Some(Event::Result(ReflectResult { thought, verdict, usage: Some(usage), log_odds, calibration })) })
    }
}

struct Rpc {
    agent: Arc<Agent>,
}

#[tonic::async_trait]
impl ReflectAgent for Rpc {
    type ReflectStream = Stream<ReflectResponse>;

    async fn reflect(&self, request: Request<ReflectRequest>) -> Result<Response<Self::ReflectStream>, Status> {
        answer::<Judge>(&self.agent, request).await
    }
}
