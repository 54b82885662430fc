//! A task with known durations. For tests only.

use std::time::{Duration, SystemTime};

use autoact_wire::v1::{self, trajectory_event::Body};
use tokio::time::Instant;

use crate::account::Account;
use crate::collect::{Collected, Record};
use crate::report::{Asked, Report};
use crate::seen::{End, Seen};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn proto(millis: u64) -> Option<prost_types::Duration> {
    ms(millis).try_into().ok()
}

/// An event written `at` ms after the first, with own time, time on the bus and time of retries.
fn event(index: u64, at: u64, timing: [u64; 3], usage: Option<v1::Usage>, body: Body) -> v1::TrajectoryEvent {
    let [own, bus, retry] = timing.map(proto);
    v1::TrajectoryEvent {
        version: 1,
        task_id: "t".into(),
        index,
        time: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: (at * 1_000_000) as i32 }),
        usage,
        timing: Some(v1::Timing { own, bus, retry }),
        body: Some(body),
        ..v1::TrajectoryEvent::default()
    }
}

/// A task with these durations: 7 ms late, 4 ms network; 1 ms to check, 3 ms to store and queue, 20
/// ms until the lease (2 ms to read, 1 ms own). Then `Started` is stored (1 ms) and Plan-Agent
/// called (45 ms), stored (1 ms), a tool called (50 ms failed, then 8 ms), stored (1 ms), and the
/// end delivered after 2 ms. 147 ms in all.
pub(crate) fn task(intended: Instant) -> Seen {
    let plan = v1::Usage {
        queue: proto(2),
        prefill: proto(10),
        decode: proto(30),
        total: proto(45),
        prompt_tokens: 100,
        cached_prompt_tokens: 80,
        completion_tokens: 12,
        ..v1::Usage::default()
    };
    let tool = v1::Usage { tool: proto(6), total: proto(8), ..v1::Usage::default() };
    let finished =
        v1::Finished { answer: "Paris".into(), approved: true, reason: v1::FinishReason::Approved as i32, ..v1::Finished::default() };
    let events = vec![
        event(1, 0, [1, 0, 0], None, Body::Submitted(v1::Submitted::default())),
        event(2, 26, [1, 2, 0], None, Body::Started(v1::Started { gateway: "g".into(), attempt: 1 })),
        event(3, 72, [0, 1, 0], Some(plan), Body::Thought(v1::Thought::default())),
        event(4, 131, [0, 1, 50], Some(tool), Body::Observation(v1::Observation::default())),
        event(5, 133, [1, 1, 0], None, Body::Finished(finished.clone())),
    ];
    let sent = intended + ms(7);
    Seen {
        sent,
        done: sent + ms(140),
        end: End::Finished(finished),
        events,
        // 1 to check, 133 to the end, 2 to deliver
        elapsed: Some(ms(136)),
        accepted: Some(ms(4)),
        recall: None,
        reconnects: 0,
    }
}

/// Results with `finished` tasks like [`task`], every other one right, two refused ones, and one of
/// the warm-up.
pub(crate) fn collected(finished: u64) -> Collected {
    let begin = Instant::now();
    let mut collected = Collected::new(ms(1000), ms(11_000));
    let record = |arrived: u64, end: Option<End>| {
        let seen = task(begin);
        let account = Account::of(begin, &seen);
        let end = end.unwrap_or(seen.end);
        Record {
            arrived: ms(arrived),
            ended: ms(arrived + 147),
            account,
            end,
            right: Some(arrived.is_multiple_of(2)),
            recall_failed: false,
        }
    };
    collected.add(record(500, None));
    (0..finished).for_each(|number| collected.add(record(1000 + number, None)));
    for arrived in [2000, 3000] {
        let refused = End::Status { code: "RESOURCE_EXHAUSTED", message: "full".into() };
        collected.add(record(arrived, Some(refused)));
    }
    collected.took = ms(12_000);
    collected
}

/// The report of [`collected`].
pub(crate) fn report(finished: u64) -> Report {
    let asked = Asked {
        arrivals: "poisson".into(),
        rate: Some(4.2),
        warmup_seconds: 1.0,
        duration_seconds: 10.0,
        questions: "dev <b>".into(),
        ..Asked::default()
    };
    Report::new(asked, SystemTime::UNIX_EPOCH, &collected(finished))
}
