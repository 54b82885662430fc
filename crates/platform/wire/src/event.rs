//! Events, tasks and what they are made of, as messages of `autoact.v1`, both ways, checked.

use std::collections::BTreeMap;
use std::time::SystemTime;

use autoact_trajectory::{
    Action, Artifact, Cut, Digest, Event, EventBody, FinishReason, Finished, Observation, Phase, ReleaseReason, Released, Shortened,
    Shortening, Started, Submitted, Task, Tenant, Thought, Unknown,
};

use crate::context::context_to_proto;
use crate::convert::known;
pub use crate::event_error::EventError;
use crate::v1::trajectory_event::Body;
use crate::{ConversionError, next_attempt, next_attempt_to_proto, v1};

/// The version of the event schema that we write, and the highest whose events we understand whole.
pub const EVENT_VERSION: u32 = 2;

impl From<FinishReason> for v1::FinishReason {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Approved => v1::FinishReason::Approved,
            FinishReason::NoAnswer => v1::FinishReason::NoAnswer,
            FinishReason::MaxSteps => v1::FinishReason::MaxSteps,
            FinishReason::MaxReflections => v1::FinishReason::MaxReflections,
            FinishReason::MaxTokens => v1::FinishReason::MaxTokens,
            FinishReason::MaxTime => v1::FinishReason::MaxTime,
            FinishReason::Cancelled => v1::FinishReason::Cancelled,
            FinishReason::Failed => v1::FinishReason::Failed,
            FinishReason::Other => v1::FinishReason::Unspecified,
        }
    }
}

/// A reason of a later schema is [`FinishReason::Other`].
impl From<v1::FinishReason> for FinishReason {
    fn from(reason: v1::FinishReason) -> Self {
        match reason {
            v1::FinishReason::Approved => FinishReason::Approved,
            v1::FinishReason::NoAnswer => FinishReason::NoAnswer,
            v1::FinishReason::MaxSteps => FinishReason::MaxSteps,
            v1::FinishReason::MaxReflections => FinishReason::MaxReflections,
            v1::FinishReason::MaxTokens => FinishReason::MaxTokens,
            v1::FinishReason::MaxTime => FinishReason::MaxTime,
            v1::FinishReason::Cancelled => FinishReason::Cancelled,
            v1::FinishReason::Failed => FinishReason::Failed,
            v1::FinishReason::Unspecified => FinishReason::Other,
        }
    }
}

impl From<ReleaseReason> for v1::ReleaseReason {
    fn from(reason: ReleaseReason) -> Self {
        match reason {
            ReleaseReason::Draining => v1::ReleaseReason::Draining,
            ReleaseReason::Waiting => v1::ReleaseReason::Waiting,
            ReleaseReason::Other => v1::ReleaseReason::Unspecified,
        }
    }
}

impl From<v1::ReleaseReason> for ReleaseReason {
    fn from(reason: v1::ReleaseReason) -> Self {
        match reason {
            v1::ReleaseReason::Draining => ReleaseReason::Draining,
            v1::ReleaseReason::Waiting => ReleaseReason::Waiting,
            v1::ReleaseReason::Unspecified => ReleaseReason::Other,
        }
    }
}

impl From<&Artifact> for v1::Artifact {
    fn from(artifact: &Artifact) -> Self {
        v1::Artifact {
            kind: artifact.kind.clone(),
            media_type: artifact.media_type.clone(),
            name: artifact.name.clone(),
            object: artifact.object.clone(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.map(|digest| digest.to_string()).unwrap_or_default(),
            text: artifact.text.clone(),
        }
    }
}

impl From<v1::Artifact> for Artifact {
    fn from(artifact: v1::Artifact) -> Self {
        Artifact {
            sha256: digest_from_hex(&artifact.sha256),
            kind: artifact.kind,
            media_type: artifact.media_type,
            name: artifact.name,
            object: artifact.object,
            bytes: artifact.bytes,
            text: artifact.text,
        }
    }
}

/// The body of an event; `None` for one that this program does not know.
fn body_to_proto(body: &EventBody) -> Option<Body> {
    Some(match body {
        EventBody::Submitted(submitted) => Body::Submitted(v1::Submitted {
            question: submitted.question.clone(),
            tools: submitted.tools.iter().map(Into::into).collect(),
            tool_choice: submitted.tool_choice.as_ref().map(Into::into),
            limits: Some(submitted.limits.into()),
            sampling: Some(submitted.sampling.into()),
            labels: submitted.labels.clone().into_iter().collect(),
            context: context_to_proto(&submitted.context),
            conversation_id: submitted.conversation.clone(),
            trace_id: submitted.trace_id.clone(),
            min_confidence: submitted.min_confidence,
            next_attempt: next_attempt_to_proto(submitted.next_attempt),
            approval: v1::ApprovalPolicy::from(submitted.approval) as i32,
            origin: submitted.origin.as_deref().map(Into::into),
            by: submitted.by.clone(),
        }),
        EventBody::Started(started) => Body::Started(v1::Started { gateway: started.gateway.clone(), attempt: started.attempt }),
        EventBody::Thought(thought) => Body::Thought(v1::Thought { thought: thought.thought.clone(), tool: thought.tool.clone() }),
        EventBody::Action(action) => Body::Action(v1::ActionReady { tool: action.tool.clone(), params: action.params.clone() }),
        EventBody::Observation(observation) => Body::Observation(v1::Observation {
            text: observation.text.clone(),
            is_error: observation.is_error,
            repeated: observation.repeated,
            truncated: observation.truncated,
            sources: observation.sources.iter().map(Into::into).collect(),
            untrusted: observation.untrusted,
        }),
        EventBody::Reflection(reflection) => Body::Reflection(reflection.into()),
        EventBody::Finished(finished) => Body::Finished(v1::Finished {
            answer: finished.answer.clone(),
            approved: finished.approved,
            reason: v1::FinishReason::from(finished.reason) as i32,
            detail: finished.detail.clone(),
            citations: finished.citations.iter().map(Into::into).collect(),
            open_effect: finished.open_effect,
            by: finished.by.clone(),
        }),
        EventBody::Released(released) => Body::Released(v1::Released {
            reason: v1::ReleaseReason::from(released.reason) as i32,
            detail: released.detail.clone(),
            may_have_run: released.may_have_run,
        }),
        EventBody::Shortened(shortened) => Body::Shortened(shortened_to_proto(shortened)),
        EventBody::Recalled(recalled) => Body::Recalled(recalled.into()),
        EventBody::Paused(paused) => Body::Paused(paused.into()),
        EventBody::Resumed(resumed) => Body::Resumed(resumed.into()),
        EventBody::InputRequested(asked) => Body::InputRequested(asked.into()),
        EventBody::InputGiven(given) => Body::InputGiven(given.into()),
        EventBody::Unknown(_) => return None,
    })
}

fn shortened_to_proto(shortened: &Shortened) -> v1::Shortened {
    let Shortened { shortening: Shortening { left_out, observations, thoughts }, tokens, limit } = shortened;
    let cuts = |cuts: &BTreeMap<u32, Cut>| {
        cuts.iter().map(|(step, cut)| v1::Cut { step: *step, kept_bytes: cut.kept, sentences: cut.sentences }).collect()
    };
    v1::Shortened { left_out: *left_out, observations: cuts(observations), thoughts: cuts(thoughts), tokens: *tokens, limit: *limit }
}

fn shortened_from_proto(shortened: &v1::Shortened) -> Shortened {
    let v1::Shortened { left_out, observations, thoughts, tokens, limit } = shortened;
    let cuts = |cuts: &[v1::Cut]| cuts.iter().map(|cut| (cut.step, Cut { kept: cut.kept_bytes, sentences: cut.sentences })).collect();
    let shortening = Shortening { left_out: *left_out, observations: cuts(observations), thoughts: cuts(thoughts) };
    Shortened { shortening, tokens: *tokens, limit: *limit }
}

impl TryFrom<Body> for EventBody {
    type Error = EventError;

    fn try_from(body: Body) -> Result<Self, Self::Error> {
        Ok(match body {
            Body::Submitted(submitted) => EventBody::Submitted(Submitted {
                question: submitted.question,
                tools: submitted.tools.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
                tool_choice: submitted.tool_choice.map(Into::into),
                limits: submitted.limits.ok_or(ConversionError::MissingField("limits"))?.try_into()?,
                sampling: submitted.sampling.unwrap_or_default().try_into()?,
                labels: submitted.labels.into_iter().collect(),
                conversation: submitted.conversation_id,
                request: None,
                context: Box::new(
                    submitted.context.map(TryInto::try_into).transpose().map_err(ConversionError::Context)?.unwrap_or_default(),
                ),
                trace_id: submitted.trace_id,
                min_confidence: known(submitted.min_confidence),
                next_attempt: next_attempt(submitted.next_attempt),
                approval: v1::ApprovalPolicy::try_from(submitted.approval).unwrap_or_default().into(),
                origin: submitted.origin.map(|origin| origin.try_into().map(Box::new)).transpose()?,
                by: submitted.by,
            }),
            Body::Started(started) => EventBody::Started(Started { gateway: started.gateway, attempt: started.attempt }),
            Body::Thought(thought) => EventBody::Thought(Thought { thought: thought.thought, tool: thought.tool }),
            Body::Action(action) => EventBody::Action(Action { tool: action.tool, params: action.params }),
            Body::Observation(observation) => EventBody::Observation(Observation {
                text: observation.text,
                is_error: observation.is_error,
                repeated: observation.repeated,
                truncated: observation.truncated,
                sources: observation.sources.into_iter().map(Into::into).collect(),
                untrusted: observation.untrusted,
            }),
            Body::Reflection(reflection) => EventBody::Reflection(reflection.try_into()?),
            Body::Finished(finished) => {
                let reason = finished.reason().into();
                let v1::Finished { answer, approved, reason: _, detail, citations, open_effect, by } = finished;
                let citations = citations.into_iter().map(Into::into).collect();
                EventBody::Finished(Finished { answer, approved, reason, detail, citations, open_effect, by })
            }
            Body::Released(released) => {
                let reason = released.reason().into();
                EventBody::Released(Released { reason, detail: released.detail, may_have_run: released.may_have_run })
            }
            Body::Shortened(shortened) => EventBody::Shortened(shortened_from_proto(&shortened)),
            Body::Recalled(recalled) => EventBody::Recalled(recalled.into()),
            Body::Paused(paused) => EventBody::Paused(paused.into()),
            Body::Resumed(resumed) => EventBody::Resumed(resumed.into()),
            Body::InputRequested(asked) => EventBody::InputRequested(asked.into()),
            Body::InputGiven(given) => EventBody::InputGiven(given.into()),
        })
    }
}

impl From<&Event> for v1::TrajectoryEvent {
    fn from(event: &Event) -> Self {
        let version = match &event.body {
            EventBody::Unknown(unknown) => unknown.version,
            _ => EVENT_VERSION,
        };
        v1::TrajectoryEvent {
            version,
            tenant: event.tenant.to_string(),
            task_id: event.task_id.to_string(),
            index: event.index,
            time: Some(event.time.into()),
            writer: event.writer.clone(),
            epoch: event.epoch,
            call_id: event.call.map(|call| call.to_string()).unwrap_or_default(),
            usage: event.usage.as_ref().map(Into::into),
            timing: event.timing.map(Into::into),
            artifacts: event.artifacts.iter().map(Into::into).collect(),
            sequence: event.sequence,
            body: body_to_proto(&event.body),
        }
    }
}

/// Also how events of schema version 1 are read: they were stored as this message.
impl TryFrom<v1::TrajectoryEvent> for Event {
    type Error = EventError;

    fn try_from(event: v1::TrajectoryEvent) -> Result<Self, Self::Error> {
        let time = time_from_proto(event.time)?;
        if event.index == 0 {
            return Err(ConversionError::MissingField("index").into());
        }
        let tenant = if event.tenant.is_empty() { Tenant::default() } else { event.tenant.parse()? };
        Ok(Event {
            tenant,
            task_id: event.task_id.try_into()?,
            index: event.index,
            time,
            writer: event.writer,
            epoch: event.epoch,
            call: event.call_id.parse().ok(),
            previous: None,
            usage: event.usage.map(Into::into),
            timing: event.timing.map(Into::into),
            artifacts: event.artifacts.into_iter().map(Into::into).collect(),
            sequence: event.sequence,
            digest: None,
            body: match event.body {
                Some(body) => body.try_into()?,
                None => EventBody::Unknown(Unknown { version: event.version, needed: true }),
            },
        })
    }
}

fn digest_from_hex(text: &str) -> Option<Digest> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    Digest::from_slice(&bytes?)
}

/// A point in time that has to be there.
pub(crate) fn time_from_proto(time: Option<prost_types::Timestamp>) -> Result<SystemTime, ConversionError> {
    let time = time.ok_or(ConversionError::MissingField("time"))?;
    SystemTime::try_from(time).map_err(|error| ConversionError::UnknownValue { field: "time", value: error.to_string() })
}

impl From<&Task> for v1::Task {
    fn from(task: &Task) -> Self {
        let finished = task.finished();
        let state = match task.phase() {
            Phase::Finished => v1::TaskState::Finished,
            _ if task.is_paused() => v1::TaskState::Paused,
            _ if task.is_held() => v1::TaskState::InputRequired,
            _ if task.started_at().is_some() => v1::TaskState::Running,
            _ => v1::TaskState::Submitted,
        };
        v1::Task {
            task_id: task.id().to_string(),
            state: state as i32,
            question: task.trajectory().question.clone(),
            answer: finished.map_or_else(|| task.best_answer().to_owned(), |finished| finished.answer.clone()),
            approved: finished.is_some_and(|finished| finished.approved),
            reason: finished.map_or(v1::FinishReason::Unspecified, |finished| finished.reason.into()) as i32,
            detail: finished.map(|finished| finished.detail.clone()).unwrap_or_default(),
            turns: task.trajectory().turns.iter().map(Into::into).collect(),
            submitted_at: Some(task.submitted_at().into()),
            finished_at: task.finished_at().map(Into::into),
            last_sequence: task.last_sequence(),
            labels: task.labels().clone().into_iter().collect(),
            outcome: finished.map_or(v1::TaskOutcome::Unspecified, |finished| outcome(finished.reason)) as i32,
            tenant: task.key().tenant.to_string(),
            conversation_id: task.conversation().to_owned(),
            limits: Some((*task.limits()).into()),
            sampling: Some((*task.sampling()).into()),
            tools: task.trajectory().tools.iter().map(Into::into).collect(),
            tool_choice: task.tool_choice().map(Into::into),
            steps: task.steps(),
            prompt_tokens: task.prompt_tokens(),
            completion_tokens: task.completion_tokens(),
            attempts: task.attempt(),
            context: context_to_proto(task.context()),
            trace_id: task.trace_id().to_owned(),
            confidence: task.confidence(),
            min_confidence: task.min_confidence(),
            next_attempt: next_attempt_to_proto(task.next_attempt()),
            input_required: task.input_required().filter(|_| finished.is_none()).map(Into::into),
            open_effect: finished.and_then(|finished| finished.open_effect),
            approval: v1::ApprovalPolicy::from(task.approval()) as i32,
            origin: task.origin().map(Into::into),
            submitted_by: task.submitted_by().to_owned(),
            cancelled_by: finished.map(|finished| finished.by.clone()).unwrap_or_default(),
            citations: finished.map(|finished| finished.citations.iter().map(Into::into).collect()).unwrap_or_default(),
        }
    }
}

/// How a task with this reason ended.
pub fn outcome(reason: FinishReason) -> v1::TaskOutcome {
    match reason {
        FinishReason::Failed => v1::TaskOutcome::Failed,
        FinishReason::Cancelled => v1::TaskOutcome::Cancelled,
        FinishReason::NoAnswer => v1::TaskOutcome::NoAnswer,
        FinishReason::Approved
        | FinishReason::MaxSteps
        | FinishReason::MaxReflections
        | FinishReason::MaxTokens
        | FinishReason::MaxTime
        | FinishReason::Other => v1::TaskOutcome::Finished,
    }
}
