//! Every error and the table in the documents.

use std::collections::{BTreeMap, BTreeSet};

use autoact_access::{AccessError, Problem, Role};
use autoact_bus::BusError;
use autoact_planning::{Failure, FailureClass};
use autoact_trajectory::{Digest, FoldError, InputKind, InvalidContext, NotShared, Sampling, TaskId, TaskKey, Tenant};
use autoact_wire::ConversionError;
use autoact_wire::event::EventError;
use autoact_wire::store::{EventTooLarge, MAX_EVENT_BYTES};

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
        AccessError::Changed,
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
        Box::new(SubmitError::NoPlace(NoPlace::OpenQuota { open: 2, most: 1 })),
        Box::new(SubmitError::NoPlace(NoPlace::Open { open: 2, most: 1 })),
        Box::new(RequestError::NoInput),
        Box::new(RequestError::NewId("a.b".parse::<TaskId>().unwrap_err())),
        Box::new(SubmitError::Step { task: id(), source: NotShared::NoStep { steps: 2 } }),
        Box::new(SubmitError::Step { task: id(), source: NotShared::Open { step: 2 } }),
        Box::new(SubmitError::Origin(Box::new(TaskError::NotFound(id())))),
        Box::new(TaskError::Ended(id())),
        Box::new(TaskError::NotEnded(id())),
        Box::new(TaskError::NotAsked { task: id(), step: 1, asked: Some((2, InputKind::Approval)) }),
        Box::new(TaskError::EmptyAnswer),
        Box::new(TaskError::LongInput { field: "reason", bytes: 5000 }),
        Box::new(TaskError::Memory { task: id(), failure: Failure::new(FailureClass::NotSent, "memory", std::io::Error::other("away")) }),
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
    let docs = include_str!("../../../../../../docs/api.md");
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
