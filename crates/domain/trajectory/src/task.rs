//! A task: the fold of its events.
//!
//! Events come in through [`Task::check`] and [`Task::apply`] (in `check` and `apply`); everything
//! else reads. `lease` and `control` hold what the events say of a task's holders and of the persons
//! who steer it, `answer` what it has for an answer, `anew` what the agents are given of it, `next`
//! makes the next event.

mod anew;
mod answer;
mod apply;
mod check;
mod control;
mod lease;
mod next;
mod read;

use std::collections::BTreeMap;
use std::time::SystemTime;

use self::control::Control;
use self::lease::Lease;
pub use self::next::REPEATED_NOTE;
use crate::confidence::Likelihood;
use crate::control::Origin;
use crate::digest::Digest;
use crate::event::{Event, EventBody, Finished, Submitted};
use crate::fold_error::FoldError;
use crate::history::{Reflection, Step, Trajectory, Turn, Verdict};
use crate::limits::{Limits, Sampling};
use crate::next_attempt::NextAttempt;
use crate::shortening::Shortening;
use crate::tenant::TaskKey;
use crate::tool::ToolSpec;
use crate::tool_choice::ToolChoice;

/// Where a task stands: what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// For Plan-Agent.
    Planning,
    /// For Tool-Agent's parameters of the chosen tool.
    Parameterizing,
    /// For the tool's observation.
    Acting,
    /// For Reflect-Agent's verdict on an answer.
    Reflecting,
    /// Reflect-Agent said "right" of an answer, or of there being none: for the end.
    Approved,
    /// For nothing.
    Finished,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Phase::Planning => "planning",
            Phase::Parameterizing => "parameterizing",
            Phase::Acting => "acting",
            Phase::Reflecting => "reflecting",
            Phase::Approved => "approved",
            Phase::Finished => "finished",
        }
    }
}

/// A task as its events say it is. Made and changed by events alone, so that whoever reads the same
/// events has the same task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    key: TaskKey,
    trajectory: Trajectory,
    shortening: Shortening,
    limits: Limits,
    sampling: Sampling,
    labels: BTreeMap<String, String>,
    tool_choice: Option<ToolChoice>,
    conversation: String,
    /// What is remembered of the conversation was looked up.
    recalled: bool,
    request: Option<Digest>,
    trace_id: String,
    submitted_at: SystemTime,
    started_at: Option<SystemTime>,
    lease: Lease,
    control: Control,
    steps: u32,
    wrong: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    likelihood: Likelihood,
    min_confidence: Option<f64>,
    next_attempt: Option<NextAttempt>,
    /// The latest answer.
    answer: String,
    /// The judged answer with the highest confidence so far.
    surest: Option<(String, f64)>,
    /// The task whose history it goes on with.
    origin: Option<Box<Origin>>,
    /// Who submitted it.
    by: String,
    /// Copies of that task's events that have yet to come.
    to_copy: u32,
    finished: Option<(Finished, SystemTime)>,
    last_index: u64,
    last_sequence: u64,
    last_digest: Option<Digest>,
}

impl Task {
    /// The task that a `Submitted` event begins.
    pub fn begin(event: &Event) -> Result<Task, FoldError> {
        let EventBody::Submitted(submitted) = &event.body else {
            return Err(FoldError::NotSubmitted { found: event.body.name() });
        };
        if event.index != 1 {
            return Err(FoldError::Gap { expected: 1, found: event.index });
        }
        let Submitted {
            question,
            tools,
            tool_choice,
            limits,
            sampling,
            labels,
            conversation,
            request,
            context,
            trace_id,
            min_confidence,
            next_attempt,
            approval,
            origin,
            by,
        } = submitted.clone();
        Ok(Task {
            trajectory: Trajectory {
                task_id: event.task_id.to_string(),
                question,
                tools,
                left_out: 0,
                turns: Vec::new(),
                context: *context,
                recalled: Vec::new(),
            },
            shortening: Shortening::default(),
            key: event.key(),
            limits,
            sampling,
            labels,
            tool_choice,
            conversation,
            recalled: false,
            request,
            trace_id,
            submitted_at: event.time,
            started_at: None,
            lease: Lease::default(),
            control: Control::new(approval),
            steps: 0,
            wrong: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            likelihood: Likelihood::default(),
            min_confidence,
            next_attempt,
            answer: String::new(),
            surest: None,
            to_copy: origin.as_ref().map_or(0, |origin| origin.events),
            origin,
            by,
            finished: None,
            last_index: 1,
            last_sequence: event.sequence,
            last_digest: event.digest,
        })
    }

    /// The task that a whole trajectory folds to.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Task, FoldError> {
        let mut events = events.into_iter();
        let mut task = Task::begin(events.next().ok_or(FoldError::Empty)?)?;
        for event in events {
            task.apply(event)?;
        }
        Ok(task)
    }

    /// What the task waits for.
    pub fn phase(&self) -> Phase {
        if self.finished.is_some() {
            return Phase::Finished;
        }
        match self.trajectory.turns.last() {
            None => Phase::Planning,
            Some(Turn::Reflection(Reflection { verdict: Verdict::Right, .. })) => Phase::Approved,
            Some(Turn::Reflection(Reflection { verdict: Verdict::Wrong, .. })) => Phase::Planning,
            Some(Turn::Step(Step { params: None, .. })) => Phase::Parameterizing,
            Some(Turn::Step(Step { observation: Some(_), .. })) => Phase::Planning,
            Some(Turn::Step(step)) if self.is_terminal(&step.tool) => Phase::Reflecting,
            Some(Turn::Step(_)) => Phase::Acting,
        }
    }

    fn is_terminal(&self, tool: &str) -> bool {
        self.trajectory.tool(tool).is_some_and(ToolSpec::is_terminal)
    }
}
