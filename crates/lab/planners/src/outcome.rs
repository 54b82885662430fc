//! The outcome of a question.

use std::time::Duration;

use autoact_trajectory::{FinishReason, JudgedAnswer, Task};
use serde::Serialize;

/// The result of a planner on one question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The answer; empty if there is none.
    pub answer: String,
    /// The planner's final judgement of its answer; `None` if it does not judge.
    pub approved: Option<bool>,
    /// Number of rounds: thoughts with an action, including the answer, without reflections.
    pub steps: u32,
    /// The answers that were judged, in their order; none where a planner does not reflect.
    #[serde(skip)]
    pub judgements: Vec<JudgedAnswer>,
    /// The whole transcript.
    pub transcript: String,
    /// Calls, tokens and time.
    pub cost: Cost,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a planner ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With an answer that was not judged.
    Answered,
    /// With an answer that it judged right.
    Approved,
    /// It said that there is no answer, and judged that right.
    NoAnswer,
    /// The bound on rounds.
    MaxSteps,
    /// The bound on verdicts "wrong".
    MaxReflections,
    /// The bound on completion tokens.
    MaxTokens,
    /// The bound on time.
    MaxTime,
    /// An error, with its text.
    Failed(String),
}

/// The cost of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// Number of model calls.
    pub calls: u32,
    /// Number of prompt tokens.
    pub prompt_tokens: u64,
    /// Number of generated tokens.
    pub completion_tokens: u64,
    /// Time from the question to the end.
    pub time: Duration,
}

impl Cost {
    /// What both cost together.
    #[must_use]
    pub fn with(self, other: Cost) -> Cost {
        Cost {
            calls: self.calls.saturating_add(other.calls),
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            time: self.time.saturating_add(other.time),
        }
    }
}

impl Ended {
    /// How a task of the group ended. A task that was stopped before its reflection was answered,
    /// or says that there is no answer.
    pub(crate) fn of(task: &Task) -> Ended {
        let Some(finished) = task.finished() else {
            return if task.no_answer().is_some() { Ended::NoAnswer } else { Ended::Answered };
        };
        match finished.reason {
            FinishReason::Approved => Ended::Approved,
            FinishReason::NoAnswer => Ended::NoAnswer,
            FinishReason::MaxSteps => Ended::MaxSteps,
            FinishReason::MaxReflections => Ended::MaxReflections,
            FinishReason::MaxTokens => Ended::MaxTokens,
            FinishReason::MaxTime => Ended::MaxTime,
            FinishReason::Cancelled | FinishReason::Failed | FinishReason::Other => Ended::Failed(finished.detail.clone()),
        }
    }

    /// Its name in counts.
    pub fn as_str(&self) -> &'static str {
        match self {
            Ended::Answered => "answered",
            Ended::Approved => "approved",
            Ended::NoAnswer => "no_answer",
            Ended::MaxSteps => "max_steps",
            Ended::MaxReflections => "max_reflections",
            Ended::MaxTokens => "max_tokens",
            Ended::MaxTime => "max_time",
            Ended::Failed(_) => "failed",
        }
    }
}
