//! Events and answers tell where the time went.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use crate::common::scripted::{Group, Script};
use crate::common::*;
use autoact_wire::v1;
use autoact_wire::v1::trajectory_event::Body;

fn duration(value: Option<prost_types::Duration>) -> Duration {
    value.unwrap().try_into().unwrap()
}

fn time(event: &v1::TrajectoryEvent) -> SystemTime {
    event.time.unwrap().try_into().unwrap()
}

#[tokio::test]
async fn the_time_between_two_events_has_owners() {
    let mut world = world(Group::start(Script::default()).await).await;
    // the first attempt of a call is refused, and made again after a pause
    world.group.inner.busy.store(1, Ordering::SeqCst);
    let sent = Instant::now();
    let mut stream = world.client.ask(v1::AskRequest { task: Some(task("Loire")), ..Default::default() }).await.unwrap().into_inner();
    let mut responses = Vec::new();
    while let Some(response) = stream.message().await.unwrap() {
        responses.push(response);
    }
    let took = sent.elapsed();

    let elapsed: Vec<Duration> = responses.iter().map(|response| duration(response.elapsed)).collect();
    assert!(elapsed.is_sorted() && elapsed.last().is_some_and(|last| *last <= took), "{elapsed:?} of {took:?}");
    assert!(responses.iter().all(|response| duration(response.accepted) <= elapsed[0]));

    let events: Vec<v1::TrajectoryEvent> = responses.into_iter().filter_map(|response| response.event).collect();
    for pair in events.windows(2).skip(1) {
        let (timing, usage) = (pair[1].timing.unwrap(), pair[1].usage.clone().unwrap_or_default());
        let whole = time(&pair[1]).duration_since(time(&pair[0])).unwrap();
        let call = usage.total.map(|total| duration(Some(total))).unwrap_or_default();
        let told = duration(timing.own) + duration(timing.bus) + duration(timing.retry) + call;
        assert!(duration(timing.bus) > Duration::ZERO, "storing takes time: {pair:?}");
        assert!(told.abs_diff(whole) < Duration::from_millis(5) + whole / 20, "{told:?} of {whole:?}: {pair:?}");
    }
    let retries: Vec<Duration> = events.iter().map(|event| duration(event.timing.unwrap().retry)).collect();
    let thought = events.iter().position(|event| matches!(event.body, Some(Body::Thought(_)))).unwrap();
    // the first pause is 50 ms, and jitter leaves half of it at least
    assert!(retries[thought] >= Duration::from_millis(25), "{retries:?}");
    let call = duration(events[thought].usage.as_ref().unwrap().total);
    assert!(call < retries[thought], "the attempt that worked is counted alone: {call:?}");
    world.gateway.stop().await.unwrap();
}
