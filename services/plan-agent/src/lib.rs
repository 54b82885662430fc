//! Plan-Agent, π_plan: writes a thought and chooses the next tool. Only tools of the trajectory can
//! be chosen, because decoding is held to their names.

use std::sync::Arc;

use autoact_agent::{Agent, AgentConfig, AgentRole, AgentService, NoSettings, Reply, Stream, Whole, answer};
use autoact_service::{Setup, StartError};
use autoact_trajectory::{Role, Thought};
use autoact_wire::agents_v1::plan_agent_server::{PlanAgent, PlanAgentServer};
use autoact_wire::agents_v1::{Delta, PlanRequest, PlanResponse, PlanResult, plan_response::Event};
use autoact_wire::v1;
use tonic::{Request, Response, Status};

/// The service.
pub type PlanAgentService = AgentService<Planner>;
/// The section `[plan-agent]`.
pub type PlanAgentConfig = AgentConfig<Planner>;

/// What makes an agent Plan-Agent.
#[derive(Debug, Clone)]
pub struct Planner;

impl AgentRole for Planner {
    const ROLE: Role = Role::Plan;
    const NAME: &'static str = "plan-agent";
    const ABOUT: &'static str = "Plan-Agent: given a question and what is known so far, thinks and chooses the next tool.";
    const PORT: u16 = 7401;
    const DEFAULT_ADAPTER: &'static str = "models/stem/adapters/plan";

    type Settings = NoSettings;
    type Resources = ();
    type Request = PlanRequest;
    type Response = PlanResponse;

    async fn open(_: &NoSettings, _: &Setup) -> Result<(), StartError> {
        Ok(())
    }

    fn serve(agent: Arc<Agent>, (): (), _: &NoSettings, setup: &mut Setup) {
        setup.serve(autoact_wire::limited!(PlanAgentServer::new(Rpc { agent })));
    }

    fn asked(request: PlanRequest) -> (Option<v1::Trajectory>, Option<v1::SamplingParams>, String) {
        (request.trajectory, request.sampling, request.tenant)
    }

    fn delta(delta: Delta) -> PlanResponse {
        PlanResponse { event: Some(Event::Delta(delta)) }
    }

    fn result(Whole { reply, tools, .. }: Whole<'_>, usage: v1::Usage) -> Reply<PlanResponse> {
        let Thought { thought, tool } = autoact_speaker::thought(&reply.text, tools)?;
        Ok(PlanResponse { event: Some(Event::Result(PlanResult { thought, tool, usage: Some(usage) })) })
    }
}

struct Rpc {
    agent: Arc<Agent>,
}

#[tonic::async_trait]
impl PlanAgent for Rpc {
    type PlanStream = Stream<PlanResponse>;

    async fn plan(&self, request: Request<PlanRequest>) -> Result<Response<Self::PlanStream>, Status> {
        answer::<Planner>(&self.agent, request).await
    }
}
