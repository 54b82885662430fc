//! Streams that are gone or others, and servers that say too early that they have stored.

use std::time::Duration;

use autoact_bus::{Bus, BusError, Kind, check_durability};
use autoact_testkit::{NatsServer, poll};
use autoact_trajectory::Tenant;
use futures::StreamExt;

use crate::{LIMIT, config, ended, id, look, running, says, server, stream};

#[tokio::test]
async fn streams_that_vanish_are_an_error_and_are_not_made_anew() {
    let (mut server, bus) = server().await;
    let runs = running(&bus, &id("t"), 1).await;
    let mut reader = Box::pin(bus.read(&id("t"), runs.last().unwrap().sequence));
    let watcher = tokio::spawn(async move { reader.next().await });
    let mut leases = bus.leases(&[Tenant::default()]).await.unwrap();
    tokio::time::timeout(LIMIT, leases.next()).await.unwrap().nak(Duration::ZERO).await.unwrap();
    let waits = tokio::spawn(async move { leases.next().await.task().clone() });
    bus.answers().await.unwrap();
    server.lose_disk();
    server.resume().await.unwrap();
    let lost = poll::until(LIMIT, async || matches!(bus.answers().await, Err(BusError::Vanished { .. })).then_some(()));
    assert!(lost.await.is_some(), "the gateway is not ready, and says why");
    let told = tokio::time::timeout(LIMIT, watcher).await.unwrap().unwrap();
    assert!(matches!(told, Some(Err(BusError::Vanished { .. }))), "{told:?}");
    assert!(matches!(bus.last(&id("t")).await, Err(BusError::Vanished { .. })));
    assert!(matches!(bus.record_submission(&id("u")).await, Err(BusError::Vanished { .. })));
    let client = async_nats::connect(server.url()).await.unwrap();
    let streams: Vec<String> = async_nats::jetstream::new(client).stream_names().map(Result::unwrap).collect().await;
    assert_eq!(streams, Vec::<String>::new());
    // another process starts there, and makes them: this one knows that they are others
    let fresh = Bus::connect(config(&server)).await.unwrap();
    assert!(fresh.answers().await.is_ok() && matches!(bus.answers().await, Err(BusError::Vanished { .. })));
    waits.abort();
}

#[tokio::test]
async fn a_bus_that_lacks_a_stream_is_refused() {
    let (server, bus) = server().await;
    ended(&bus, &id("t"), 1).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).delete_stream("AUTOACT_TASK_INDEX").await.unwrap();
    for error in [Bus::connect(config(&server)).await.unwrap_err(), Bus::attach(config(&server)).await.unwrap_err()] {
        assert!(matches!(&error, BusError::Vanished { stream } if stream == "AUTOACT_TASK_INDEX"), "{error}");
        assert!(!error.retryable());
    }
}

#[tokio::test]
async fn streams_that_dropped_by_themselves_are_taken_over() {
    let (server, bus) = server().await;
    ended(&bus, &id("old"), 2).await;
    running(&bus, &id("runs"), 2).await;
    bus.close().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    for name in ["AUTOACT_TRAJECTORIES", "AUTOACT_TASK_INDEX"] {
        let mut config = jetstream.get_stream(name).await.unwrap().cached_info().config.clone();
        config.discard = async_nats::jetstream::stream::DiscardPolicy::Old;
        jetstream.update_stream(config).await.unwrap();
    }
    // as a full stream did: the first events and records are gone
    jetstream.get_stream("AUTOACT_TRAJECTORIES").await.unwrap().purge().sequence(4).await.unwrap();
    jetstream.get_stream("AUTOACT_TASK_INDEX").await.unwrap().purge().sequence(2).await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    let report = look(&bus, None).await;
    assert_eq!(report.findings, [], "{report:?}");
    let found = jetstream.get_stream("AUTOACT_TRAJECTORIES").await.unwrap().cached_info().config.clone();
    assert_eq!(found.discard, async_nats::jetstream::stream::DiscardPolicy::New);
    // what goes from now on is a loss
    ended(&bus, &id("new"), 2).await;
    stream(&server, "AUTOACT_TRAJECTORIES").await.purge().filter("autoact.default.traj.new").await.unwrap();
    assert!(says(&look(&bus, None).await, &id("new"), Kind::TaskMissing));
}

#[tokio::test]
async fn a_server_says_whether_it_writes_before_it_acknowledges() {
    let safe = NatsServer::start_with("http: \"127.0.0.1:-1\"\njetstream { sync_interval: always }\n").await.unwrap();
    let unsafe_one = NatsServer::start_with("http: \"127.0.0.1:-1\"\n").await.unwrap();
    let (safe, unsafe_one) =
        (safe.monitoring().map(|url| (safe, url)).unwrap(), unsafe_one.monitoring().map(|url| (unsafe_one, url)).unwrap());
    check_durability(&safe.1).await.unwrap();
    assert!(matches!(check_durability(&unsafe_one.1).await, Err(BusError::Unsynced { .. })));
    // each server of a cluster counts
    assert!(matches!(check_durability(&format!("{}, {}", safe.1, unsafe_one.1)).await, Err(BusError::Unsynced { .. })));
    assert!(matches!(check_durability("").await, Err(BusError::UnknownDurability)));
    for nobody in ["http://127.0.0.1:1".to_owned(), "nowhere".to_owned(), safe.0.url().replace("nats", "http")] {
        let error = check_durability(&nobody).await.unwrap_err();
        assert!(matches!(error, BusError::Monitoring { .. }) && error.retryable(), "{error}");
    }
}
