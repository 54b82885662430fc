//! What the planning loop needs of the agents: domain questions, domain answers. Over gRPC in [`crate::remote`].

use std::sync::Arc;
use std::time::Duration;

use autoact_proto::{ConversionError, status};
use autoact_trajectory::{Action, Observation, Reflection, Sampling, Thought, ToolSpec, Trajectory, Usage};
use tonic::{Code, Status};

/// What an agent is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The history to go on with.
    pub trajectory: &'a Trajectory,
    /// How to decode.
    pub sampling: &'a Sampling,
    /// How long the call may take.
    pub limit: Duration,
}

/// π_plan
#[tonic::async_trait]
pub trait PlanAgent: Send + Sync {
    /// τ_t and α^m_t
    async fn plan(&self, ask: Ask<'_>) -> Result<(Thought, Usage), AgentError>;
}

/// π_tool, and the place where tools run.
#[tonic::async_trait]
pub trait ToolAgent: Send + Sync {
    /// α^p_t: the parameters of the tool that the last step chose.
    async fn parameterize(&self, ask: Ask<'_>) -> Result<(String, Usage), AgentError>;
    /// Runs an action of planning loop `step` (from 1); with the task's id that is the call's idempotency key.
    async fn execute(&self, ask: Ask<'_>, action: &Action, step: u32) -> Result<(Observation, Usage), AgentError>;
    /// The tool library.
    async fn list_tools(&self, limit: Duration) -> Result<Vec<ToolSpec>, AgentError>;
}

/// π_reflect
#[tonic::async_trait]
pub trait ReflectAgent: Send + Sync {
    /// τ^r and α^r
    async fn reflect(&self, ask: Ask<'_>) -> Result<(Reflection, Usage), AgentError>;
}

/// What remembers finished tasks.
#[tonic::async_trait]
pub trait MemoryService: Send + Sync {
    /// Stores or replaces the memory of a task.
    async fn remember(&self, memory: autoact_proto::v1::TaskMemory, limit: Duration) -> Result<(), AgentError>;
}

/// The group.
#[derive(Clone)]
pub struct Agents {
    /// π_plan
    pub plan: Arc<dyn PlanAgent>,
    /// π_tool
    pub tool: Arc<dyn ToolAgent>,
    /// π_reflect
    pub reflect: Arc<dyn ReflectAgent>,
}

/// Why an agent gave no answer. Names the agent and its address.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The call failed.
    #[error("{agent} at `{address}` failed: {} ({:?})", status.message(), status.code())]
    Call {
        /// Who.
        agent: &'static str,
        /// Where.
        address: String,
        /// What came back.
        status: Box<Status>,
    },
    /// The call took too long.
    #[error("{agent} at `{address}` did not answer within {limit:?}")]
    TimedOut {
        /// Who.
        agent: &'static str,
        /// Where.
        address: String,
        /// How long it was given.
        limit: Duration,
    },
    /// The reply does not keep the contract.
    #[error("{agent} at `{address}` broke its contract")]
    Contract {
        /// Who.
        agent: &'static str,
        /// Where.
        address: String,
        /// How.
        source: ConversionError,
    },
}

impl AgentError {
    /// Nobody is there: a restart, a rollout, a crash.
    pub fn unreachable(&self) -> bool {
        matches!(self, AgentError::Call { status, .. } if status.code() == Code::Unavailable)
    }

    /// Somebody is there who asks to come back later.
    pub fn busy(&self) -> bool {
        matches!(self, AgentError::Call { status, .. } if status.code() == Code::ResourceExhausted)
    }

    /// The time ran out, here or there.
    pub fn timed_out(&self) -> bool {
        match self {
            AgentError::TimedOut { .. } => true,
            AgentError::Call { status, .. } => status.code() == Code::DeadlineExceeded,
            AgentError::Contract { .. } => false,
        }
    }

    /// When the agent asks to come back.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            AgentError::Call { status, .. } => status::retry_after(status),
            _ => None,
        }
    }
}
