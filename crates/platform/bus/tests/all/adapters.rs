//! Announcements of adapter versions against a real nats-server.

use std::collections::BTreeMap;
use std::time::Duration;

use autoact_bus::{AdapterAnnouncement, AdapterBoard, AdapterNews, BusConfig, BusError};
use autoact_testkit::{NatsServer, within};

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

/// What a listener hears when this is announced. Again and again: the server may not know the
/// listener yet, which then does not hear.
async fn heard(listener: &mut AdapterNews, writer: &AdapterBoard, said: &AdapterAnnouncement) -> AdapterAnnouncement {
    let heard = within(LIMIT, "an announcement", async {
        loop {
            writer.announce(said).await.unwrap();
            while let Ok(heard) = tokio::time::timeout(Duration::from_millis(200), listener.next()).await {
                let heard = heard.unwrap().unwrap();
                // one of before that was announced twice
                if heard == *said {
                    return heard;
                }
            }
        }
    });
    heard.await.unwrap()
}

#[tokio::test]
async fn the_last_announcement_is_kept_and_those_to_come_are_heard() {
    let mut server = NatsServer::start().await.unwrap();
    let config = BusConfig::new(server.url());
    let writer = AdapterBoard::connect(&config).await.unwrap();
    assert_eq!(writer.last().await.unwrap(), None);
    writer.announce(&announcement(1)).await.unwrap();
    writer.announce(&announcement(2)).await.unwrap();
    assert_eq!(AdapterBoard::connect(&config).await.unwrap().last().await.unwrap(), Some(announcement(2)));

    let mut listener = AdapterNews::connect(&config).await.unwrap();
    assert_eq!(heard(&mut listener, &writer, &announcement(3)).await, announcement(3));

    // a rollback to nothing, announced after a restart of the server by somebody who comes then
    server.restart().await.unwrap();
    let nothing = AdapterAnnouncement { revision: 4, ..AdapterAnnouncement::default() };
    let writer = AdapterBoard::connect(&config).await.unwrap();
    assert_eq!(heard(&mut listener, &writer, &nothing).await, nothing);
    listener.close().await;
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
