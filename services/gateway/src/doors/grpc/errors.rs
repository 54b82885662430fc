//! The application's errors as gRPC knows them: a code, a stable reason, the field at fault and
//! when to try again.

use std::time::Duration;

use autoact_bus::BusError;
use autoact_trajectory::{FoldError, InvalidContext, InvalidTaskId, NotShared, TaskId};
use autoact_wire::ConversionError;
use autoact_wire::status::{ServiceError, too_long};
use autoact_wire::store::{EventTooLarge, MAX_EVENT_BYTES};
use tonic::Code;

use crate::agents::catalog::SelectError;
use crate::tasks::submit::{MAX_CONVERSATION_BYTES, MAX_LABEL_BYTES, MAX_LABELS, MAX_QUESTION_BYTES, MAX_TOOLS};
use crate::tasks::{NoPlace, SubmitError, TaskError};

/// What an error says to programs beside its reason.
type Metadata = Vec<(&'static str, String)>;

/// A slot is free again after about one short task.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A request that does not say what it asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("neither `answer` nor `approval` is there")]
    NoInput,
    #[error(transparent)]
    Id(InvalidTaskId),
    #[error(transparent)]
    NewId(InvalidTaskId),
    #[error(transparent)]
    Limits(ConversionError),
    #[error(transparent)]
    Context(InvalidContext),
    #[error("`page_token` is `{0}`; expected one from an earlier response to a request with the same `order`")]
    PageToken(String),
}

impl ServiceError for RequestError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn reason(&self) -> &'static str {
        match self {
            RequestError::Missing(_) => "TASK_MISSING",
            RequestError::NoInput => "INPUT_MISSING",
            RequestError::Id(_) | RequestError::NewId(_) => "BAD_TASK_ID",
            RequestError::Limits(_) => "BAD_LIMITS",
            RequestError::Context(invalid) => invalid.reason(),
            RequestError::PageToken(_) => "BAD_PAGE_TOKEN",
        }
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            RequestError::Missing(field) => field,
            RequestError::NoInput => "input",
            RequestError::Id(_) => "task_id",
            RequestError::NewId(_) => "new_task_id",
            RequestError::Limits(error) => error.field(),
            RequestError::Context(invalid) => invalid.field(),
            RequestError::PageToken(_) => "page_token",
        })
    }

    fn metadata(&self) -> Metadata {
        match self {
            RequestError::Missing(_) | RequestError::NoInput => Vec::new(),
            RequestError::Id(error) | RequestError::NewId(error) => vec![("value", error.shown().to_owned())],
            RequestError::Limits(ConversionError::UnknownValue { value, .. }) => vec![("value", value.clone())],
            RequestError::Limits(_) => Vec::new(),
            RequestError::Context(invalid) => invalid.metadata(),
            RequestError::PageToken(token) => vec![("value", token.clone())],
        }
    }
}

impl ServiceError for SelectError {
    fn code(&self) -> Code {
        match self {
            SelectError::Library(_) => Code::Unavailable,
            SelectError::Unknown { .. } => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            SelectError::Library(_) => "TOOLS_UNAVAILABLE",
            SelectError::Unknown { .. } => "UNKNOWN_TOOL",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, SelectError::Library(_)).then_some(RETRY_DELAY)
    }

    fn field(&self) -> Option<&'static str> {
        matches!(self, SelectError::Unknown { .. }).then_some("tools")
    }

    fn metadata(&self) -> Metadata {
        match self {
            SelectError::Library(failure) => vec![("failure", failure.class.as_str().to_owned())],
            SelectError::Unknown { name, nearest, .. } => {
                let nearest = nearest.iter().map(|nearest| ("nearest", nearest.clone()));
                [("tool", name.clone())].into_iter().chain(nearest).collect()
            }
        }
    }
}

/// The code of a trajectory that does not fold.
fn fold_code(error: &FoldError) -> Code {
    match error {
        // this program is older than the one that wrote it: another gateway may be able to read it
        FoldError::Newer { .. } => Code::Unimplemented,
        _ => Code::DataLoss,
    }
}

/// And its reason.
fn fold_reason(error: &FoldError) -> &'static str {
    match error {
        FoldError::Newer { .. } => "TRAJECTORY_NEWER",
        _ => "TRAJECTORY_BROKEN",
    }
}

/// And whose it is, and which event cannot be read.
fn fold_metadata(task: &TaskId, error: &FoldError) -> Metadata {
    let mut metadata = vec![("task_id", task.to_string())];
    if let FoldError::Newer { index, version } = error {
        metadata.extend([("index", index.to_string()), ("version", version.to_string())]);
    }
    metadata
}

impl ServiceError for NoPlace {
    fn code(&self) -> Code {
        match self {
            NoPlace::Quota { .. } | NoPlace::Full { .. } => Code::ResourceExhausted,
            NoPlace::Bus(error) => bus_code(error),
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            NoPlace::Quota { .. } => "TASK_QUOTA",
            NoPlace::Full { .. } => "GATEWAY_FULL",
            NoPlace::Bus(error) => bus_reason(error),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self.code(), Code::Unavailable | Code::Aborted | Code::ResourceExhausted).then_some(RETRY_DELAY)
    }

    fn metadata(&self) -> Metadata {
        match self {
            NoPlace::Quota { running, most } | NoPlace::Full { running, most } => {
                vec![("value", running.to_string()), ("limit", most.to_string())]
            }
            NoPlace::Bus(error) => bus_metadata(error),
        }
    }
}

impl ServiceError for TaskError {
    fn code(&self) -> Code {
        match self {
            TaskError::NotFound(_) | TaskError::NoArtifact { .. } => Code::NotFound,
            TaskError::Bus(error) => bus_code(error),
            TaskError::NoPlace(error) => error.code(),
            TaskError::Fold { source, .. } => fold_code(source),
            TaskError::ManyWatchers { .. } | TaskError::WatcherQuota { .. } | TaskError::SlowReader { .. } => Code::ResourceExhausted,
            TaskError::Access(error) => error.code(),
            TaskError::Ended(_) | TaskError::NotEnded(_) | TaskError::NotAsked { .. } => Code::FailedPrecondition,
            TaskError::EmptyAnswer | TaskError::LongInput { .. } => Code::InvalidArgument,
            TaskError::Memory { .. } => Code::Unavailable,
            TaskError::Leaving { .. } => Code::Unavailable,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            TaskError::NotFound(_) => "TASK_NOT_FOUND",
            TaskError::NoArtifact { .. } => "ARTIFACT_NOT_FOUND",
            TaskError::Bus(error) => bus_reason(error),
            TaskError::NoPlace(error) => error.reason(),
            TaskError::Fold { source, .. } => fold_reason(source),
            TaskError::ManyWatchers { .. } => "TOO_MANY_WATCHERS",
            TaskError::WatcherQuota { .. } => "WATCHER_QUOTA",
            TaskError::Access(error) => error.reason(),
            TaskError::Ended(_) => "TASK_ENDED",
            TaskError::NotEnded(_) => "TASK_NOT_ENDED",
            TaskError::NotAsked { .. } => "NOT_ASKED",
            TaskError::EmptyAnswer | TaskError::LongInput { .. } => "BAD_INPUT",
            TaskError::Memory { .. } => "MEMORY_UNAVAILABLE",
            TaskError::Leaving { .. } => "SHUTTING_DOWN",
            TaskError::SlowReader { .. } => "SLOW_READER",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            TaskError::Leaving { .. } => Some(Duration::from_millis(500)),
            TaskError::Access(error) => error.retry_after(),
            _ => matches!(self.code(), Code::Unavailable | Code::Aborted | Code::ResourceExhausted).then_some(RETRY_DELAY),
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            TaskError::Access(error) => error.field(),
            TaskError::EmptyAnswer => Some("answer"),
            TaskError::LongInput { field, .. } => Some(field),
            _ => None,
        }
    }

    fn metadata(&self) -> Metadata {
        match self {
            TaskError::NotFound(id) | TaskError::Ended(id) | TaskError::NotEnded(id) => vec![("task_id", id.to_string())],
            TaskError::NotAsked { task, step, asked } => {
                let asked = asked.iter().flat_map(|(step, kind)| [("asked_step", step.to_string()), ("asked", kind.as_str().to_owned())]);
                [("task_id", task.to_string()), ("step", step.to_string())].into_iter().chain(asked).collect()
            }
            TaskError::EmptyAnswer | TaskError::LongInput { .. } => Vec::new(),
            TaskError::Memory { task, failure } => {
                vec![("task_id", task.to_string()), ("failure", failure.class.as_str().to_owned())]
            }
            TaskError::Bus(error) => bus_metadata(error),
            TaskError::NoPlace(error) => error.metadata(),
            TaskError::Fold { task, source } => fold_metadata(task, source),
            TaskError::Access(error) => error.metadata(),
            TaskError::ManyWatchers { most } | TaskError::WatcherQuota { most } => vec![("limit", most.to_string())],
            TaskError::NoArtifact { task, name } => vec![("task_id", task.to_string()), ("artifact", name.clone())],
            TaskError::Leaving { task, after } | TaskError::SlowReader { task, after } => {
                vec![("task_id", task.to_string()), ("after_sequence", after.to_string())]
            }
        }
    }
}

impl ServiceError for SubmitError {
    fn code(&self) -> Code {
        match self {
            SubmitError::Tools(error) => error.code(),
            SubmitError::NotQueued { .. } => Code::Unavailable,
            SubmitError::Exists(_) => Code::AlreadyExists,
            SubmitError::Rate { .. } => Code::ResourceExhausted,
            SubmitError::NoPlace(error) => error.code(),
            SubmitError::Access(error) => error.code(),
            SubmitError::Origin(error) => error.code(),
            SubmitError::Step { source: NotShared::NoStep { .. }, .. } => Code::InvalidArgument,
            SubmitError::Step { .. } => Code::FailedPrecondition,
            SubmitError::Bus(error) => bus_code(error),
            SubmitError::Fold { source, .. } => fold_code(source),
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            SubmitError::NoQuestion => "QUESTION_EMPTY",
            SubmitError::LongQuestion(_) => "QUESTION_TOO_LONG",
            SubmitError::NoRoom(_) => "PROMPT_TOO_LONG",
            SubmitError::ManyTools(_) => "TOO_MANY_TOOLS",
            SubmitError::ManyLabels(_) | SubmitError::LabelName | SubmitError::LongLabel(_) => "BAD_LABELS",
            SubmitError::Limit { .. } => "LIMIT_TOO_HIGH",
            SubmitError::MinConfidence(_) => "BAD_MIN_CONFIDENCE",
            SubmitError::Sampling(_) => "BAD_SAMPLING",
            SubmitError::Tools(error) => error.reason(),
            SubmitError::Exists(_) => "TASK_EXISTS",
            SubmitError::Conversation(_) => "BAD_CONVERSATION_ID",
            SubmitError::Context(invalid) => invalid.reason(),
            SubmitError::Knowledge { .. } => "UNKNOWN_COLLECTION",
            SubmitError::Rate { .. } => "RATE_LIMITED",
            SubmitError::NoPlace(error) => error.reason(),
            SubmitError::Access(error) => error.reason(),
            SubmitError::Origin(error) => error.reason(),
            SubmitError::Step { source: NotShared::NoStep { .. }, .. } => "NO_SUCH_STEP",
            SubmitError::Step { .. } => "STEP_NOT_COMPLETE",
            SubmitError::NotQueued { .. } => "NOT_QUEUED",
            SubmitError::Bus(error) => bus_reason(error),
            SubmitError::Fold { source, .. } => fold_reason(source),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let retry = matches!(self.code(), Code::ResourceExhausted | Code::Unavailable | Code::Aborted);
        match self {
            SubmitError::Rate { after, .. } => Some(*after),
            SubmitError::Access(error) => error.retry_after(),
            _ => retry.then_some(RETRY_DELAY),
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            SubmitError::NoQuestion | SubmitError::LongQuestion(_) | SubmitError::NoRoom(_) => Some("question"),
            SubmitError::ManyTools(_) => Some("tools"),
            SubmitError::Tools(error) => error.field(),
            SubmitError::ManyLabels(_) | SubmitError::LabelName | SubmitError::LongLabel(_) => Some("labels"),
            SubmitError::Limit { field, .. } => Some(field),
            SubmitError::MinConfidence(_) => Some("min_confidence"),
            SubmitError::Sampling(invalid) => Some(match invalid.field {
                "temperature" => "sampling.temperature",
                _ => "sampling.top_p",
            }),
            SubmitError::Conversation(_) => Some("conversation_id"),
            SubmitError::Context(invalid) => Some(invalid.field()),
            SubmitError::Knowledge { .. } => Some("context.knowledge"),
            SubmitError::Exists(_) => Some("task_id"),
            SubmitError::Step { .. } => Some("from_step"),
            SubmitError::Origin(error) => error.field(),
            SubmitError::Access(error) => error.field(),
            SubmitError::Rate { .. } | SubmitError::NoPlace(_) => None,
            SubmitError::NotQueued { .. } | SubmitError::Bus(_) | SubmitError::Fold { .. } => None,
        }
    }

    fn metadata(&self) -> Metadata {
        let over = |value: usize, limit: usize| vec![("value", value.to_string()), ("limit", limit.to_string())];
        match self {
            SubmitError::NoQuestion | SubmitError::LabelName => Vec::new(),
            SubmitError::LongQuestion(bytes) => over(*bytes, MAX_QUESTION_BYTES),
            SubmitError::NoRoom(size) => too_long(*size),
            SubmitError::ManyTools(count) => over(*count, MAX_TOOLS),
            SubmitError::ManyLabels(count) => over(*count, MAX_LABELS),
            SubmitError::LongLabel(bytes) => over(*bytes, MAX_LABEL_BYTES),
            SubmitError::Limit { asked, most, .. } => vec![("value", asked.clone()), ("limit", most.clone())],
            SubmitError::MinConfidence(found) => vec![("value", found.to_string()), ("expected", "0 to 1".to_owned())],
            SubmitError::Sampling(invalid) => vec![("value", invalid.value.to_string()), ("expected", invalid.expected.to_owned())],
            SubmitError::Tools(error) => error.metadata(),
            SubmitError::Exists(id) | SubmitError::NotQueued { task: id, .. } => vec![("task_id", id.to_string())],
            SubmitError::Conversation(value) => vec![("value", value.clone()), ("limit", MAX_CONVERSATION_BYTES.to_string())],
            SubmitError::Context(invalid) => invalid.metadata(),
            SubmitError::Knowledge { name, known } => vec![("value", name.clone()), ("expected", known.join(", "))],
            SubmitError::Access(error) => error.metadata(),
            SubmitError::Origin(error) => error.metadata(),
            SubmitError::Step { task, source: NotShared::NoStep { steps } } => {
                vec![("task_id", task.to_string()), ("steps", steps.to_string())]
            }
            SubmitError::Step { task, .. } => vec![("task_id", task.to_string())],
            SubmitError::Rate { most, .. } => vec![("limit", most.to_string())],
            SubmitError::NoPlace(error) => error.metadata(),
            SubmitError::Bus(error) => bus_metadata(error),
            SubmitError::Fold { task, source } => fold_metadata(task, source),
        }
    }
}

/// The code of an error of the bus, the same for every call.
fn bus_code(error: &BusError) -> Code {
    match error {
        BusError::Conflict { .. } => Code::Aborted,
        BusError::TooLarge(_) => Code::InvalidArgument,
        BusError::MessageTooLarge { .. } => Code::FailedPrecondition,
        BusError::Unreadable { .. } | BusError::Vanished { .. } => Code::DataLoss,
        BusError::MissingArtifact { .. } => Code::NotFound,
        BusError::Forbidden { .. } => Code::PermissionDenied,
        _ => Code::Unavailable,
    }
}

/// And its reason.
fn bus_reason(error: &BusError) -> &'static str {
    match error {
        BusError::Conflict { .. } => "TASK_MOVED_ON",
        BusError::TooLarge(_) => "TOO_LARGE",
        BusError::MessageTooLarge { .. } => "MESSAGE_TOO_LARGE",
        BusError::Unreadable { .. } => "TRAJECTORY_BROKEN",
        BusError::MissingTool { .. } => "TOOL_SPECIFICATION_MISSING",
        BusError::MissingArtifact { .. } => "ARTIFACT_EXPIRED",
        BusError::Full { .. } => "BUS_FULL",
        BusError::Vanished { .. } => "BUS_LOST",
        BusError::Forbidden { .. } => "BUS_FORBIDDEN",
        _ => "BUS_UNAVAILABLE",
    }
}

/// And what it is about.
fn bus_metadata(error: &BusError) -> Metadata {
    match error {
        BusError::Conflict { task, found, .. } => vec![("task_id", task.id.to_string()), ("sequence", found.to_string())],
        BusError::TooLarge(EventTooLarge { bytes, .. }) => vec![("value", bytes.to_string()), ("limit", MAX_EVENT_BYTES.to_string())],
        BusError::MessageTooLarge { bytes } => vec![("value", bytes.to_string())],
        BusError::MissingTool { task, tool, .. } => vec![("task_id", task.id.to_string()), ("tool", tool.clone())],
        BusError::Unreadable { task, sequence, .. } => vec![("task_id", task.id.to_string()), ("sequence", sequence.to_string())],
        BusError::Vanished { stream } => vec![("stream", stream.clone())],
        BusError::Forbidden { subject, .. } => vec![("subject", subject.clone())],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use autoact_access::{AccessError, Problem, Role};
    use autoact_planning::{Failure, FailureClass};
    use autoact_trajectory::{Digest, InputKind, InvalidContext, Sampling, TaskKey, Tenant};
    use autoact_wire::event::EventError;

    use super::*;

    fn id() -> TaskId {
        TaskId::generate()
    }

    fn key() -> TaskKey {
        TaskKey::new(Tenant::default(), id())
    }

    fn bus_errors() -> Vec<BusError> {
        let source = || EventError::from(ConversionError::MissingField("time"));
        vec![
            BusError::Conflict { task: key(), expected: 1, found: 2 },
            BusError::TooLarge(EventTooLarge { event: "submitted", bytes: MAX_EVENT_BYTES + 1 }),
            BusError::MessageTooLarge { bytes: 2 },
            BusError::Unreadable { task: key(), sequence: 3, source: source() },
            BusError::MissingTool { task: key(), tool: "Search".into(), digest: Digest([1; 32]) },
            BusError::Full { what: "store", source: "full".into() },
            BusError::Vanished { stream: "AUTOACT_TRAJECTORIES".into() },
            BusError::Forbidden { name: "gateway-1".into(), what: "publish to", subject: "autoact.t.traj.x".into() },
            BusError::Unavailable { what: "answer", source: "gone".into() },
        ]
    }

    fn fold_errors() -> Vec<FoldError> {
        vec![FoldError::Empty, FoldError::Newer { index: 4, version: 9 }]
    }

    /// What callers are told who may not come in.
    fn refusals() -> Vec<AccessError> {
        let source = "no tenant".parse::<Tenant>().unwrap_err();
        vec![
            AccessError::Missing,
            AccessError::Invalid(Problem::Unknown),
            AccessError::Expired,
            AccessError::NotYet,
            AccessError::NoKeys,
            AccessError::Role { needed: Role::Ask, name: "ann".into() },
            AccessError::Tenant { asked: "ops".into(), name: "ann".into() },
            AccessError::BadTenant { source },
        ]
    }

    /// An error of every kind that the door can answer with.
    fn all() -> Vec<Box<dyn ServiceError>> {
        let failure = Failure::new(FailureClass::NotSent, "tool-agent", std::io::Error::other("gone"));
        let unknown = || SelectError::Unknown { name: "Retreive".into(), nearest: Some("Retrieve".into()), known: Vec::new() };
        let long = InvalidContext::TooLong { field: "context.task.name", bytes: 2, most: 1 };
        let sampling = Sampling { temperature: f32::NAN, ..Sampling::default() }.checked().unwrap_err();
        let unknown_value = ConversionError::UnknownValue { field: "limits.max_time", value: "-1s".into() };
        let mut all: Vec<Box<dyn ServiceError>> = vec![
            Box::new(RequestError::Missing("task")),
            Box::new(RequestError::Id("a.b".parse::<TaskId>().unwrap_err())),
            Box::new(RequestError::Limits(unknown_value)),
            Box::new(RequestError::Context(InvalidContext::Now)),
            Box::new(RequestError::PageToken("x".into())),
            Box::new(unknown()),
            Box::new(SubmitError::NoQuestion),
            Box::new(SubmitError::LongQuestion(2)),
            Box::new(SubmitError::ManyTools(2)),
            Box::new(SubmitError::ManyLabels(2)),
            Box::new(SubmitError::LabelName),
            Box::new(SubmitError::LongLabel(2)),
            Box::new(SubmitError::Limit { field: "limits.max_steps", asked: "2".into(), most: "1".into() }),
            Box::new(SubmitError::MinConfidence(1.5)),
            Box::new(SubmitError::Sampling(sampling)),
            Box::new(SubmitError::Tools(unknown())),
            Box::new(SubmitError::Tools(SelectError::Library(failure))),
            Box::new(SubmitError::Exists(id())),
            Box::new(SubmitError::Conversation("a.b".into())),
            Box::new(SubmitError::Knowledge { name: "atlsa".into(), known: vec!["atlas".into()] }),
            Box::new(SubmitError::Context(long)),
            Box::new(SubmitError::NoPlace(NoPlace::Full { running: 2, most: 1 })),
            Box::new(SubmitError::NotQueued { task: id(), source: Box::new(bus_errors().remove(0)) }),
            Box::new(SubmitError::Rate { most: 1, after: RETRY_DELAY }),
            Box::new(SubmitError::NoPlace(NoPlace::Quota { running: 2, most: 1 })),
            Box::new(RequestError::NoInput),
            Box::new(RequestError::NewId("a.b".parse::<TaskId>().unwrap_err())),
            Box::new(SubmitError::Step { task: id(), source: NotShared::NoStep { steps: 2 } }),
            Box::new(SubmitError::Step { task: id(), source: NotShared::Open { step: 2 } }),
            Box::new(SubmitError::Origin(TaskError::NotFound(id()))),
            Box::new(TaskError::Ended(id())),
            Box::new(TaskError::NotEnded(id())),
            Box::new(TaskError::NotAsked { task: id(), step: 1, asked: Some((2, InputKind::Approval)) }),
            Box::new(TaskError::EmptyAnswer),
            Box::new(TaskError::LongInput { field: "reason", bytes: 5000 }),
            Box::new(TaskError::Memory {
                task: id(),
                failure: Failure::new(FailureClass::NotSent, "memory", std::io::Error::other("away")),
            }),
            Box::new(TaskError::WatcherQuota { most: 1 }),
            Box::new(TaskError::NotFound(id())),
            Box::new(TaskError::ManyWatchers { most: 1 }),
            Box::new(TaskError::Leaving { task: id(), after: 1 }),
            Box::new(TaskError::SlowReader { task: id(), after: 1 }),
        ];
        all.extend(refusals().into_iter().map(|error| Box::new(SubmitError::Access(error)) as _));
        all.extend(refusals().into_iter().map(|error| Box::new(TaskError::Access(error)) as _));
        all.extend(bus_errors().into_iter().map(|error| Box::new(SubmitError::Bus(error)) as _));
        all.extend(bus_errors().into_iter().map(|error| Box::new(TaskError::Bus(error)) as _));
        all.extend(fold_errors().into_iter().map(|source| Box::new(SubmitError::Fold { task: id(), source: Box::new(source) }) as _));
        all.extend(fold_errors().into_iter().map(|source| Box::new(TaskError::Fold { task: id(), source: Box::new(source) }) as _));
        all
    }

    /// `NOT_FOUND` for `NotFound`, as the documents write it.
    fn code_name(code: Code) -> String {
        let mut name = String::new();
        for c in format!("{code:?}").chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        name
    }

    /// The table of reasons in the documents: code and keys of each.
    fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
        let docs = include_str!("../../../../../docs/api.md");
        let (_, table) = docs.split_once("| reason | code | keys |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let row = |line: &str| {
            let cells: Vec<&str> = line.split('|').collect();
            (words(cells[1]).remove(0), (words(cells[2]).remove(0), words(cells[3]).into_iter().collect()))
        };
        rows.map(row).collect()
    }

    #[test]
    fn the_documents_name_every_reason_with_its_code_and_its_keys() {
        let mut found: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
        for error in all() {
            let status = autoact_wire::status::to_status(&*error);
            let entry = found.entry(error.reason().to_owned()).or_insert((code_name(status.code()), BTreeSet::new()));
            assert_eq!(entry.0, code_name(status.code()), "{} has one code", error.reason());
            entry.1.extend(autoact_wire::status::metadata(&status).into_keys());
        }
        assert_eq!(found, documented());
    }
}
