//! What the driver needs of the group: questions and answers of the domain, wherever the agents
//! are.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use autoact_trajectory::{
    Action, CallId, Effect, Judgement, NewArtifact, Observation, Sampling, TaskKey, Thought, ToolSpec, Trajectory, Usage,
};

use crate::contexts::Contexts;
use crate::failure::Failure;
use crate::memories::Memories;

/// What an agent is asked.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The task.
    pub task: &'a TaskKey,
    /// Which of the task's calls this is.
    pub id: CallId,
    /// Which holder of the task's lease makes it.
    pub epoch: u64,
    /// The history to go on with: for agents what they are shown of it, for tools all of it.
    pub trajectory: &'a Trajectory,
    /// How to decode. The seed is this call's own.
    pub sampling: Sampling,
    /// How much of its own time the task has left.
    pub time_left: Duration,
}

/// An action to run.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// The task and the step are the call's idempotency key.
    pub call: Call<'a>,
    /// What to run.
    pub action: &'a Action,
    /// What is known of the tool; `None` for one that the task does not have.
    pub spec: Option<&'a ToolSpec>,
    /// Another holder of the lease may have run it already.
    pub may_have_run: bool,
}

impl Execution<'_> {
    /// What running it does to the world; a tool that is not known is taken as dangerous.
    pub fn effect(&self) -> Effect {
        self.spec.map_or(Effect::SideEffect, |spec| spec.effect)
    }
}

/// An answer and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<T> {
    /// The answer.
    pub value: T,
    /// What it cost. `total` is the call that gave the answer, as the caller saw it.
    pub usage: Usage,
    /// How long earlier attempts at the same call and the pauses after them took.
    pub retry: Duration,
}

impl<T> Reply<T> {
    /// A reply to the first attempt.
    pub fn new(value: T, usage: Usage) -> Reply<T> {
        Reply { value, usage, retry: Duration::ZERO }
    }
}

/// π_plan
#[async_trait]
pub trait PlanAgent: Send + Sync {
    /// τ_t and α^m_t: a thought, and the name of one of the trajectory's tools.
    async fn plan(&self, call: Call<'_>) -> Result<Reply<Thought>, Failure>;
}

/// π_tool
#[async_trait]
pub trait ToolAgent: Send + Sync {
    /// α^p_t: the parameters of the tool that the last step chose.
    async fn parameterize(&self, call: Call<'_>) -> Result<Reply<String>, Failure>;
}

/// π_reflect
#[async_trait]
pub trait ReflectAgent: Send + Sync {
    /// τ^r and α^r: a judgement of the answer in the last step.
    async fn reflect(&self, call: Call<'_>) -> Result<Reply<Judgement>, Failure>;
}

/// What a tool's run came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The text for the group.
    pub observation: Observation,
    /// What comes with it for people; not stored yet.
    pub artifacts: Vec<NewArtifact>,
}

impl From<Observation> for Seen {
    fn from(observation: Observation) -> Self {
        Seen { observation, artifacts: Vec::new() }
    }
}

/// The place where tools run.
#[async_trait]
pub trait Tools: Send + Sync {
    /// Runs an action. A tool that runs and fails is no failure: its observation says so.
    async fn execute(&self, execution: Execution<'_>) -> Result<Reply<Seen>, Failure>;

    /// Whether receipts tell what was run. Without them, a side effect that may have been run is
    /// not asked for again.
    fn keeps_receipts(&self) -> bool {
        false
    }
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
    /// Where tools run.
    pub tools: Arc<dyn Tools>,
    /// How much the models can read.
    pub contexts: Arc<dyn Contexts>,
    /// What is remembered of a conversation.
    pub memories: Arc<dyn Memories>,
}
