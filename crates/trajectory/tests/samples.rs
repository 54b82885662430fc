//! Events as earlier versions stored them must be read for ever. One file per body and version under `samples/`; a new version adds a
//! folder and changes none. `AUTOACT_WRITE_SAMPLES=1 cargo test -p autoact-trajectory --test samples` writes those of the current one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod common;

use std::path::PathBuf;

use autoact_proto::v1;
use autoact_trajectory::*;
use common::*;
use prost::Message;

fn v1_events() -> Vec<Event> {
    let finished = Finished {
        answer: "Paris".into(),
        approved: false,
        reason: FinishReason::MaxReflections,
        detail: "bound on wrong verdicts: 2".into(),
    };
    let seen = Observation { text: "Loire is a river in France.".into(), is_error: true, repeated: true, truncated: true };
    let bodies = [
        submitted(Limits::default()),
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

fn sample(version: u32, event: &Event) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("samples/v{version}/{}.bin", event.body.name()))
}

#[test]
fn stored_samples_are_read() {
    for event in v1_events() {
        let path = sample(1, &event);
        if std::env::var_os("AUTOACT_WRITE_SAMPLES").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, event.encode()).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(Event::decode(&bytes, 0).unwrap(), event, "{}", path.display());
    }
}

#[test]
fn what_stood_around_a_call_travels_with_it() {
    let part = std::time::Duration::from_micros;
    let timing = Timing { own: part(31), bus: part(140), retry: part(50_000) };
    let event = Event { timing: Some(timing), sequence: 0, ..v1_events().remove(2) };
    assert_eq!(Event::decode(&event.encode(), 0).unwrap(), event);
    // earlier events have none
    assert_eq!(v1_events()[2].timing, None);
}

#[test]
fn what_we_cannot_read_is_an_error() {
    let good = v1::TrajectoryEvent::from(&v1_events()[2]);
    let read = |event: v1::TrajectoryEvent| Event::decode(&event.encode_to_vec(), 1).unwrap_err();
    assert!(matches!(read(v1::TrajectoryEvent { version: EVENT_VERSION + 1, ..good.clone() }), EventError::Version { .. }));
    assert!(matches!(read(v1::TrajectoryEvent { version: 0, ..good.clone() }), EventError::Field(_)));
    assert!(matches!(read(v1::TrajectoryEvent { body: None, ..good.clone() }), EventError::UnknownBody));
    assert!(matches!(read(v1::TrajectoryEvent { task_id: "a.b".into(), ..good.clone() }), EventError::TaskId(_)));
    assert!(matches!(read(v1::TrajectoryEvent { time: None, ..good.clone() }), EventError::Field(_)));
    // field 99, a body of the future
    let mut future = v1::TrajectoryEvent { body: None, ..good }.encode_to_vec();
    future.extend([0x9a, 0x06, 0x00]);
    assert!(matches!(Event::decode(&future, 1), Err(EventError::UnknownBody)));
    assert!(matches!(Event::decode(b"\xff\xff", 1), Err(EventError::Malformed(_))));
}
