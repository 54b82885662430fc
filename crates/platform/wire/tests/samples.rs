//! Events as earlier versions stored them must be read for ever. One file per body and version
//! under `samples/`; a new version adds a folder and changes none.
//! `AUTOACT_WRITE_SAMPLES=1 cargo test -p autoact-wire --test samples` writes those of the current
//! one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

#[path = "../../../domain/trajectory/tests/all/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use autoact_trajectory::*;
use autoact_wire::event::EventError;
use autoact_wire::specs::{decode_spec, stored_specs};
use autoact_wire::store::{
    About, EVENT_VERSION, IndexEntry, IndexMark, IndexRecord, MAX_EVENT_BYTES, Mark, PurgeReason, decode, decode_without_tools, digest,
    encode,
};
use autoact_wire::{ConversionError, store_v2 as v2, v1};
use common::*;
use proptest::prelude::*;
use prost::Message;

/// Those of the samples: the defaults when they were written.
const LIMITS: Limits = Limits { max_steps: 12, max_reflections: 2, max_tokens: 4096, max_time: Duration::from_secs(120) };

fn read(bytes: &[u8]) -> Result<Event, EventError> {
    decode(&Tenant::default(), bytes, 0, &specs())
}

/// The specifications that the samples name by digest.
fn specs() -> BTreeMap<Digest, ToolSpec> {
    let EventBody::Submitted(submitted) = submitted(LIMITS) else { unreachable!() };
    stored_specs(&submitted).map(|(spec, stored)| (stored.digest, spec.clone())).collect()
}

/// What stands in every version's samples.
fn v1_events() -> Vec<Event> {
    let finished = Finished {
        answer: "Paris".into(),
        approved: false,
        reason: FinishReason::MaxReflections,
        detail: "bound on wrong verdicts: 2".into(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    let seen = Observation {
        text: "Loire is a river in France.".into(),
        is_error: true,
        repeated: true,
        truncated: true,
        ..Observation::default()
    };
    let bodies = [
        submitted(LIMITS),
        started(2),
        thought("Retrieve"),
        action("Retrieve", "Loire"),
        EventBody::Observation(seen),
        reflection(Verdict::Wrong),
        EventBody::Finished(finished),
    ];
    let with_usage = |event| Event { usage: Some(usage(31)), sequence: 0, ..event };
    events(bodies).into_iter().map(with_usage).collect()
}

/// The same, and what version 2 added.
fn v2_events() -> Vec<Event> {
    let artifact = Artifact {
        kind: "table".into(),
        media_type: "text/csv".into(),
        name: "rivers.csv".into(),
        object: "task-1/rivers.csv".into(),
        bytes: 120,
        sha256: Some(Digest([7; 32])),
        text: "12 rivers with their lengths".into(),
    };
    let released = Released { reason: ReleaseReason::Waiting, detail: "plan-agent is away".into(), may_have_run: true };
    let mut all = v1_events();
    all.push(Event { sequence: 0, ..event(8, EventBody::Released(released)) });
    let cut = |step, kept, sentences| (step, Cut { kept, sentences });
    let shortening = Shortening { left_out: 1, observations: [cut(2, 40, 3), cut(3, 0, 0)].into(), thoughts: [cut(4, 12, 0)].into() };
    let shortened = Shortened { shortening, tokens: 2026, limit: 1728 };
    all.push(Event { sequence: 0, ..event(9, EventBody::Shortened(shortened)) });
    all.push(Event { sequence: 0, ..event(10, recalled(&["t-1", "t-2"])) });
    for event in &mut all {
        event.tenant = "acme-2".parse().unwrap();
        event.epoch = 2;
        event.call = Some("plan-3-1".parse().unwrap());
        event.previous = (event.index > 1).then_some(Digest([9; 32]));
        event.timing = Some(Timing { own: std::time::Duration::from_micros(31), ..Timing::default() });
        if let EventBody::Observation(_) = &event.body {
            event.artifacts.push(artifact.clone());
        }
        if let EventBody::Submitted(submitted) = &mut event.body {
            submitted.conversation = "c-1".into();
            submitted.request = Some(Digest([3; 32]));
        }
    }
    all
}

fn sample(version: u32, event: &Event) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("samples/v{version}/{}.bin", event.body.name()))
}

#[test]
fn stored_samples_are_read() {
    for (version, event) in v1_events().into_iter().map(|event| (1, event)).chain(v2_events().into_iter().map(|event| (2, event))) {
        let path = sample(version, &event);
        // the tools of this sample stand in the event, as they are not written any more
        let kept = matches!(event.body, EventBody::Submitted(_));
        if version == EVENT_VERSION && !kept && std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, encode(&event).unwrap()).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let event = Event { digest: Some(digest(&bytes)), ..event };
        assert_eq!(read(&bytes).unwrap(), event, "{}", path.display());
    }
}

/// A submission with what a client says beside the question, which version 2 gained after its first
/// samples.
fn with_context() -> Event {
    let context = TaskContext {
        task: TaskInfo { name: "rivers".into(), description: "Questions about rivers.".into(), answer_format: "one word".into() },
        profile: Profile { name: "Ada".into(), bio: "A guide.".into(), audience: "children".into() },
        instructions: vec!["Be brief.".into(), "Name no numbers.".into()],
        knowledge: vec!["atlas".into()],
        now: Some(at(7) + std::time::Duration::from_nanos(5)),
        time_zone: Some("Europe/Paris".parse().unwrap()),
    };
    let mut event = v2_events().remove(0);
    if let EventBody::Submitted(submitted) = &mut event.body {
        *submitted.context = context;
        submitted.trace_id = "0af7651916cd43dd8448eb211c80319c".into();
    }
    event
}

/// Whether a submission that version 2 gained later is read from its sample, and over the API, where
/// the digest of the request is not told.
fn check_submission(name: &str, event: Event) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("samples/v2/{name}.bin"));
    if std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
        std::fs::write(&path, encode(&event).unwrap()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(read(&bytes).unwrap(), Event { digest: Some(digest(&bytes)), ..event.clone() });
    let EventBody::Submitted(submitted) = event.body.clone() else { panic!("{event:?}") };
    let sent = Event { previous: None, body: EventBody::Submitted(Submitted { request: None, ..submitted }), ..event };
    assert_eq!(Event::try_from(v1::TrajectoryEvent::from(&sent)).unwrap(), sent);
}

#[test]
fn a_stored_context_is_read() {
    check_submission("submitted_context", with_context());
}

#[test]
fn a_stored_choice_of_tools_is_read() {
    let ranked = |name: &str, meaning, chosen| RankedTool { name: name.into(), score: 0.5, words: 0.25, meaning, chosen };
    let choice = ToolChoice { among: 300, ranked: vec![ranked("Weather", Some(0.625), true), ranked("Shout", None, false)] };
    let mut event = v2_events().remove(0);
    if let EventBody::Submitted(submitted) = &mut event.body {
        submitted.tool_choice = Some(choice);
    }
    check_submission("submitted_choice", event);
    // a score that is no number is one that says nothing
    let proto = v1::RankedTool { score: f64::NAN, meaning: Some(f64::INFINITY), ..v1::RankedTool::default() };
    let read = ToolChoice::from(v1::ToolChoice { among: 1, ranked: vec![proto] });
    assert_eq!((read.ranked[0].score, read.ranked[0].meaning), (0.0, None));
}

#[test]
fn what_is_unreadable_in_a_context_is_as_if_it_were_not_set() {
    let mut message = message(&with_context());
    let Some(v2::event::Body::Submitted(submitted)) = &mut message.body else { panic!("{message:?}") };
    let context = submitted.context.as_mut().unwrap();
    context.time_zone = "a zone of tomorrow".into();
    context.now = Some(prost_types::Timestamp { seconds: i64::MIN, nanos: -1 });
    let EventBody::Submitted(submitted) = read(&message.encode_to_vec()).unwrap().body else { panic!("{message:?}") };
    assert_eq!((submitted.context.now, submitted.context.time_zone), (None, None));
    assert_eq!(submitted.context.task.name, "rivers");
}

#[test]
fn tools_are_named_by_the_digest_of_their_specification() {
    let event = v2_events().remove(0);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/v2/submitted_by_digest.bin");
    if std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
        std::fs::write(&path, encode(&event).unwrap()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(encode(&event).unwrap(), bytes, "another digest would be another object for the same specification");
    assert_eq!(read(&bytes).unwrap(), Event { digest: Some(digest(&bytes)), ..event.clone() });
    // the specification is what it was
    let EventBody::Submitted(submitted) = &event.body else { unreachable!() };
    for (spec, stored) in stored_specs(submitted) {
        assert_eq!((&decode_spec(&stored.bytes).unwrap(), digest(&stored.bytes)), (spec, stored.digest));
    }
    // without one of them the task cannot go on, and is no broken one
    let mut some = specs();
    let (lost, _) = some.pop_first().unwrap();
    match decode(&Tenant::default(), &bytes, 0, &some) {
        Err(EventError::MissingTools(missing)) => assert!(missing.len() == 1 && missing[0].digest == lost, "{missing:?}"),
        other => panic!("{other:?}"),
    }
    let head = decode_without_tools(&Tenant::default(), &bytes, 0).unwrap();
    assert!(matches!(head.body, EventBody::Submitted(Submitted { tools, question, .. }) if tools.is_empty() && !question.is_empty()));
}

#[test]
fn many_tools_make_no_event_too_large() {
    let text = |bytes: usize| "x".repeat(bytes);
    let spec = |number| ToolSpec { definition: text(500), usage: text(500), ..tool(&format!("{number}{}", text(60)), Effect::ReadOnly) };
    let labels = (0..32).map(|number| (format!("{number}{}", text(250)), text(256))).collect();
    let context = TaskContext {
        task: TaskInfo { name: text(128), description: text(4096), answer_format: text(512) },
        profile: Profile { name: text(128), bio: text(4096), audience: text(512) },
        instructions: vec![text(512); 16],
        knowledge: vec![text(64); 16],
        ..TaskContext::default()
    };
    assert_eq!(context.check(), Ok(()));
    let submitted = Submitted {
        question: text(16 * 1024),
        tools: (0..65).map(spec).collect(),
        labels,
        context: Box::new(context),
        ..Submitted::default()
    };
    let stored = encode(&event(1, EventBody::Submitted(submitted)));
    assert!(stored.is_ok_and(|bytes| bytes.len() <= MAX_EVENT_BYTES));
}

#[test]
fn an_event_of_version_1_has_the_tenant_it_is_read_for() {
    let bytes = std::fs::read(sample(1, &v1_events()[0])).unwrap();
    let tenant: Tenant = "acme".parse().unwrap();
    assert_eq!(decode(&tenant, &bytes, 4, &specs()).unwrap().tenant, tenant);
}

fn message(event: &Event) -> v2::Event {
    v2::Event::decode(encode(event).unwrap().as_slice()).unwrap()
}

/// A body of the future: field 99, empty.
fn with_future_body(event: v2::Event) -> Vec<u8> {
    let mut bytes = v2::Event { body: None, version: EVENT_VERSION + 1, ..event }.encode_to_vec();
    bytes.extend([0x9a, 0x06, 0x00]);
    bytes
}

fn given(text: &str, by: &str) -> InputGiven {
    InputGiven { step: 3, kind: InputKind::Approval, text: text.into(), approved: true, for_task: true, by: by.into() }
}

#[test]
fn run_control_is_read_as_it_is_written() {
    let EventBody::Submitted(mut submitted) = submitted(LIMITS) else { unreachable!() };
    submitted.tools[1].asks = Some(Asks::Approval);
    submitted.tools.push(ToolSpec::ask_user());
    submitted.approval = ApprovalPolicy::Untrusted;
    let origin = Origin { task: "task-0".parse().unwrap(), steps: 2, events: 6, last: Some(Digest([3; 32])) };
    submitted.origin = Some(Box::new(origin));
    let specs: BTreeMap<Digest, ToolSpec> = stored_specs(&submitted).map(|(spec, stored)| (stored.digest, spec.clone())).collect();
    let asked = |kind| EventBody::InputRequested(InputRequested { step: 3, kind, tool: "Send".into(), prompt: "x".into() });
    let bodies = [
        EventBody::Submitted(submitted),
        EventBody::Paused(Paused { by: "ann".into(), reason: "lunch".into() }),
        EventBody::Resumed(Resumed { by: "ann".into() }),
        asked(InputKind::Answer),
        asked(InputKind::Approval),
        EventBody::InputGiven(given("yes", "ann")),
        EventBody::Observation(Observation { text: "x".into(), untrusted: true, ..Observation::default() }),
    ];
    for (body, index) in bodies.into_iter().zip(1..) {
        let event = Event { sequence: 0, digest: None, ..event(index, body) };
        let stored = Event { digest: None, ..decode(&Tenant::default(), &encode(&event).unwrap(), 0, &specs).unwrap() };
        assert_eq!(stored, event);
        // an older gateway leaves such a task to one that knows them
        assert!(!message(&event).ignorable);
        let told = Event::try_from(v1::TrajectoryEvent::from(&event)).unwrap();
        match (told.body, event.body) {
            (EventBody::Submitted(told), EventBody::Submitted(kept)) => {
                assert_eq!((told.tools, told.approval), (kept.tools, kept.approval));
                let named = |origin: Option<Box<Origin>>| origin.map(|origin| (origin.task, origin.steps));
                assert_eq!(named(told.origin), named(kept.origin));
            }
            (told, kept) => assert_eq!(told, kept),
        }
    }
    // a policy of a later release is taken as the one that asks most
    let EventBody::Submitted(plain) = self::submitted(LIMITS) else { unreachable!() };
    let mut later = message(&event(1, EventBody::Submitted(plain)));
    let Some(v2::event::Body::Submitted(body)) = &mut later.body else { unreachable!() };
    body.approval = 99;
    let EventBody::Submitted(read) = read(&later.encode_to_vec()).unwrap().body else { unreachable!() };
    assert_eq!(read.approval, ApprovalPolicy::Effects);
}

/// A release that does not know the body can go on where prompts do not depend on it.
#[test]
fn only_an_empty_recall_can_be_passed_over() {
    let failed = EventBody::Recalled(Recalled::failed("memory is away"));
    for (body, ignorable) in [(recalled(&["t-1"]), false), (recalled(&[]), true), (failed, true)] {
        assert_eq!(message(&event(3, body)).ignorable, ignorable);
    }
}

#[test]
fn the_largest_recall_is_an_event() {
    for bytes in [0, 20, 100, 30_000] {
        let item = |at: usize| RecalledItem {
            kind: RecalledKind::Task,
            task_id: format!("{at:04}"),
            question: "q".repeat(bytes),
            answer: "a".into(),
            approved: true,
            finished_at: Some(at_end()),
            score: 0.123,
        };
        let recalled = Recalled::boxed((0..1000).map(item), usize::MAX);
        assert!(recalled.left_out > 0);
        let recalled = Recalled { failure: "f".repeat(4096), ..recalled };
        assert!(encode(&event(3, EventBody::Recalled(recalled))).is_ok_and(|bytes| bytes.len() < MAX_EVENT_BYTES));
    }
}

fn at_end() -> std::time::SystemTime {
    at(4_000_000_000) + std::time::Duration::from_nanos(999_999_999)
}

#[test]
fn what_a_later_program_wrote_keeps_its_place() {
    let event = &v2_events()[2];
    let unknown = |bytes: &[u8]| match read(bytes).unwrap() {
        Event { body: EventBody::Unknown(unknown), index: 3, .. } => unknown,
        other => panic!("{other:?}"),
    };
    let later = EVENT_VERSION + 1;
    assert_eq!(unknown(&with_future_body(message(event))), Unknown { version: later, needed: true });
    let ignorable = v2::Event { ignorable: true, ..message(event) };
    assert_eq!(unknown(&with_future_body(ignorable.clone())), Unknown { version: later, needed: false });
    // one that only later readers understand is needed, whatever else it says
    let min_reader = v2::Event { min_reader: later, version: later, ..ignorable };
    assert_eq!(unknown(&min_reader.encode_to_vec()), Unknown { version: later, needed: true });
    // a later version that this reader understands is an event like any other
    let later = v2::Event { version: later, ..message(event) };
    assert!(matches!(read(&later.encode_to_vec()).unwrap().body, EventBody::Thought(_)));
}

#[test]
fn unknown_enumeration_values_stop_nobody() {
    let body = |at: usize, change: &dyn Fn(&mut v2::event::Body)| {
        let mut message = message(&v2_events()[at]);
        change(message.body.as_mut().unwrap());
        read(&message.encode_to_vec()).unwrap().body
    };
    let finished = body(6, &|body| {
        if let v2::event::Body::Finished(finished) = body {
            finished.reason = 99;
        }
    });
    assert!(matches!(finished, EventBody::Finished(Finished { reason: FinishReason::Other, .. })));
    let reflected = body(5, &|body| {
        if let v2::event::Body::Reflection(reflection) = body {
            reflection.verdict = 99;
        }
    });
    assert!(matches!(reflected, EventBody::Reflection(Reflection { verdict: Verdict::Wrong, .. })));
    let spec = v2::ToolSpec { name: "Send".into(), effect: 99, ..v2::ToolSpec::default() };
    assert_eq!(decode_spec(&spec.encode_to_vec()).unwrap().effect, Effect::SideEffect);
    let released = body(7, &|body| {
        if let v2::event::Body::Released(released) = body {
            released.reason = 99;
        }
    });
    assert!(matches!(released, EventBody::Released(Released { reason: ReleaseReason::Other, .. })));
}

#[test]
fn a_tool_that_says_that_there_is_no_answer_keeps_its_meaning() {
    for terminal in [None, Some(Terminal::Answer), Some(Terminal::NoAnswer)] {
        let EventBody::Submitted(mut submitted) = submitted(LIMITS) else { unreachable!() };
        submitted.tools.truncate(1);
        submitted.tools[0].terminal = terminal;
        let stored: Vec<_> = stored_specs(&submitted).map(|(_, stored)| decode_spec(&stored.bytes).unwrap().terminal).collect();
        assert_eq!(stored, [terminal]);
        let shown = v1::ToolSpec::from(&submitted.tools[0]);
        assert_eq!((shown.terminal, shown.no_answer), (terminal.is_some(), terminal == Some(Terminal::NoAnswer)));
        assert_eq!(ToolSpec::try_from(shown).unwrap().terminal, terminal);
    }
    // a tool that is run is not made terminal by the second flag
    let odd = v2::ToolSpec { name: "Send".into(), no_answer: true, ..v2::ToolSpec::default() };
    assert_eq!(decode_spec(&odd.encode_to_vec()).unwrap().terminal, None);

    let end = Finished {
        answer: String::new(),
        approved: false,
        reason: FinishReason::NoAnswer,
        detail: "the mouth of Loire".into(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    let event = event(7, EventBody::Finished(end));
    assert_eq!(read(&encode(&event).unwrap()).unwrap().body, event.body);
    assert_eq!(Event::try_from(v1::TrajectoryEvent::from(&event)).unwrap().body, event.body);
}

#[test]
fn log_probabilities_are_stored_and_shown() {
    let scored = |log_prob, log_odds| Event {
        usage: Some(Usage { log_prob, scored_tokens: 12, ..usage(20) }),
        ..event(6, EventBody::Reflection(Reflection { log_odds, ..Reflection::new("So it is.", Verdict::Right) }))
    };
    let numbers = |event: &Event| match &event.body {
        EventBody::Reflection(reflection) => (event.usage.as_ref().unwrap().log_prob, reflection.log_odds),
        other => panic!("{other:?}"),
    };
    for (log_prob, log_odds) in [(Some(-3.25), Some(-0.5)), (Some(-1e-300), Some(0.0)), (None, None)] {
        let event = scored(log_prob, log_odds);
        let stored = read(&encode(&event).unwrap()).unwrap();
        assert_eq!((numbers(&stored), stored.usage), ((log_prob, log_odds), event.usage.clone()));
        let shown = v1::TrajectoryEvent::from(&event);
        assert_eq!(shown.usage.as_ref().map(|usage| (usage.log_prob, usage.scored_tokens)), Some((log_prob, 12)));
        assert!(matches!(shown.body, Some(v1::trajectory_event::Body::Reflection(reflection)) if reflection.log_odds == log_odds));
    }
    // what nobody can compute with is as good as absent
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(numbers(&read(&encode(&scored(Some(odd), Some(odd))).unwrap()).unwrap()), (None, None));
    }
}

#[test]
fn a_tools_schema_and_examples_are_stored() {
    let schema = r#"{"type":"object","properties":{"from":{"type":"string"},"amount":{"type":"number"}}}"#;
    let spec = ToolSpec {
        schema: Some(ParameterSchema::parse(schema).unwrap()),
        examples: vec![r#"{"from":"km","amount":3}"#.to_owned()],
        multiline: true,
        ..tool("Convert", Effect::ReadOnly)
    };
    let submitted = Submitted { tools: vec![spec.clone()], ..Submitted::default() };
    let bytes = stored_specs(&submitted).next().unwrap().1.bytes;
    assert_eq!(decode_spec(&bytes).unwrap(), spec);
    assert_eq!(ToolSpec::try_from(v1::ToolSpec::from(&spec)).unwrap(), spec);
    // on the wire a schema that is none is a mistake; in a stored one it is one of a later program
    let broken = v1::ToolSpec { schema: "{}".to_owned(), ..v1::ToolSpec::from(&spec) };
    assert!(matches!(ToolSpec::try_from(broken), Err(ConversionError::Schema { .. })));
    let later = v2::ToolSpec { schema: "{}".to_owned(), ..v2::ToolSpec::decode(bytes.as_slice()).unwrap() };
    assert_eq!(decode_spec(&later.encode_to_vec()).unwrap(), ToolSpec { schema: None, ..spec });
}

#[test]
fn what_is_no_event_is_an_error() {
    let good = message(&v2_events()[2]);
    let refused = |event: v2::Event| read(&event.encode_to_vec()).unwrap_err();
    assert!(matches!(refused(v2::Event { version: 0, ..good.clone() }), EventError::Field(_)));
    assert!(matches!(refused(v2::Event { task_id: "a.b".into(), ..good.clone() }), EventError::TaskId(_)));
    assert!(matches!(refused(v2::Event { tenant: "a.b".into(), ..good.clone() }), EventError::Tenant(_)));
    assert!(matches!(refused(v2::Event { time: None, ..good.clone() }), EventError::Field(_)));
    assert!(matches!(refused(v2::Event { index: 0, ..good }), EventError::Field(_)));
    assert!(matches!(read(b"\xff\xff"), Err(EventError::Malformed(_))));
}

fn largest_source() -> Source {
    let text = |bytes: usize| "x".repeat(bytes);
    let (title, heading) = (text(MAX_SOURCE_HEADING_BYTES), text(MAX_SOURCE_HEADING_BYTES));
    Source { file: text(MAX_SOURCE_PATH_BYTES), title, heading, ..Source::default() }
}

/// An observation and an end with all that sources and citations can say.
fn with_sources() -> [Event; 2] {
    let source = Source {
        collection: "handbook".into(),
        file: "travel.pdf".into(),
        title: "Travel".into(),
        heading: "Hotels".into(),
        page: Some(3),
        start: 120,
        end: 142,
        text: "A manager approves it.".into(),
    };
    let own = Source { title: "Loire".into(), end: 9, text: "It flows.".into(), ..Source::default() };
    let Source { collection, file, title, heading, page, start, end, text } = source.clone();
    let citation = Citation { step: 2, collection, file, title, heading, page, start, end, quote: text };
    let plain = Citation { step: 1, title: "Loire".into(), end: 9, quote: "It flows.".into(), ..Citation::default() };
    let seen = Observation { text: "A manager approves it.".into(), sources: vec![source, own], ..Observation::default() };
    let end = Finished {
        answer: "A manager".into(),
        approved: true,
        reason: FinishReason::Approved,
        detail: String::new(),
        citations: vec![plain, citation],
        open_effect: None,
        by: String::new(),
    };
    [event(5, EventBody::Observation(seen)), event(9, EventBody::Finished(end))].map(|event| Event { sequence: 0, ..event })
}

#[test]
fn sources_and_citations_are_stored_and_shown() {
    for event in with_sources() {
        let name = format!("samples/v2/{}_with_sources.bin", event.body.name());
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
        if std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
            std::fs::write(&path, encode(&event).unwrap()).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(encode(&event).unwrap(), bytes);
        assert_eq!(read(&bytes).unwrap().body, event.body);
        assert_eq!(Event::try_from(v1::TrajectoryEvent::from(&event)).unwrap().body, event.body);
    }
    let [seen, _] = with_sources();
    let EventBody::Observation(Observation { sources, .. }) = seen.body else { unreachable!() };
    // whoever asks for a task sees them, and the agents are not sent them
    let step = Step { sources, ..Step::default() };
    let trajectory = Trajectory { turns: vec![Turn::Step(step.clone())], ..Trajectory::default() };
    assert_eq!(Turn::try_from(v1::Turn::from(&trajectory.turns[0])).unwrap(), Turn::Step(step));
    assert_eq!(Trajectory::try_from(v1::Trajectory::from(&trajectory)).unwrap().turns, [Turn::Step(Step::default())]);
}

#[test]
fn who_submitted_and_who_cancelled_is_stored_and_shown() {
    let mut first = v2_events().remove(0);
    let EventBody::Submitted(submitted) = &mut first.body else { unreachable!() };
    submitted.by = "ann".into();
    check_submission("submitted_by", first.clone());
    let task = Task::begin(&first).unwrap();
    let end = Finished { by: "bob".into(), ..task.finish(FinishReason::Cancelled, "cancelled by a client") };
    let last = Event { sequence: 0, ..event(9, EventBody::Finished(end)) };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/v2/finished_by.bin");
    if std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
        std::fs::write(&path, encode(&last).unwrap()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(encode(&last).unwrap(), bytes);
    assert_eq!(read(&bytes).unwrap().body, last.body);
    assert_eq!(Event::try_from(v1::TrajectoryEvent::from(&last)).unwrap().body, last.body);
    let shown = v1::Task::from(&task);
    assert_eq!((shown.submitted_by.as_str(), shown.cancelled_by.as_str()), ("ann", ""));
}

#[test]
fn what_the_next_attempt_is_given_is_stored_and_shown() {
    let mut first = v2_events().remove(0);
    let EventBody::Submitted(submitted) = &mut first.body else { unreachable!() };
    submitted.next_attempt = Some(NextAttempt::Anew);
    let shown = v1::Task::from(&Task::begin(&first).unwrap());
    assert_eq!(shown.next_attempt(), v1::NextAttempt::Anew);
    check_submission("next_attempt", first);
    let judged = |next_attempt| event(6, EventBody::Reflection(Reflection { next_attempt, ..Reflection::new("No.", Verdict::Wrong) }));
    let [continues, anew] = [NextAttempt::Continues, NextAttempt::Anew].map(judged);
    assert_eq!(encode(&continues).unwrap().len() + 2, encode(&anew).unwrap().len(), "as long as it was before there was a choice");
    for judged in [continues, anew] {
        assert_eq!(read(&encode(&judged).unwrap()).unwrap().body, judged.body);
        assert_eq!(Event::try_from(v1::TrajectoryEvent::from(&judged)).unwrap().body, judged.body);
    }
    for (number, next) in [(0, None), (1, Some(NextAttempt::Continues)), (2, Some(NextAttempt::Anew)), (3, None), (-1, None)] {
        assert_eq!(autoact_wire::next_attempt(number), next, "{number}");
    }
}

#[test]
fn the_largest_parts_make_no_event_too_large() {
    let text = |bytes: usize| "x".repeat(bytes);
    let reason = ReleaseReason::Waiting;
    let citation = Citation {
        step: u32::MAX,
        collection: String::new(),
        file: text(MAX_SOURCE_PATH_BYTES),
        title: text(MAX_SOURCE_HEADING_BYTES),
        heading: text(MAX_SOURCE_HEADING_BYTES),
        page: Some(u32::MAX),
        start: u64::MAX,
        end: u64::MAX,
        quote: text(MAX_QUOTES_BYTES / MAX_CITATIONS),
    };
    let finished = Finished {
        answer: text(MAX_PARAMS_BYTES),
        approved: false,
        reason: FinishReason::Failed,
        detail: text(MAX_DETAIL_BYTES),
        citations: vec![citation; MAX_CITATIONS],
        open_effect: Some(u32::MAX),
        by: text(MAX_BY_BYTES),
    };
    let source = Source { start: 1 << 60, end: (1 << 60) + 4096, page: Some(u32::MAX), text: text(4096), ..largest_source() };
    let sources = bound_sources(vec![source; MAX_SOURCES], MAX_OBSERVED_BYTES - MAX_OBSERVATION_BYTES);
    assert!(sources.len() > 1, "{}", sources.len());
    let artifact = Artifact {
        kind: text(MAX_ARTIFACT_NAME_BYTES / 2),
        media_type: text(MAX_ARTIFACT_NAME_BYTES / 2),
        name: text(MAX_ARTIFACT_NAME_BYTES),
        object: text(200),
        bytes: MAX_ARTIFACT_BYTES as u64,
        sha256: Some(Digest([7; 32])),
        text: text(MAX_ARTIFACT_TEXT_BYTES),
    };
    let bodies = [
        EventBody::Thought(Thought { thought: text(MAX_THOUGHT_BYTES), tool: text(MAX_NAME_BYTES) }),
        EventBody::Action(Action { tool: text(MAX_NAME_BYTES), params: text(MAX_PARAMS_BYTES) }),
        EventBody::Observation(Observation { text: text(MAX_OBSERVATION_BYTES), sources, ..Observation::default() }),
        EventBody::Reflection(Reflection { log_odds: Some(-1.5), ..Reflection::new(text(MAX_THOUGHT_BYTES), Verdict::Wrong) }),
        EventBody::Finished(finished),
        EventBody::Released(Released { reason, detail: text(MAX_DETAIL_BYTES), may_have_run: true }),
        EventBody::Paused(Paused { by: text(MAX_BY_BYTES), reason: text(MAX_INPUT_BYTES) }),
        EventBody::InputRequested(InputRequested {
            step: u32::MAX,
            kind: InputKind::Approval,
            tool: text(MAX_NAME_BYTES),
            prompt: text(MAX_PARAMS_BYTES),
        }),
        EventBody::InputGiven(given(&text(MAX_INPUT_BYTES), &text(MAX_BY_BYTES))),
    ];
    let scores = Usage { log_prob: Some(-1.5), scored_tokens: u32::MAX, ..usage(7) };
    let names = Usage { model: text(999), adapter: text(999), adapter_digest: text(999), ..scores }.bounded();
    for body in bodies {
        body.check_bounds().unwrap();
        let artifacts = if let EventBody::Observation(_) = &body { vec![artifact.clone(); MAX_ARTIFACTS] } else { Vec::new() };
        let event = Event { usage: Some(names.clone()), artifacts, ..event(9, body) };
        assert!(encode(&event).is_ok_and(|bytes| bytes.len() <= MAX_EVENT_BYTES), "{}", event.body.name());
    }
    let refused = encode(&event(3, observation(&text(MAX_EVENT_BYTES)))).unwrap_err();
    assert!(refused.event == "observation" && refused.bytes > MAX_EVENT_BYTES);
}

#[test]
fn records_of_the_index_are_read_as_they_are_written() {
    let ended = IndexEntry::Ended { index: 9, hash: Some(Digest([1; 32])) };
    let purged = [PurgeReason::Room, PurgeReason::Request { by: "ann".into() }].map(IndexEntry::Purged);
    for entry in [IndexEntry::Submitted, IndexEntry::Resumed, ended, IndexEntry::Lost, IndexEntry::Unknown].into_iter().chain(purged) {
        let record = IndexRecord { task: key(), time: at(3), previous: Some(Digest([2; 32])), entry };
        assert_eq!(IndexRecord::decode(&record.encode()).unwrap(), record);
        assert_eq!(About::decode(&record.encode()).unwrap(), About::Task(record));
    }
    for mark in [Mark::Trimmed { previous: Some(Digest([1; 32])) }, Mark::RetentionRecorded] {
        let record = IndexMark { time: at(3), previous: Some(Digest([2; 32])), mark };
        assert_eq!(About::decode(&record.encode()).unwrap(), About::Index(record.clone()));
        // a release that knows no marks passes over it: it is about no task
        assert!(IndexRecord::decode(&record.encode()).is_err());
    }
}

fn words() -> impl Strategy<Value = String> {
    "[a-zé/ ]{0,12}"
}

proptest! {
    #[test]
    fn any_source_and_citation_comes_back(
        labels in prop::array::uniform4(words()), page in any::<Option<u32>>(), start in any::<u64>(), end in any::<u64>(),
        text in any::<String>(), step in any::<u32>(),
    ) {
        let [collection, file, title, heading] = labels;
        let source = Source { collection, file, title, heading, page, start, end, text };
        let Source { collection, file, title, heading, page, start, end, text } = source.clone();
        let citation = Citation { step, collection, file, title, heading, page, start, end, quote: text };
        prop_assert_eq!(Source::from(v1::Source::from(&source)), source.clone());
        prop_assert_eq!(Source::from(v2::Source::from(&source)), source);
        prop_assert_eq!(Citation::from(v1::Citation::from(&citation)), citation.clone());
        prop_assert_eq!(Citation::from(v2::Citation::from(&citation)), citation);
    }

    #[test]
    fn bytes_from_anywhere_never_panic(
        at in 0..9usize, cut in any::<prop::sample::Index>(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = read(&noise);
        let mut bytes = encode(&v2_events()[at]).unwrap();
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let _ = read(&bytes);
        let _ = IndexRecord::decode(&bytes);
    }
}
