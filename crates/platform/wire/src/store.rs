//! Events as they are stored on the bus (`autoact.store.v2`, and `autoact.v1.TrajectoryEvent`
//! before it), and the records of the index.
//!
//! Reading is tolerant. An event that was written by a later program still has a place in its task:
//! [`EventBody::Unknown`] says whether the task can go on without it. Only bytes that are no event
//! at all are an error.

use std::collections::BTreeMap;

use autoact_trajectory::{
    Action, Artifact, Cut, Digest, Event, EventBody, FinishReason, Finished, Observation, Reflection, ReleaseReason, Released, Shortened,
    Shortening, Started, Submitted, Tenant, Thought, Unknown, Verdict,
};
use prost::Message;

use crate::context::{context_from_store, stored_context};
use crate::control;
use crate::convert::known;
pub use crate::digest::digest;
pub use crate::event::EVENT_VERSION;
use crate::event::time_from_proto;
use crate::event_error::EventError;
pub use crate::index_record::{About, IndexEntry, IndexMark, IndexRecord, Mark, PurgeReason};
use crate::specs::{ToolRef, ToolSpecs, refs_to_message, tools_from_message};
use crate::store_v2 as v2;
use crate::store_v2::event::Body;
use crate::{ConversionError, v1};

/// The least version whose readers understand what we write.
const MIN_READER: u32 = 2;

/// The largest stored event. Its parts are bounded so that none comes near it
/// ([`autoact_trajectory::TooLong`]).
pub const MAX_EVENT_BYTES: usize = 64 * 1024;

/// An event that is larger than may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event `{event}` has {bytes} bytes; at most {MAX_EVENT_BYTES} are stored")]
pub struct EventTooLarge {
    /// What kind of event it is.
    pub event: &'static str,
    /// Its size.
    pub bytes: usize,
}

/// The bytes that are stored. Sequence and digest are not: the bus and the bytes give them.
///
/// # Errors
/// They are more than [`MAX_EVENT_BYTES`].
pub fn encode(event: &Event) -> Result<Vec<u8>, EventTooLarge> {
    let bytes = to_message(event).encode_to_vec();
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(EventTooLarge { event: event.body.name(), bytes: bytes.len() });
    }
    Ok(bytes)
}

/// The message that is stored.
fn to_message(event: &Event) -> v2::Event {
    v2::Event {
        version: EVENT_VERSION,
        min_reader: MIN_READER,
        tenant: event.tenant.to_string(),
        task_id: event.task_id.to_string(),
        index: event.index,
        time: Some(event.time.into()),
        writer: event.writer.clone(),
        epoch: event.epoch,
        call_id: event.call.map(|call| call.to_string()).unwrap_or_default(),
        previous: event.previous.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default(),
        usage: event.usage.as_ref().map(Into::into),
        timing: event.timing.map(Into::into),
        // an empty box changes no prompt: whoever does not know the body can go on
        ignorable: matches!(&event.body, EventBody::Recalled(recalled) if recalled.items.is_empty()),
        artifacts: event.artifacts.iter().map(artifact_to_message).collect(),
        body: body_to_message(&event.body),
    }
}

/// The event that is stored as `bytes` at `sequence`. Version 1 did not store the tenant: it is
/// `tenant`.
///
/// # Errors
/// The bytes are no event, a field is out of range, or `specs` lacks a tool that the event names.
pub fn decode(tenant: &Tenant, bytes: &[u8], sequence: u64, specs: &dyn ToolSpecs) -> Result<Event, EventError> {
    decode_with(tenant, bytes, sequence, Some(specs))
}

/// The same without the tools of a `Submitted`: enough for a line in a list, not for a task that
/// goes on.
///
/// # Errors
/// The bytes are no event, or a field is out of range.
pub fn decode_without_tools(tenant: &Tenant, bytes: &[u8], sequence: u64) -> Result<Event, EventError> {
    decode_with(tenant, bytes, sequence, None)
}

fn decode_with(tenant: &Tenant, bytes: &[u8], sequence: u64, specs: Option<&dyn ToolSpecs>) -> Result<Event, EventError> {
    let mut event = match Version::decode(bytes).map_err(EventError::Malformed)?.version {
        0 => return Err(ConversionError::MissingField("version").into()),
        1 => {
            let event = v1::TrajectoryEvent::decode(bytes).map_err(EventError::Malformed)?;
            Event { tenant: tenant.clone(), ..event.try_into()? }
        }
        _ => from_message(v2::Event::decode(bytes).map_err(EventError::Malformed)?, specs)?,
    };
    event.sequence = sequence;
    event.digest = Some(digest(bytes));
    Ok(event)
}

/// The schema version of the program that wrote an event; 0 if the bytes do not say.
pub fn version(bytes: &[u8]) -> u32 {
    Version::decode(bytes).map_or(0, |stored| stored.version)
}

/// The tools that a stored event names by digest; none if it is no `Submitted`.
///
/// # Errors
/// The bytes are no event.
pub fn named_tools(bytes: &[u8]) -> Result<Vec<ToolRef>, EventError> {
    let event = v2::Event::decode(bytes).map_err(EventError::Malformed)?;
    let Some(Body::Submitted(submitted)) = event.body else { return Ok(Vec::new()) };
    let named = |tool: v2::ToolRef| Digest::from_slice(&tool.sha256).map(|digest| ToolRef { name: tool.name, digest });
    Ok(submitted.tool_refs.into_iter().filter_map(named).collect())
}

/// The one field that all versions of the schema share.
#[derive(Clone, PartialEq, Message)]
struct Version {
    #[prost(uint32, tag = "1")]
    version: u32,
}

fn from_message(event: v2::Event, specs: Option<&dyn ToolSpecs>) -> Result<Event, EventError> {
    if event.index == 0 {
        return Err(ConversionError::MissingField("index").into());
    }
    let tenant: Tenant = event.tenant.parse()?;
    let readable = event.min_reader <= EVENT_VERSION;
    let body = match event.body {
        Some(body) if readable => body_from_message(&tenant, body, specs)?,
        _ => EventBody::Unknown(Unknown { version: event.version, needed: !(event.ignorable && readable) }),
    };
    Ok(Event {
        tenant,
        task_id: event.task_id.try_into()?,
        index: event.index,
        time: time_from_proto(event.time)?,
        writer: event.writer,
        epoch: event.epoch,
        // a call of a kind that this program does not know still led to the event
        call: event.call_id.parse().ok(),
        previous: Digest::from_slice(&event.previous),
        usage: event.usage.map(Into::into),
        timing: event.timing.map(Into::into),
        artifacts: event.artifacts.into_iter().map(artifact_from_message).collect(),
        sequence: 0,
        digest: None,
        body,
    })
}

fn body_to_message(body: &EventBody) -> Option<Body> {
    Some(match body {
        EventBody::Submitted(submitted) => Body::Submitted(v2::Submitted {
            question: submitted.question.clone(),
            tools: Vec::new(),
            tool_refs: refs_to_message(submitted),
            tool_choice: submitted.tool_choice.as_ref().map(Into::into),
            limits: Some(submitted.limits.into()),
            sampling: Some(submitted.sampling.into()),
            labels: submitted.labels.clone().into_iter().collect(),
            conversation: submitted.conversation.clone(),
            request: submitted.request.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default(),
            context: stored_context(&submitted.context),
            trace_id: submitted.trace_id.clone(),
            min_confidence: submitted.min_confidence,
            next_attempt: control::next_attempt_to_proto(submitted.next_attempt),
            approval: control::stored_policy(submitted.approval) as i32,
            origin: submitted.origin.as_deref().map(Into::into),
            by: submitted.by.clone(),
        }),
        EventBody::Started(started) => Body::Started(v2::Started { gateway: started.gateway.clone(), attempt: started.attempt }),
        EventBody::Thought(thought) => Body::Thought(v2::Thought { thought: thought.thought.clone(), tool: thought.tool.clone() }),
        EventBody::Action(action) => Body::Action(v2::ActionReady { tool: action.tool.clone(), params: action.params.clone() }),
        EventBody::Observation(observation) => Body::Observation(observation_to_message(observation)),
        EventBody::Reflection(reflection) => {
            let verdict = match reflection.verdict {
                Verdict::Right => v2::Verdict::Right,
                Verdict::Wrong => v2::Verdict::Wrong,
            };
            let Reflection { thought, verdict: _, log_odds, confidence, threshold, next_attempt } = reflection.clone();
            let next_attempt = control::next_attempt_to_proto(Some(next_attempt).filter(|next| !next.continues()));
            Body::Reflection(v2::Reflection { thought, verdict: verdict as i32, log_odds, confidence, threshold, next_attempt })
        }
        EventBody::Finished(finished) => Body::Finished(v2::Finished {
            answer: finished.answer.clone(),
            approved: finished.approved,
            // the two enumerations have the same numbers
            reason: v1::FinishReason::from(finished.reason) as i32,
            detail: finished.detail.clone(),
            citations: finished.citations.iter().map(Into::into).collect(),
            open_effect: finished.open_effect,
            by: finished.by.clone(),
        }),
        EventBody::Released(released) => Body::Released(v2::Released {
            reason: v1::ReleaseReason::from(released.reason) as i32,
            detail: released.detail.clone(),
            may_have_run: released.may_have_run,
        }),
        EventBody::Shortened(shortened) => Body::Shortened(shortened_to_message(shortened)),
        EventBody::Recalled(recalled) => Body::Recalled(recalled.into()),
        EventBody::Paused(paused) => Body::Paused(paused.into()),
        EventBody::Resumed(resumed) => Body::Resumed(resumed.into()),
        EventBody::InputRequested(asked) => Body::InputRequested(asked.into()),
        EventBody::InputGiven(given) => Body::InputGiven(given.into()),
        EventBody::Unknown(_) => return None,
    })
}

fn body_from_message(tenant: &Tenant, body: Body, specs: Option<&dyn ToolSpecs>) -> Result<EventBody, EventError> {
    Ok(match body {
        Body::Submitted(submitted) => EventBody::Submitted(Submitted {
            question: submitted.question,
            tools: tools_from_message(tenant, submitted.tools, submitted.tool_refs, specs)?,
            tool_choice: submitted.tool_choice.map(Into::into),
            limits: submitted.limits.ok_or(ConversionError::MissingField("limits"))?.try_into()?,
            sampling: submitted.sampling.unwrap_or_default().try_into()?,
            labels: submitted.labels.into_iter().collect(),
            conversation: submitted.conversation,
            request: Digest::from_slice(&submitted.request),
            context: Box::new(submitted.context.map(context_from_store).unwrap_or_default()),
            trace_id: submitted.trace_id,
            min_confidence: known(submitted.min_confidence),
            next_attempt: control::next_attempt(submitted.next_attempt),
            approval: control::policy_from_store(submitted.approval),
            origin: submitted.origin.map(|origin| origin.try_into().map(Box::new)).transpose()?,
            by: submitted.by,
        }),
        Body::Started(started) => EventBody::Started(Started { gateway: started.gateway, attempt: started.attempt }),
        Body::Thought(thought) => EventBody::Thought(Thought { thought: thought.thought, tool: thought.tool }),
        Body::Action(action) => EventBody::Action(Action { tool: action.tool, params: action.params }),
        Body::Observation(observation) => EventBody::Observation(observation_from_message(observation)),
        Body::Reflection(reflection) => {
            // what is not known to be approval is none: the group goes on
            let verdict = match reflection.verdict() {
                v2::Verdict::Right => Verdict::Right,
                v2::Verdict::Wrong | v2::Verdict::Unspecified => Verdict::Wrong,
            };
            EventBody::Reflection(Reflection {
                thought: reflection.thought,
                verdict,
                log_odds: known(reflection.log_odds),
                confidence: known(reflection.confidence),
                threshold: known(reflection.threshold),
                next_attempt: control::next_attempt(reflection.next_attempt).unwrap_or_default(),
            })
        }
        Body::Finished(finished) => {
            let reason = v1::FinishReason::try_from(finished.reason).map_or(FinishReason::Other, Into::into);
            let v2::Finished { answer, approved, reason: _, detail, citations, open_effect, by } = finished;
            let citations = citations.into_iter().map(Into::into).collect();
            EventBody::Finished(Finished { answer, approved, reason, detail, citations, open_effect, by })
        }
        Body::Released(released) => {
            let reason = v1::ReleaseReason::try_from(released.reason).map_or(ReleaseReason::Other, Into::into);
            EventBody::Released(Released { reason, detail: released.detail, may_have_run: released.may_have_run })
        }
        Body::Shortened(shortened) => EventBody::Shortened(shortened_from_message(&shortened)),
        Body::Recalled(recalled) => EventBody::Recalled(recalled.into()),
        Body::Paused(paused) => EventBody::Paused(paused.into()),
        Body::Resumed(resumed) => EventBody::Resumed(resumed.into()),
        Body::InputRequested(asked) => EventBody::InputRequested(asked.into()),
        Body::InputGiven(given) => EventBody::InputGiven(given.into()),
    })
}

pub(crate) fn observation_to_message(observation: &Observation) -> v2::Observation {
    v2::Observation {
        text: observation.text.clone(),
        is_error: observation.is_error,
        repeated: observation.repeated,
        truncated: observation.truncated,
        sources: observation.sources.iter().map(Into::into).collect(),
        untrusted: observation.untrusted,
    }
}

pub(crate) fn observation_from_message(observation: v2::Observation) -> Observation {
    Observation {
        text: observation.text,
        is_error: observation.is_error,
        repeated: observation.repeated,
        truncated: observation.truncated,
        sources: observation.sources.into_iter().map(Into::into).collect(),
        untrusted: observation.untrusted,
    }
}

fn shortened_to_message(shortened: &Shortened) -> v2::Shortened {
    let Shortened { shortening: Shortening { left_out, observations, thoughts }, tokens, limit } = shortened;
    let cuts = |cuts: &BTreeMap<u32, Cut>| {
        cuts.iter().map(|(step, cut)| v2::Cut { step: *step, kept_bytes: cut.kept, sentences: cut.sentences }).collect()
    };
    v2::Shortened { left_out: *left_out, observations: cuts(observations), thoughts: cuts(thoughts), tokens: *tokens, limit: *limit }
}

fn shortened_from_message(shortened: &v2::Shortened) -> Shortened {
    let v2::Shortened { left_out, observations, thoughts, tokens, limit } = shortened;
    let cuts = |cuts: &[v2::Cut]| cuts.iter().map(|cut| (cut.step, Cut { kept: cut.kept_bytes, sentences: cut.sentences })).collect();
    let shortening = Shortening { left_out: *left_out, observations: cuts(observations), thoughts: cuts(thoughts) };
    Shortened { shortening, tokens: *tokens, limit: *limit }
}

fn artifact_to_message(artifact: &Artifact) -> v2::Artifact {
    v2::Artifact {
        kind: artifact.kind.clone(),
        media_type: artifact.media_type.clone(),
        name: artifact.name.clone(),
        object: artifact.object.clone(),
        bytes: artifact.bytes,
        sha256: artifact.sha256.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default(),
        text: artifact.text.clone(),
    }
}

fn artifact_from_message(artifact: v2::Artifact) -> Artifact {
    Artifact {
        kind: artifact.kind,
        media_type: artifact.media_type,
        name: artifact.name,
        object: artifact.object,
        bytes: artifact.bytes,
        sha256: Digest::from_slice(&artifact.sha256),
        text: artifact.text,
    }
}
