//! What the bus cannot do, and trajectories that do not fold: the same for every call.

use autoact_bus::BusError;
use autoact_trajectory::{FoldError, TaskId};
use autoact_wire::store::{EventTooLarge, MAX_EVENT_BYTES};
use tonic::Code;

use super::Row;

pub(super) fn bus(error: &BusError) -> Row {
    match error {
        BusError::Conflict { task, found, .. } => Row::new(Code::Aborted, "TASK_MOVED_ON").task(&task.id).with("sequence", found),
        BusError::TooLarge(EventTooLarge { bytes, .. }) => {
            Row::new(Code::InvalidArgument, "TOO_LARGE").with("value", bytes).with("limit", MAX_EVENT_BYTES)
        }
        BusError::MessageTooLarge { bytes } => Row::new(Code::FailedPrecondition, "MESSAGE_TOO_LARGE").with("value", bytes),
        BusError::Unreadable { task, sequence, .. } => {
            Row::new(Code::DataLoss, "TRAJECTORY_BROKEN").task(&task.id).with("sequence", sequence)
        }
        BusError::MissingTool { task, tool, .. } => {
            Row::new(Code::Unavailable, "TOOL_SPECIFICATION_MISSING").task(&task.id).with("tool", tool)
        }
        BusError::MissingArtifact { .. } => Row::new(Code::NotFound, "ARTIFACT_EXPIRED"),
        BusError::Full { .. } => Row::new(Code::Unavailable, "BUS_FULL"),
        BusError::Vanished { stream } => Row::new(Code::DataLoss, "BUS_LOST").with("stream", stream),
        BusError::Forbidden { subject, .. } => Row::new(Code::PermissionDenied, "BUS_FORBIDDEN").with("subject", subject),
        _ => Row::new(Code::Unavailable, "BUS_UNAVAILABLE"),
    }
}

pub(super) fn fold(task: &TaskId, error: &FoldError) -> Row {
    match error {
        // this program is older than the one that wrote it: another gateway may be able to read it
        FoldError::Newer { index, version } => {
            Row::new(Code::Unimplemented, "TRAJECTORY_NEWER").task(task).with("index", index).with("version", version)
        }
        _ => Row::new(Code::DataLoss, "TRAJECTORY_BROKEN").task(task),
    }
}
