//! What clients send, and what a gateway sends to an agent: protobuf messages as values.

use autoact_prompt::{Expect, Role, chat, transcript};
use autoact_trajectory::{Calibration, Limits, Shortening, TaskContext, TaskId, ToolSpec, Trajectory, shorten};
use autoact_wire::convert::resolve_limits;
use autoact_wire::{agents_v1, v1};
use prost::Message as _;

/// The first byte chooses the message, the rest is its bytes.
pub fn requests(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 5 {
        0 => {
            let Ok(request) = v1::SubmitTaskRequest::decode(bytes) else { return };
            let _ = request.task_id.parse::<TaskId>();
            let _ = resolve_limits(request.limits, &Limits::default());
            if let Some(Ok(context)) = request.context.map(TaskContext::try_from) {
                let _ = context.is_empty();
            }
        }
        1 => {
            let Ok(message) = v1::Trajectory::decode(bytes) else { return };
            let Ok(history) = Trajectory::try_from(message) else { return };
            given(&history);
        }
        2 => {
            let Ok(message) = v1::ToolSpec::decode(bytes) else { return };
            let Ok(spec) = ToolSpec::try_from(message) else { return };
            let again = ToolSpec::try_from(v1::ToolSpec::from(&spec));
            assert!(again.as_ref() == Ok(&spec), "{spec:?} is {again:?} after it was sent");
        }
        3 => {
            let Ok(message) = agents_v1::Calibration::decode(bytes) else { return };
            let _ = Calibration::try_from(message);
        }
        _ => {
            // asked of a gateway about a task, by id or by page
            let _ = v1::ListTasksRequest::decode(bytes);
            let Ok(request) = v1::WatchTaskRequest::decode(bytes) else { return };
            let _ = request.task_id.parse::<TaskId>();
        }
    }
}

/// What an agent does with a history before it asks its model.
fn given(history: &Trajectory) {
    let whole = transcript(history);
    for role in [Role::Plan, Role::Tool, Role::Reflect] {
        let _ = (Expect::next(role, history), chat(role, history));
    }
    let budget = whole.len() / 2;
    let cut = shorten(history, &Shortening::default(), |shown| transcript(shown).len(), budget);
    let _ = transcript(&cut.apply(history));
}
