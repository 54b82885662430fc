//! The events of a task, as they lie on the bus.

use std::collections::BTreeMap;
use std::time::SystemTime;

use autoact_proto::{ConversionError, v1};
use prost::Message;

use crate::history::{Action, Reflection};
use crate::id::{InvalidTaskId, TaskId};
use crate::limits::{InvalidSampling, Limits, Sampling};
use crate::tool::ToolSpec;
use crate::usage::{Timing, Usage};

/// The version of the event schema that we write. Readers accept every version up to theirs.
pub const EVENT_VERSION: u32 = 1;

/// One event of a task's trajectory.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The task it belongs to.
    pub task_id: TaskId,
    /// 1, 2, 3 … within the task, without gaps.
    pub index: u64,
    /// When it was written, by the writer's clock.
    pub time: SystemTime,
    /// The gateway instance that appended it.
    pub writer: String,
    /// Of the call that produced it, if one did.
    pub usage: Option<Usage>,
    /// Where the time since the event before went, beside that call.
    pub timing: Option<Timing>,
    /// Position on the bus; 0 until a reader or an acknowledged append fills it in.
    pub sequence: u64,
    /// What happened.
    pub body: EventBody,
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
    /// Every bound with its value.
    pub limits: Limits,
    /// How the models decode.
    pub sampling: Sampling,
    /// The client's own notes.
    pub labels: BTreeMap<String, String>,
}

/// A gateway holds the lease now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The gateway instance.
    pub gateway: String,
    /// 1 for the first delivery.
    pub attempt: u32,
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
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The best answer so far when not approved; may be empty.
    pub answer: String,
    /// Reflect-Agent said "right".
    pub approved: bool,
    /// Why the task ended.
    pub reason: FinishReason,
    /// For people: which bound, which error.
    pub detail: String,
}

/// Why a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FinishReason {
    /// Reflect-Agent said "right".
    Approved,
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
}

impl FinishReason {
    /// The reason's name for metrics and spans.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Approved => "approved",
            FinishReason::MaxSteps => "max_steps",
            FinishReason::MaxReflections => "max_reflections",
            FinishReason::MaxTokens => "max_tokens",
            FinishReason::MaxTime => "max_time",
            FinishReason::Cancelled => "cancelled",
            FinishReason::Failed => "failed",
        }
    }
}

/// Bytes or a message that are not an event we can read.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Not protobuf of our schema.
    #[error("not an event of `autoact.v1`")]
    Malformed(#[source] prost::DecodeError),
    /// Written by a later autoact.
    #[error("the event has version `{found}`, this program reads versions 1 to `{EVENT_VERSION}`; update it")]
    Version {
        /// The event's version.
        found: u32,
    },
    /// No body, or one that this program does not know.
    #[error("the event has no body that this program knows")]
    UnknownBody,
    /// A field is absent or out of range.
    #[error("the event is not valid")]
    Field(#[from] ConversionError),
    /// A task id that cannot be one.
    #[error("the event's task id is not valid")]
    TaskId(#[from] InvalidTaskId),
    /// A sampling parameter out of range.
    #[error("the event's sampling is not valid")]
    Sampling(#[from] InvalidSampling),
}

impl Event {
    /// The bytes stored on the bus. The sequence is not stored: the bus gives it.
    pub fn encode(&self) -> Vec<u8> {
        let mut event = v1::TrajectoryEvent::from(self);
        event.sequence = 0;
        event.encode_to_vec()
    }

    /// The event stored as `bytes` at `sequence`.
    pub fn decode(bytes: &[u8], sequence: u64) -> Result<Event, EventError> {
        let mut event = v1::TrajectoryEvent::decode(bytes).map_err(EventError::Malformed)?;
        event.sequence = sequence;
        event.try_into()
    }
}
