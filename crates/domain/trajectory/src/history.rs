//! H_t: the history the agents are given.

use std::sync::Arc;

use crate::artifact::Artifact;
use crate::confidence::Calibration;
use crate::context::TaskContext;
use crate::next_attempt::NextAttempt;
use crate::recalled::RecalledItem;
use crate::source::Source;
use crate::tool::ToolSpec;

/// α = (α^m, α^p): a tool's name, from Plan-Agent, and its parameters, from Tool-Agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Action {
    /// α^m
    pub tool: String,
    /// α^p
    pub params: String,
}

/// One planning loop (τ_t, α_t, o_t), filled from left to right while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// τ: what Plan-Agent thought.
    pub thought: String,
    /// α^m: the tool it chose.
    pub tool: String,
    /// α^p: the parameters Tool-Agent filled in, once it has.
    pub params: Option<String>,
    /// o: what the tool returned, once it has; never set for a terminal tool.
    pub observation: Option<String>,
    /// What came with the observation for people.
    pub artifacts: Vec<Artifact>,
    /// The documents that the observation shows. No agent reads them.
    pub sources: Vec<Source>,
}

impl Step {
    /// The step's action, once its parameters are known.
    pub fn action(&self) -> Option<Action> {
        Some(Action { tool: self.tool.clone(), params: self.params.clone()? })
    }
}

/// Reflect-Agent's judgement of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The answer is approved; the task ends.
    Right,
    /// The group plans on, with the reflection in its history.
    Wrong,
}

impl Verdict {
    /// The word the model writes.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
        }
    }
}

/// (τ^r, α^r)
#[derive(Debug, Clone, PartialEq)]
pub struct Reflection {
    /// τ^r: why.
    pub thought: String,
    /// α^r
    pub verdict: Verdict,
    /// `ln p("right") - ln p("wrong")` at the verdict, from the model's raw logits. `None`:
    /// unknown, since the model's server reports none, or no model judged.
    pub log_odds: Option<f64>,
    /// The probability that the answer is right, as the adapters' calibration has it. `None`: there
    /// is no calibration, or a part of its evidence is unknown.
    pub confidence: Option<f64>,
    /// The confidence that an approval needed, where one was asked for or the calibration names
    /// one. An answer below it is not approved, whatever the model wrote.
    pub threshold: Option<f64>,
    /// What the agents are given after it, where the verdict is "wrong".
    pub next_attempt: NextAttempt,
}

impl Reflection {
    /// A judgement without log-odds.
    pub fn new(thought: impl Into<String>, verdict: Verdict) -> Reflection {
        Reflection {
            thought: thought.into(),
            verdict,
            log_odds: None,
            confidence: None,
            threshold: None,
            next_attempt: NextAttempt::default(),
        }
    }
}

/// What Reflect-Agent said, and what its words are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The model's thought and verdict.
    pub reflection: Reflection,
    /// How its adapter's evidence becomes a confidence; `None`: it was not calibrated.
    pub calibration: Option<Arc<Calibration>>,
}

impl From<Reflection> for Judgement {
    fn from(reflection: Reflection) -> Self {
        Judgement { reflection, calibration: None }
    }
}

/// One entry of the history.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// A planning loop, complete or running.
    Step(Step),
    /// A judgement of the answer in the step before it.
    Reflection(Reflection),
}

/// The question, the selected tools T_s and the history H_t: all an agent needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trajectory {
    /// The task this is; empty in training data.
    pub task_id: String,
    /// What was asked.
    pub question: String,
    /// T_s
    pub tools: Vec<ToolSpec>,
    /// Steps that are left out before the first turn, because the prompt would be too long with
    /// them.
    pub left_out: u32,
    /// H_t, oldest first.
    pub turns: Vec<Turn>,
    /// What the client says beside the question.
    pub context: TaskContext,
    /// What was recalled of the conversation, in order of rank.
    pub recalled: Vec<RecalledItem>,
}

impl Trajectory {
    /// The spec of a selected tool.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The steps, without the reflections between them.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.turns.iter().filter_map(|turn| match turn {
            Turn::Step(step) => Some(step),
            Turn::Reflection(_) => None,
        })
    }

    /// The last turn, if it is a step.
    pub fn open_step(&self) -> Option<&Step> {
        match self.turns.last() {
            Some(Turn::Step(step)) => Some(step),
            _ => None,
        }
    }
}
