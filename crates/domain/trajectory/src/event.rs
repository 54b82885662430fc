//! The events of a task, as they lie on the bus.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::artifact::Artifact;
use crate::call::CallId;
use crate::citation::Citation;
use crate::context::TaskContext;
use crate::control::{ApprovalPolicy, InputGiven, InputRequested, Origin, Paused, Resumed};
use crate::digest::Digest;
use crate::history::{Action, Reflection};
use crate::id::TaskId;
use crate::limits::{Limits, Sampling};
use crate::next_attempt::NextAttempt;
use crate::recalled::Recalled;
use crate::shortening::Shortening;
use crate::source::Source;
use crate::tenant::{TaskKey, Tenant};
use crate::tool::ToolSpec;
use crate::tool_choice::ToolChoice;
use crate::usage::{Timing, Usage};

/// One event of a task's trajectory.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Whose task it is.
    pub tenant: Tenant,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// 1, 2, 3 … within the task, without gaps.
    pub index: u64,
    /// When it was written, by the writer's clock.
    pub time: SystemTime,
    /// The gateway instance that appended it.
    pub writer: String,
    /// Which holder of the lease wrote it: 1 for the first. 0: the writer held none, or the schema
    /// had no epochs.
    pub epoch: u64,
    /// The call that led to it, if one did.
    pub call: Option<CallId>,
    /// SHA-256 of the stored bytes of the event before. `None` in the first event, and in those of
    /// schema version 1.
    pub previous: Option<Digest>,
    /// Of the call that produced it, if one did.
    pub usage: Option<Usage>,
    /// Where the time since the event before went, beside that call.
    pub timing: Option<Timing>,
    /// What came with it for people.
    pub artifacts: Vec<Artifact>,
    /// Position on the bus; 0 until a reader or an acknowledged append fills it in.
    pub sequence: u64,
    /// SHA-256 of its own stored bytes; `None` until it is stored.
    pub digest: Option<Digest>,
    /// What happened.
    pub body: EventBody,
}

impl Event {
    /// An event that nobody has stored yet, without what only some events have.
    pub fn new(task: &TaskKey, index: u64, time: SystemTime, writer: impl Into<String>, body: EventBody) -> Event {
        Event {
            tenant: task.tenant.clone(),
            task_id: task.id.clone(),
            index,
            time,
            writer: writer.into(),
            epoch: 0,
            call: None,
            previous: None,
            usage: None,
            timing: None,
            artifacts: Vec::new(),
            sequence: 0,
            digest: None,
            body,
        }
    }

    /// The task's name.
    pub fn key(&self) -> TaskKey {
        TaskKey::new(self.tenant.clone(), self.task_id.clone())
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// A task was accepted: the first event of every trajectory.
    Submitted(Submitted),
    /// A gateway took the task up, or took it over.
    Started(Started),
    /// Plan-Agent spoke.
    Thought(Thought),
    /// Tool-Agent spoke: the action is complete. Appended before the tool runs.
    Action(Action),
    /// The tool ran.
    Observation(Observation),
    /// Reflect-Agent spoke.
    Reflection(Reflection),
    /// The task ended: the last event of every trajectory.
    Finished(Finished),
    /// The holder of the lease gave the task back on purpose.
    Released(Released),
    /// The agents are given less of the history from here on.
    Shortened(Shortened),
    /// What is remembered of the conversation was looked up, once, before the first plan.
    Recalled(Recalled),
    /// A client stopped the task for a while.
    Paused(Paused),
    /// A client lets it go on.
    Resumed(Resumed),
    /// The task waits for a person.
    InputRequested(InputRequested),
    /// What the person said.
    InputGiven(InputGiven),
    /// Something that this program does not know, written by a later one.
    Unknown(Unknown),
}

impl EventBody {
    /// The event's name, for messages, spans and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            EventBody::Submitted(_) => "submitted",
            EventBody::Started(_) => "started",
            EventBody::Thought(_) => "thought",
            EventBody::Action(_) => "action",
            EventBody::Observation(_) => "observation",
            EventBody::Reflection(_) => "reflection",
            EventBody::Finished(_) => "finished",
            EventBody::Released(_) => "released",
            EventBody::Shortened(_) => "shortened",
            EventBody::Recalled(_) => "recalled",
            EventBody::Paused(_) => "paused",
            EventBody::Resumed(_) => "resumed",
            EventBody::InputRequested(_) => "input_requested",
            EventBody::InputGiven(_) => "input_given",
            EventBody::Unknown(_) => "unknown",
        }
    }
}

/// A task was accepted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Submitted {
    /// What was asked.
    pub question: String,
    /// T_s
    pub tools: Vec<ToolSpec>,
    /// How those were chosen that not every task has. `None`: there was nothing to choose.
    pub tool_choice: Option<ToolChoice>,
    /// Every bound with its value.
    pub limits: Limits,
    /// How the models decode.
    pub sampling: Sampling,
    /// The client's own notes.
    pub labels: BTreeMap<String, String>,
    /// The conversation it belongs to; empty: none.
    pub conversation: String,
    /// SHA-256 of the whole request. `None` before schema version 2.
    pub request: Option<Digest>,
    /// What the client says beside the question. Boxed: other events are small.
    pub context: Box<TaskContext>,
    /// The trace that the request came in: 32 hexadecimal digits (W3C trace context). Empty: none.
    pub trace_id: String,
    /// The confidence that an approval needs, between 0 and 1. `None`: what the adapters'
    /// calibration says.
    pub min_confidence: Option<f64>,
    /// What the agents are given after a judgement "wrong". `None`: what the adapters' calibration
    /// says.
    pub next_attempt: Option<NextAttempt>,
    /// Which actions wait for a person's approval.
    pub approval: ApprovalPolicy,
    /// The task whose history it goes on with. Boxed: few tasks have one.
    pub origin: Option<Box<Origin>>,
    /// The caller's name. Empty: it is not known.
    pub by: String,
}

/// A gateway holds the lease now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The gateway instance.
    pub gateway: String,
    /// How often the task has been taken up, this time included.
    pub attempt: u32,
}

/// The holder of the lease gave the task back on purpose: the next [`Started`] is no sign of a
/// crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// Why.
    pub reason: ReleaseReason,
    /// For people: who is away.
    pub detail: String,
    /// The open action may have been run.
    pub may_have_run: bool,
}

/// A prompt was too long for a model's context: the agents are given less of the history from here
/// on. The history itself stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortened {
    /// All that is left out now, earlier shortenings included.
    pub shortening: Shortening,
    /// Tokens of the prompt that was too long.
    pub tokens: u32,
    /// The most that leave room for a reply.
    pub limit: u32,
}

/// Why a task was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseReason {
    /// The gateway stops; another goes on.
    Draining,
    /// A service that the task needs is away or busy; the task waits for it until its own time is
    /// up.
    Waiting,
    /// A reason that this program does not know.
    Other,
}

impl ReleaseReason {
    /// The reason's name for metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ReleaseReason::Draining => "draining",
            ReleaseReason::Waiting => "waiting",
            ReleaseReason::Other => "other",
        }
    }
}

/// A body or an envelope that this program cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// The schema version it was written in.
    pub version: u32,
    /// Whether the task can only go on with a program that knows it; otherwise it is passed over.
    pub needed: bool,
}

/// (τ_t, α^m_t)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thought {
    /// τ
    pub thought: String,
    /// α^m: one of the selected tools.
    pub tool: String,
}

/// o_t
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// What the tool returned.
    pub text: String,
    /// The tool failed; the text says how.
    pub is_error: bool,
    /// The same action with the same parameters as the step before.
    pub repeated: bool,
    /// Cut to the tool's bound.
    pub truncated: bool,
    /// The documents that it shows. No agent reads them.
    pub sources: Vec<Source>,
    /// The text is what a tool returned: anybody may have written it.
    pub untrusted: bool,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The best answer so far when not approved; may be empty.
    pub answer: String,
    /// Reflect-Agent said "right" of an answer.
    pub approved: bool,
    /// Why the task ended.
    pub reason: FinishReason,
    /// For people: which bound, which error, what is missing.
    pub detail: String,
    /// The passages that the answer rests on.
    pub citations: Vec<Citation>,
    /// The step whose side effect may have happened without anybody having read its outcome.
    pub open_effect: Option<u32>,
    /// The name of who cancelled it; empty if nobody did.
    pub by: String,
}

/// Why a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FinishReason {
    /// Reflect-Agent said "right" of an answer.
    Approved,
    /// The group said that there is no answer, and Reflect-Agent said "right" of that: the detail
    /// says what is missing. Not approved, since there is nothing to approve.
    NoAnswer,
    /// The bound on planning loops.
    MaxSteps,
    /// The bound on verdicts "wrong".
    MaxReflections,
    /// The bound on completion tokens.
    MaxTokens,
    /// The bound on time.
    MaxTime,
    /// A client ended it.
    Cancelled,
    /// An agent or a gateway could not go on; the detail says which.
    Failed,
    /// A reason that this program does not know.
    Other,
}

impl FinishReason {
    /// The reason's name for metrics and spans.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Approved => "approved",
            FinishReason::NoAnswer => "no_answer",
            FinishReason::MaxSteps => "max_steps",
            FinishReason::MaxReflections => "max_reflections",
            FinishReason::MaxTokens => "max_tokens",
            FinishReason::MaxTime => "max_time",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Failed => "failed",
            FinishReason::Other => "other",
        }
    }
}
