//! Between events and the wire (`autoact.v1`), both ways, checked.

use std::time::SystemTime;

use autoact_proto::v1::trajectory_event::Body;
use autoact_proto::{ConversionError, v1};

use crate::convert::{duration_from_proto, duration_to_proto};
use crate::event::{EVENT_VERSION, Event, EventBody, EventError, FinishReason, Finished, Observation, Started, Submitted, Thought};
use crate::limits::Limits;
use crate::task::{Phase, Task};
use crate::usage::{Timing, Usage};

impl From<&Usage> for v1::Usage {
    fn from(usage: &Usage) -> Self {
        v1::Usage {
            queue: Some(duration_to_proto(usage.queue)),
            prefill: Some(duration_to_proto(usage.prefill)),
            decode: Some(duration_to_proto(usage.decode)),
            tool: Some(duration_to_proto(usage.tool)),
            total: Some(duration_to_proto(usage.total)),
            prompt_tokens: usage.prompt_tokens,
            cached_prompt_tokens: usage.cached_prompt_tokens,
            completion_tokens: usage.completion_tokens,
            model: usage.model.clone(),
            adapter: usage.adapter.clone(),
            adapter_digest: usage.adapter_digest.clone(),
        }
    }
}

impl From<v1::Usage> for Usage {
    fn from(usage: v1::Usage) -> Self {
        let time = |duration: Option<prost_types::Duration>| duration.map(duration_from_proto).unwrap_or_default();
        Usage {
            queue: time(usage.queue),
            prefill: time(usage.prefill),
            decode: time(usage.decode),
            tool: time(usage.tool),
            total: time(usage.total),
            prompt_tokens: usage.prompt_tokens,
            cached_prompt_tokens: usage.cached_prompt_tokens,
            completion_tokens: usage.completion_tokens,
            model: usage.model,
            adapter: usage.adapter,
            adapter_digest: usage.adapter_digest,
        }
    }
}

impl From<Timing> for v1::Timing {
    fn from(timing: Timing) -> Self {
        v1::Timing {
            own: Some(duration_to_proto(timing.own)),
            bus: Some(duration_to_proto(timing.bus)),
            retry: Some(duration_to_proto(timing.retry)),
        }
    }
}

impl From<v1::Timing> for Timing {
    fn from(timing: v1::Timing) -> Self {
        let time = |duration: Option<prost_types::Duration>| duration.map(duration_from_proto).unwrap_or_default();
        Timing { own: time(timing.own), bus: time(timing.bus), retry: time(timing.retry) }
    }
}

impl From<Limits> for v1::Limits {
    fn from(limits: Limits) -> Self {
        v1::Limits {
            max_steps: limits.max_steps,
            max_reflections: limits.max_reflections,
            max_tokens: limits.max_tokens,
            max_time: Some(duration_to_proto(limits.max_time)),
        }
    }
}

/// Stored limits are resolved: a bound of zero is an error here, see [`Limits::resolve`] for requests.
impl TryFrom<v1::Limits> for Limits {
    type Error = ConversionError;

    fn try_from(limits: v1::Limits) -> Result<Self, Self::Error> {
        let set = |value: u32, field| if value == 0 { Err(ConversionError::MissingField(field)) } else { Ok(value) };
        let time = limits.max_time.map(duration_from_proto).filter(|time| !time.is_zero());
        Ok(Limits {
            max_steps: set(limits.max_steps, "max_steps")?,
            max_reflections: set(limits.max_reflections, "max_reflections")?,
            max_tokens: set(limits.max_tokens, "max_tokens")?,
            max_time: time.ok_or(ConversionError::MissingField("max_time"))?,
        })
    }
}

impl From<FinishReason> for v1::FinishReason {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Approved => v1::FinishReason::Approved,
            FinishReason::MaxSteps => v1::FinishReason::MaxSteps,
            FinishReason::MaxReflections => v1::FinishReason::MaxReflections,
            FinishReason::MaxTokens => v1::FinishReason::MaxTokens,
            FinishReason::MaxTime => v1::FinishReason::MaxTime,
            FinishReason::Cancelled => v1::FinishReason::Cancelled,
            FinishReason::Failed => v1::FinishReason::Failed,
        }
    }
}

impl TryFrom<v1::FinishReason> for FinishReason {
    type Error = ConversionError;

    fn try_from(reason: v1::FinishReason) -> Result<Self, Self::Error> {
        Ok(match reason {
            v1::FinishReason::Approved => FinishReason::Approved,
            v1::FinishReason::MaxSteps => FinishReason::MaxSteps,
            v1::FinishReason::MaxReflections => FinishReason::MaxReflections,
            v1::FinishReason::MaxTokens => FinishReason::MaxTokens,
            v1::FinishReason::MaxTime => FinishReason::MaxTime,
            v1::FinishReason::Cancelled => FinishReason::Cancelled,
            v1::FinishReason::Failed => FinishReason::Failed,
            v1::FinishReason::Unspecified => return Err(ConversionError::MissingField("reason")),
        })
    }
}

impl From<&EventBody> for Body {
    fn from(body: &EventBody) -> Self {
        match body {
            EventBody::Submitted(submitted) => Body::Submitted(v1::Submitted {
                question: submitted.question.clone(),
                tools: submitted.tools.iter().map(Into::into).collect(),
                limits: Some(submitted.limits.into()),
                sampling: Some(submitted.sampling.into()),
                labels: submitted.labels.clone().into_iter().collect(),
            }),
            EventBody::Started(started) => Body::Started(v1::Started { gateway: started.gateway.clone(), attempt: started.attempt }),
            EventBody::Thought(thought) => Body::Thought(v1::Thought { thought: thought.thought.clone(), tool: thought.tool.clone() }),
            EventBody::Action(action) => Body::Action(v1::ActionReady { tool: action.tool.clone(), params: action.params.clone() }),
            EventBody::Observation(observation) => Body::Observation(v1::Observation {
                text: observation.text.clone(),
                is_error: observation.is_error,
                repeated: observation.repeated,
                truncated: observation.truncated,
            }),
            EventBody::Reflection(reflection) => Body::Reflection(reflection.into()),
            EventBody::Finished(finished) => Body::Finished(v1::Finished {
                answer: finished.answer.clone(),
                approved: finished.approved,
                reason: v1::FinishReason::from(finished.reason) as i32,
                detail: finished.detail.clone(),
            }),
        }
    }
}

impl TryFrom<Body> for EventBody {
    type Error = EventError;

    fn try_from(body: Body) -> Result<Self, Self::Error> {
        Ok(match body {
            Body::Submitted(submitted) => EventBody::Submitted(Submitted {
                question: submitted.question,
                tools: submitted.tools.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
                limits: submitted.limits.ok_or(ConversionError::MissingField("limits"))?.try_into()?,
                sampling: submitted.sampling.unwrap_or_default().try_into()?,
                labels: submitted.labels.into_iter().collect(),
            }),
            Body::Started(started) => EventBody::Started(Started { gateway: started.gateway, attempt: started.attempt }),
            Body::Thought(thought) => EventBody::Thought(Thought { thought: thought.thought, tool: thought.tool }),
            Body::Action(action) => EventBody::Action(crate::Action { tool: action.tool, params: action.params }),
            Body::Observation(observation) => EventBody::Observation(Observation {
                text: observation.text,
                is_error: observation.is_error,
                repeated: observation.repeated,
                truncated: observation.truncated,
            }),
            Body::Reflection(reflection) => EventBody::Reflection(reflection.try_into()?),
            Body::Finished(finished) => {
                let reason = v1::FinishReason::try_from(finished.reason)
                    .map_err(|unknown| ConversionError::UnknownValue { field: "reason", value: unknown.0.to_string() })?;
                EventBody::Finished(Finished {
                    answer: finished.answer,
                    approved: finished.approved,
                    reason: reason.try_into()?,
                    detail: finished.detail,
                })
            }
        })
    }
}

impl From<&Event> for v1::TrajectoryEvent {
    fn from(event: &Event) -> Self {
        v1::TrajectoryEvent {
            version: EVENT_VERSION,
            task_id: event.task_id.to_string(),
            index: event.index,
            time: Some(event.time.into()),
            writer: event.writer.clone(),
            usage: event.usage.as_ref().map(Into::into),
            timing: event.timing.map(Into::into),
            sequence: event.sequence,
            body: Some((&event.body).into()),
        }
    }
}

impl TryFrom<v1::TrajectoryEvent> for Event {
    type Error = EventError;

    fn try_from(event: v1::TrajectoryEvent) -> Result<Self, Self::Error> {
        // before the body: a later version may mean the same fields differently
        match event.version {
            0 => return Err(ConversionError::MissingField("version").into()),
            1..=EVENT_VERSION => {}
            found => return Err(EventError::Version { found }),
        }
        let time = event.time.ok_or(ConversionError::MissingField("time"))?;
        let time = SystemTime::try_from(time).map_err(|error| ConversionError::UnknownValue { field: "time", value: error.to_string() })?;
        if event.index == 0 {
            return Err(ConversionError::MissingField("index").into());
        }
        Ok(Event {
            task_id: event.task_id.try_into()?,
            index: event.index,
            time,
            writer: event.writer,
            usage: event.usage.map(Into::into),
            timing: event.timing.map(Into::into),
            sequence: event.sequence,
            body: event.body.ok_or(EventError::UnknownBody)?.try_into()?,
        })
    }
}

impl From<&Task> for v1::Task {
    fn from(task: &Task) -> Self {
        let finished = task.finished();
        let state = match task.phase() {
            Phase::Finished => v1::TaskState::Finished,
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
        }
    }
}
