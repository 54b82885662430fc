//! What came of a question.

use std::time::Duration;

use autoact_trajectory::{FinishReason, Task};
use serde::Serialize;

/// What a planner made of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The answer; empty if there is none.
    pub answer: String,
    /// What the planner's own judge said of the answer in the end; `None`: it has no judge.
    pub approved: Option<bool>,
    /// Planning rounds: thoughts with an action, the answer included and reflections left out.
    pub steps: u32,
    /// Everything that was said and seen.
    pub transcript: String,
    /// What it took.
    pub cost: Cost,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a planner stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With an answer that nobody judged.
    Answered,
    /// With an answer that its judge called right.
    Approved,
    /// The bound on planning rounds.
    MaxSteps,
    /// The bound on verdicts "wrong".
    MaxReflections,
    /// The bound on completion tokens.
    MaxTokens,
    /// The bound on time.
    MaxTime,
    /// It could not go on.
    Failed(String),
}

/// What an answer took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// Questions to the model.
    pub calls: u32,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// From the question to the end.
    pub time: Duration,
}

impl Ended {
    /// How a task of the group ended; one that was stopped before its judgement was answered.
    pub(crate) fn of(task: &Task) -> Ended {
        let Some(finished) = task.finished() else { return Ended::Answered };
        match finished.reason {
            FinishReason::Approved => Ended::Approved,
            FinishReason::MaxSteps => Ended::MaxSteps,
            FinishReason::MaxReflections => Ended::MaxReflections,
            FinishReason::MaxTokens => Ended::MaxTokens,
            FinishReason::MaxTime => Ended::MaxTime,
            FinishReason::Cancelled | FinishReason::Failed | FinishReason::Other => Ended::Failed(finished.detail.clone()),
        }
    }

    /// Its name, for counting.
    pub fn as_str(&self) -> &'static str {
        match self {
            Ended::Answered => "answered",
            Ended::Approved => "approved",
            Ended::MaxSteps => "max_steps",
            Ended::MaxReflections => "max_reflections",
            Ended::MaxTokens => "max_tokens",
            Ended::MaxTime => "max_time",
            Ended::Failed(_) => "failed",
        }
    }
}
