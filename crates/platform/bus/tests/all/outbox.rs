//! The outbox against a real nats-server.

use std::time::Duration;

use autoact_bus::{Bus, BusConfig, Entry, Outbox};
use autoact_testkit::NatsServer;
use autoact_trajectory::{TaskKey, Tenant};

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);
/// Nothing comes: shorter than any pause.
const SHORT: Duration = Duration::from_millis(300);

async fn connect(server: &NatsServer) -> Bus {
    Bus::connect(BusConfig { max_bytes: 64 << 20, ..BusConfig::new(server.url()) }).await.unwrap()
}

fn task(tenant: &str, id: &str) -> TaskKey {
    TaskKey::new(tenant.parse().unwrap(), id.parse().unwrap())
}

async fn next(outbox: &mut Outbox) -> Entry {
    tokio::time::timeout(LIMIT, outbox.next()).await.unwrap()
}

async fn nothing(outbox: &mut Outbox) -> bool {
    tokio::time::timeout(SHORT, outbox.next()).await.is_err()
}

#[tokio::test]
async fn an_entry_stays_until_it_is_done() {
    let server = NatsServer::start().await.unwrap();
    let bus = connect(&server).await;
    let (tenant, one) = (Tenant::default(), task("default", "one"));
    bus.put_into_outbox(&one, "c", b"first".to_vec()).await.unwrap();
    // the same task while it waits: nothing new
    bus.put_into_outbox(&one, "c", b"again".to_vec()).await.unwrap();
    bus.put_into_outbox(&task("acme", "one"), "c", b"theirs".to_vec()).await.unwrap();
    assert!(bus.waits_in_outbox(&tenant, "c").await.unwrap());
    assert!(!bus.waits_in_outbox(&tenant, "other").await.unwrap());

    let mut outbox = bus.outbox(&tenant);
    let entry = next(&mut outbox).await;
    assert_eq!((entry.task(), entry.payload(), entry.deliveries()), (Some(&one), b"first".as_slice(), 1));
    assert!(nothing(&mut outbox).await, "another tenant's entry is another's");
    entry.later(Duration::from_millis(50)).await.unwrap();
    let entry = next(&mut outbox).await;
    assert_eq!((entry.payload(), entry.deliveries()), (b"first".as_slice(), 2));
    // whoever holds it dies: the next process gets it, at the latest when its time is over
    entry.later(Duration::from_millis(1)).await.unwrap();
    drop(outbox);
    let other = connect(&server).await;
    let mut outbox = other.outbox(&tenant);
    let entry = next(&mut outbox).await;
    assert_eq!(entry.payload(), b"first");
    assert!(bus.waits_in_outbox(&tenant, "c").await.unwrap());
    entry.done().await.unwrap();
    assert!(!bus.waits_in_outbox(&tenant, "c").await.unwrap());
    assert!(bus.waits_in_outbox(&"acme".parse().unwrap(), "c").await.unwrap());
    // once it is delivered, the same task may be put in again
    bus.put_into_outbox(&one, "c", b"again".to_vec()).await.unwrap();
    assert_eq!(next(&mut outbox).await.payload(), b"again");
}

#[tokio::test]
async fn a_task_without_a_conversation_has_a_place_too() {
    let server = NatsServer::start().await.unwrap();
    let bus = connect(&server).await;
    let alone = task("default", "alone");
    bus.put_into_outbox(&alone, "", b"x".to_vec()).await.unwrap();
    assert_eq!(next(&mut bus.outbox(&Tenant::default())).await.task(), Some(&alone));
}

#[tokio::test]
async fn entries_survive_a_restart_of_the_server() {
    let mut server = NatsServer::start().await.unwrap();
    let bus = connect(&server).await;
    let mut outbox = bus.outbox(&Tenant::default());
    assert!(nothing(&mut outbox).await);
    bus.put_into_outbox(&task("default", "one"), "c", b"first".to_vec()).await.unwrap();
    server.restart().await.unwrap();
    let entry = next(&mut outbox).await;
    assert_eq!(entry.payload(), b"first");
    entry.done().await.unwrap();
}
