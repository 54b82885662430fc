//! Keys of NATS users that are replaced while services run.

use std::time::{Duration, SystemTime};

use autoact_bus::{
    Bus, BusConfig, BusError, NatsConfig, ReceiptBook, ServerConfig, key_file, make_keys, public_keys, replace_key, server_config, user,
};
use autoact_testkit::{NatsServer, poll_until};
use autoact_trajectory::{Event, EventBody, Receipt, Submitted, TaskKey};
use tempfile::TempDir;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

fn task(id: &str) -> TaskKey {
    TaskKey::new("acme".parse().unwrap(), id.parse().unwrap())
}

async fn submit(bus: &Bus, id: &str) -> Result<(), BusError> {
    let submitted = EventBody::Submitted(Submitted { question: "q".into(), ..Submitted::default() });
    bus.append(&Event::new(&task(id), 1, SystemTime::now(), "g", submitted), 0).await.map(drop)
}

struct Guarded {
    server: NatsServer,
    /// What the operator has.
    keys: TempDir,
    /// What the services have.
    given: TempDir,
}

impl Guarded {
    async fn start() -> Guarded {
        let (keys, given) = (TempDir::with_prefix("autoact-nats-keys-").unwrap(), TempDir::with_prefix("autoact-nats-given-").unwrap());
        make_keys(keys.path(), false).unwrap();
        let server =
            NatsServer::start_reloadable(server_config(&public_keys(keys.path()).unwrap(), &ServerConfig::default())).await.unwrap();
        let guarded = Guarded { server, keys, given };
        for name in ["gateway", "tool-agent"] {
            guarded.give(name);
        }
        guarded
    }

    /// Gives a service its key, as a kubelet does: another file in its place.
    fn give(&self, name: &str) {
        let new = self.given.path().join("new");
        std::fs::copy(key_file(self.keys.path(), name), &new).unwrap();
        std::fs::rename(new, key_file(self.given.path(), name)).unwrap();
    }

    fn config(&self, name: &str) -> BusConfig {
        let nats = NatsConfig { nkey_file: Some(key_file(self.given.path(), name)), ..NatsConfig::at(self.server.url()) };
        BusConfig { name: format!("{name}-1"), max_bytes: 64 << 20, patience: LIMIT, connect_limit: LIMIT, ..BusConfig::over(nats) }
    }

    /// Tells the server of the keys, and waits until it refuses the one in `old`.
    async fn reload(&mut self, old: &BusConfig) {
        self.server.reload(server_config(&public_keys(self.keys.path()).unwrap(), &ServerConfig::default())).unwrap();
        let refused = async || matches!(Bus::attach(old.clone()).await, Err(BusError::Login { .. })).then_some(());
        poll_until(LIMIT, "a server that knows the old key no longer", refused).await.unwrap();
    }

    /// A user with the key that `name` has been given so far.
    fn with_key_of(&self, name: &str) -> (BusConfig, TempDir) {
        let dir = TempDir::with_prefix("autoact-nats-old-").unwrap();
        let path = key_file(dir.path(), name);
        std::fs::copy(key_file(self.given.path(), name), &path).unwrap();
        let config = self.config(name);
        (BusConfig { nats: NatsConfig { nkey_file: Some(path), ..config.nats.clone() }, ..config }, dir)
    }

    fn refused_no_subject(&self) {
        let log = self.server.log();
        let refused: Vec<&str> =
            log.lines().filter(|line| line.contains("Publish Violation") || line.contains("Subscription Violation")).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[tokio::test]
async fn a_service_logs_in_with_the_key_that_its_file_holds_now() {
    let mut guarded = Guarded::start().await;
    let bus = Bus::connect(guarded.config("gateway")).await.unwrap();
    submit(&bus, "t0").await.unwrap();
    // twice: what the inboxes are named after stays
    for round in 1..=2 {
        let (old, _kept) = guarded.with_key_of("gateway");
        replace_key(guarded.keys.path(), user("gateway").unwrap()).unwrap();
        guarded.give("gateway");
        // the connection goes on until the server hears of it
        bus.answers().await.unwrap();
        guarded.reload(&old).await;
        submit(&bus, &format!("t{round}")).await.unwrap();
    }
    assert_eq!(bus.load(&task("t0")).await.unwrap().len(), 1);
    guarded.refused_no_subject();
}

#[tokio::test]
async fn a_service_whose_key_comes_late_waits_for_it() {
    let mut guarded = Guarded::start().await;
    let gateway = Bus::connect(guarded.config("gateway")).await.unwrap();
    let book = ReceiptBook::connect(&guarded.config("tool-agent")).await.unwrap();
    book.append(&task("t"), &Receipt::Fence { epoch: 1 }, 0).await.unwrap();
    let (old, _kept) = guarded.with_key_of("gateway");
    make_keys(guarded.keys.path(), true).unwrap();
    guarded.reload(&old).await;
    // nothing works, and nothing is given up
    let task = task("t");
    let (asked, told) = (submit(&gateway, "late"), book.read(&task));
    let given = async {
        // both have been turned away at least once
        poll_until(LIMIT, "a gateway that is turned away", async || (!gateway.is_connected()).then_some(())).await.unwrap();
        guarded.give("gateway");
        guarded.give("tool-agent");
    };
    let (asked, told, ()) = tokio::join!(asked, told, given);
    asked.unwrap();
    assert_eq!(told.unwrap().receipts.epoch(), 1);
    guarded.refused_no_subject();
}
