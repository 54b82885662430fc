//! Streams in a cluster of three real nats-servers.

use std::time::Duration;

use async_nats::jetstream;
use autoact_bus::{Bus, BusConfig, BusError};
use autoact_testkit::{NatsServer, poll};

/// Servers elect a leader in seconds, on a machine that builds on every core too.
const LIMIT: Duration = Duration::from_secs(60);

fn config(server: &NatsServer) -> BusConfig {
    BusConfig { replicas: 3, connect_limit: LIMIT, ..BusConfig::new(server.url()) }
}

/// Two gateways that start at once ask for the same streams. Servers that are restarted then tell
/// other times of creation, and the streams are no others.
#[tokio::test]
async fn streams_that_two_asked_for_at_once_stay_the_same() {
    let mut servers = NatsServer::cluster(3).await.unwrap();
    let (one, other) = tokio::join!(Bus::connect(config(&servers[0])), Bus::connect(config(&servers[1])));
    let buses = [one.unwrap(), other.unwrap()];
    for server in &mut servers {
        server.restart().await.unwrap();
        server.caught_up().await.unwrap();
        for bus in &buses {
            // a stream that was seen to have vanished is so for ever
            let answers = poll::until(LIMIT, async || bus.answers().await.is_ok().then_some(()));
            assert!(answers.await.is_some(), "{:?}", bus.answers().await);
        }
    }
    // one that was deleted and made anew is another, though its name is the same
    let context = jetstream::new(async_nats::connect(servers[2].url()).await.unwrap());
    let found = context.get_stream("AUTOACT_QUEUE").await.unwrap().cached_info().config.clone();
    context.delete_stream("AUTOACT_QUEUE").await.unwrap();
    let anew = jetstream::stream::Config { metadata: Default::default(), ..found };
    // the leader may not have heard yet of the server that was restarted last
    let made = poll::until(LIMIT, async || context.create_stream(anew.clone()).await.ok());
    assert!(made.await.is_some());
    for bus in &buses {
        let lost = poll::until(LIMIT, async || matches!(bus.answers().await, Err(BusError::Vanished { .. })).then_some(()));
        assert!(lost.await.is_some());
    }
}
