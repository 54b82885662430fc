//! What a gateway expects of its bus: that it writes before it acknowledges, and that its streams
//! stay.

use std::time::Duration;

use crate::common::scripted::{Group, Script};
use crate::common::*;
use autoact_service::App;
use autoact_testkit::{NatsServer, poll};
use autoact_wire::status::reason;
use autoact_wire::v1;
use gateway::Gateway;
use tokio_stream::StreamExt;
use tonic::Code;

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn a_bus_that_acknowledges_before_it_writes_is_refused() {
    let group = Group::start(Script::default()).await;
    let synced = NatsServer::start_with("http: \"127.0.0.1:-1\"\njetstream { sync_interval: always }\n").await.unwrap();
    let unsynced = NatsServer::start_with("http: \"127.0.0.1:-1\"\n").await.unwrap();
    let start = async |nats: &NatsServer, monitoring: String| {
        let mut config = config(nats, &group);
        config.common.start_limit = Duration::from_secs(5);
        (config.service.bus.allow_unsynced, config.service.bus.monitoring) = (false, monitoring);
        App::build::<Gateway>(config).await
    };
    for (nats, monitoring) in [(&unsynced, unsynced.monitoring().unwrap()), (&synced, String::new()), (&synced, NOWHERE.to_owned())] {
        let error = start(nats, monitoring).await.err().expect("it is refused").to_string();
        assert!(error.contains("fix: ") && error.contains("bus."), "{error}");
    }
    assert!(start(&synced, synced.monitoring().unwrap()).await.is_ok());
}

#[tokio::test]
async fn who_watches_a_bus_that_lost_its_disk_is_told() {
    let group = Group::start(Script::default()).await;
    let mut world = world_with(group, |config| {
        config.agents.reflect = NOWHERE.into();
        config.agents.patience = Duration::from_millis(300);
    })
    .await;
    let ready = poll::until(LIMIT, async || world.gateway.readiness().is_ready().then_some(())).await;
    assert!(ready.is_some());
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    let request = v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: false };
    let mut watch = world.client.watch_task(request).await.unwrap().into_inner();
    watch.next().await.unwrap().unwrap();
    world.nats.lose_disk();
    world.nats.resume().await.unwrap();
    let error = tokio::time::timeout(LIMIT, async {
        loop {
            match watch.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("the stream ended without a word"),
            }
        }
    });
    let error = error.await.expect("the watcher is told");
    assert_eq!((error.code(), reason(&error).as_deref()), (Code::DataLoss, Some("BUS_LOST")), "{error}");
    let unready = poll::until(LIMIT, async || (!world.gateway.readiness().is_ready()).then_some(())).await;
    assert!(unready.is_some(), "a gateway without its bus gets no calls");
    let error = world.client.submit_task(named("u", "Loire")).await.unwrap_err();
    assert_eq!(error.code(), Code::DataLoss, "{error}");
}
