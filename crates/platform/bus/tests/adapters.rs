//! Announcements of adapter versions against a real nats-server.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use autoact_bus::{AdapterAnnouncement, AdapterBoard, BusConfig, BusError};
use autoact_testkit::{NatsServer, within};
use futures::StreamExt;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

fn announcement(revision: u64) -> AdapterAnnouncement {
    AdapterAnnouncement {
        revision,
        version: Some(format!("atlas-{revision}")),
        base_sha256: "b".repeat(64),
        adapters: BTreeMap::from([("plan".to_owned(), "a".repeat(64))]),
    }
}

#[tokio::test]
async fn a_late_listener_hears_the_last_announcement_and_those_to_come() {
    let mut server = NatsServer::start().await.unwrap();
    let config = BusConfig::new(server.url());
    let writer = AdapterBoard::connect(&config).await.unwrap();
    assert_eq!(writer.last().await.unwrap(), None);
    writer.announce(&announcement(1)).await.unwrap();
    writer.announce(&announcement(2)).await.unwrap();

    let listener = AdapterBoard::connect(&config).await.unwrap();
    assert_eq!(listener.last().await.unwrap(), Some(announcement(2)));
    let mut heard = listener.follow().await.unwrap();
    assert_eq!(within(LIMIT, "the last one", heard.next()).await.unwrap().unwrap().unwrap(), announcement(2));
    writer.announce(&announcement(3)).await.unwrap();
    assert_eq!(within(LIMIT, "the next one", heard.next()).await.unwrap().unwrap().unwrap(), announcement(3));

    // a rollback to nothing, announced after a restart of the server by somebody who comes then
    server.restart().await.unwrap();
    let nothing = AdapterAnnouncement { revision: 4, ..AdapterAnnouncement::default() };
    AdapterBoard::connect(&config).await.unwrap().announce(&nothing).await.unwrap();
    let next = within(LIMIT, "one after the restart", async {
        // the restart itself may show as an error; then one listens anew
        while let Some(heard) = heard.next().await {
            match heard {
                Ok(announcement) if announcement.revision >= 4 => return Some(announcement),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let mut heard = listener.follow().await.unwrap();
        heard.next().await.transpose().unwrap()
    });
    assert_eq!(next.await.unwrap(), Some(nothing));
}

#[tokio::test]
async fn what_is_no_announcement_is_an_error() {
    let server = NatsServer::start().await.unwrap();
    let config = BusConfig::new(server.url());
    let board = AdapterBoard::connect(&config).await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let bucket = context.get_key_value("AUTOACT_ADAPTERS").await.unwrap();
    bucket.put("current", "?".into()).await.unwrap();
    assert!(matches!(board.last().await, Err(BusError::UnreadableAnnouncement { .. })));
    let gone = BusConfig { connect_limit: Duration::from_millis(300), ..BusConfig::new("nats://127.0.0.1:1") };
    assert!(matches!(AdapterBoard::connect(&gone).await, Err(BusError::Unreachable { .. })));
}
