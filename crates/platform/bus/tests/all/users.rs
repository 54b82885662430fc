//! NATS users against a real nats-server: each service does its work as its user, and nobody does
//! more.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_nats::{ConnectOptions, Event as Connection, ServerError};
use autoact_bus::{
    AdapterAnnouncement, AdapterBoard, AdapterNews, AuditOptions, Bus, BusConfig, BusError, NatsConfig, Purged, ReceiptBook, Retention,
    ServerConfig, USERS, Unqueued, User, audit, backup, key_file, make_keys, migrate, public_keys, restore, server_config, user,
};
use autoact_testkit::{NatsServer, within};
use autoact_trajectory::{Artifact, Event, EventBody, FinishReason, Finished, NewArtifact, Receipt, Started, Submitted, TaskKey, Tenant};
use autoact_wire::store::PurgeReason;
use futures::StreamExt;
use tempfile::TempDir;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

/// A server with all users.
struct Guarded {
    server: NatsServer,
    keys: TempDir,
}

impl Guarded {
    async fn start(wanted: ServerConfig) -> Guarded {
        let keys = TempDir::with_prefix("autoact-nats-keys-").unwrap();
        make_keys(keys.path(), false).unwrap();
        Guarded { server: serve(keys.path(), wanted).await, keys }
    }

    /// How a user connects.
    fn config(&self, user: &str) -> BusConfig {
        let nats = NatsConfig { nkey_file: Some(key_file(self.keys.path(), user)), ..NatsConfig::at(self.server.url()) };
        let limits = BusConfig::over(nats);
        BusConfig { name: format!("{user}-1"), max_bytes: 64 << 20, patience: Duration::from_secs(8), connect_limit: LIMIT, ..limits }
    }

    /// Nothing was refused so far.
    fn refused_nothing(&self) {
        let log = self.server.log();
        let refused: Vec<&str> = log.lines().filter(|line| line.contains("Violation")).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

async fn serve(keys: &Path, wanted: ServerConfig) -> NatsServer {
    NatsServer::start_with(server_config(&public_keys(keys).unwrap(), &wanted)).await.unwrap()
}

fn task(id: &str) -> TaskKey {
    TaskKey::new("acme".parse().unwrap(), id.parse().unwrap())
}

fn artifact() -> NewArtifact {
    let (media_type, name) = ("text/plain".to_owned(), "a.txt".to_owned());
    NewArtifact { kind: "file".to_owned(), media_type, name, text: String::new(), data: vec![7; 300_000] }
}

/// A task that has ended, with an artifact, as a gateway leaves it.
async fn ended(bus: &Bus, id: &str) -> Artifact {
    let task = task(id);
    bus.record_submission(&task).await.unwrap();
    let kept = bus.keep_artifact(&task, &artifact()).await.unwrap();
    let finished = Finished {
        answer: "42".into(),
        approved: true,
        reason: FinishReason::Approved,
        detail: String::new(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    };
    let submitted = Submitted { question: "q".into(), ..Submitted::default() };
    let started = Started { gateway: "g".into(), attempt: 1 };
    let mut last: Option<Event> = None;
    for body in [EventBody::Submitted(submitted), EventBody::Started(started), EventBody::Finished(finished)] {
        let (index, after, previous) = last.as_ref().map_or((0, 0, None), |last| (last.index, last.sequence, last.digest));
        let artifacts = if index == 1 { vec![kept.clone()] } else { Vec::new() };
        let event =
            Event { previous, epoch: u64::from(index > 0), artifacts, ..Event::new(&task, index + 1, SystemTime::now(), "g", body) };
        let stored = bus.append(&event, after).await.unwrap();
        last = Some(Event { sequence: stored.sequence, digest: Some(stored.digest), ..event });
    }
    let last = last.unwrap();
    bus.record_end(&task, last.index, last.digest).await.unwrap();
    kept
}

#[tokio::test]
async fn every_service_does_its_work_as_its_user() {
    let guarded = Guarded::start(ServerConfig::default()).await;
    let tenant: Tenant = "acme".parse().unwrap();

    // the gateway: everything that it does with the bus
    let bus = Bus::connect(guarded.config("gateway")).await.unwrap();
    let kept = ended(&bus, "one").await;
    ended(&bus, "two").await;
    assert_eq!(bus.artifact(&task("one"), &kept).await.unwrap(), artifact().data);
    let heard = bus.read(&task("one"), 0).map(Result::unwrap).collect::<Vec<Event>>();
    assert_eq!(within(LIMIT, "a history", heard).await.unwrap().len(), 3);
    let (mut words, mut ends) = (bus.words(&task("one")).await.unwrap(), bus.announced_changes().await.unwrap());
    // an answer comes after the server has heard who listens
    bus.answers().await.unwrap();
    bus.tell_words(&task("one"), "word".into()).await;
    bus.announce_change(&task("one")).await;
    assert_eq!(within(LIMIT, "words", words.next()).await.unwrap().unwrap(), "word");
    assert_eq!(within(LIMIT, "an end", ends.next()).await.unwrap(), Some(task("one")));
    assert!(bus.enqueue(&task("one")).await.unwrap());
    assert_eq!((bus.backlog().await.unwrap(), bus.queued_tenants().await.unwrap().len()), (1, 1));
    let mut leases = bus.leases(std::slice::from_ref(&tenant)).await.unwrap();
    within(LIMIT, "a lease", leases.next()).await.unwrap().ack().await.unwrap();
    assert_eq!(bus.served_tenants().await.unwrap().len(), 1);
    bus.put_into_outbox(&task("one"), "talk", b"it ended".to_vec()).await.unwrap();
    assert!(bus.waits_in_outbox(&tenant, "talk").await.unwrap());
    within(LIMIT, "an entry", bus.outbox(&tenant).next()).await.unwrap().done().await.unwrap();
    bus.put_into_outbox(&task("two"), "talk", b"it waits".to_vec()).await.unwrap();
    assert_eq!(bus.list(&tenant, 10, autoact_bus::Order::NewestFirst, None).await.unwrap().tasks.len(), 2);
    bus.receipts().await.unwrap().fence(&task("two"), 1).await.unwrap();
    Unqueued::default().step(&bus, SystemTime::now()).await.unwrap();
    Retention::default().step(&bus, SystemTime::now()).await.unwrap();
    guarded.refused_nothing();

    // tool-agent: receipts
    let book = ReceiptBook::connect(&guarded.config("tool-agent")).await.unwrap();
    let known = book.fence(&task("two"), 2).await.unwrap();
    assert_eq!((known.receipts.epoch(), book.read(&task("two")).await.unwrap().last), (2, known.last));

    // announcements
    let board = AdapterBoard::connect(&guarded.config("announcer")).await.unwrap();
    for agent in ["plan-agent", "reflect-agent"] {
        let mut news = AdapterNews::connect(&guarded.config(agent)).await.unwrap();
        let heard = within(LIMIT, "news", async {
            loop {
                // the server may not have heard of the listener yet
                board.announce(&AdapterAnnouncement { revision: 1, ..AdapterAnnouncement::default() }).await.unwrap();
                if let Ok(heard) = tokio::time::timeout(Duration::from_millis(200), news.next()).await {
                    return heard;
                }
            }
        });
        assert_eq!(heard.await.unwrap().unwrap().unwrap().revision, 1);
    }
    assert_eq!(board.last().await.unwrap().unwrap().revision, 1);
    guarded.refused_nothing();

    // the auditor reads everything, and the operator brings it back
    let dir = tempfile::tempdir().unwrap();
    let auditor = Bus::attach(guarded.config("auditor")).await.unwrap();
    let report = audit(&auditor, AuditOptions::default(), |_| {}).await.unwrap();
    assert_eq!(report.findings, []);
    let copied = backup(&auditor, dir.path(), |_| {}).await.unwrap();
    assert_eq!((copied.events, copied.receipts, copied.artifacts, copied.outbox), (6, 2, 2, 1), "{copied:?}");
    guarded.refused_nothing();
    let other = Guarded { server: serve(guarded.keys.path(), ServerConfig::default()).await, keys: TempDir::new().unwrap() };
    let operator =
        BusConfig { nats: NatsConfig { url: other.server.url(), ..guarded.config("autoact").nats }, ..guarded.config("autoact") };
    assert_eq!(migrate(operator.clone(), &tenant, |_| {}).await.unwrap().tasks, 0);
    let operator = Bus::connect(operator).await.unwrap();
    assert_eq!(restore(&operator, dir.path(), None, |_| {}).await.unwrap().events, 6);
    assert_eq!(operator.purge_task(&task("one"), PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::Done);
    other.refused_nothing();

    // the gateway removes what has expired
    assert_eq!(bus.purge_task(&task("two"), PurgeReason::Age).await.unwrap(), Purged::Done);
    guarded.refused_nothing();
}

/// A pattern with something in the place of its wildcards.
fn example(pattern: &str) -> String {
    let concrete = |token: &str| match token {
        "*" => "x".to_owned(),
        ">" => "x.y".to_owned(),
        token => token.to_owned(),
    };
    pattern.split('.').map(concrete).collect::<Vec<_>>().join(".")
}

fn matches(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == "*" || wanted == found => {}
            _ => return false,
        }
    }
}

/// What the server refuses a user out of these subjects.
async fn refused(guarded: &Guarded, user: &User, publish: &[String], subscribe: &[String]) -> Vec<String> {
    let seed = std::fs::read_to_string(key_file(guarded.keys.path(), user.name)).unwrap().trim().to_owned();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = heard.clone();
    let options = ConnectOptions::with_nkey(seed).event_callback(move |event| {
        if let Connection::ServerError(ServerError::Other(text)) = event {
            told.lock().unwrap().push(text);
        }
        std::future::ready(())
    });
    let client = options.connect(guarded.server.url()).await.unwrap();
    let mut listening = Vec::new();
    for subject in publish {
        client.publish(subject.clone(), "".into()).await.unwrap();
        client.flush().await.unwrap();
    }
    for subject in subscribe {
        listening.push(client.subscribe(subject.clone()).await.unwrap());
        client.flush().await.unwrap();
    }
    // the last refusal may be on its way: this one is refused to everybody
    client.publish("$SYS.REQ.SERVER.PING", "".into()).await.unwrap();
    let last = |heard: &[String]| heard.iter().any(|text| text.contains("$SYS.REQ.SERVER.PING"));
    let wait = autoact_testkit::poll::until(LIMIT, async || last(&heard.lock().unwrap()).then_some(()));
    assert!(wait.await.is_some(), "the server refuses everybody its own subjects");
    let heard = heard.lock().unwrap();
    heard.iter().filter(|text| !text.contains("$SYS")).filter_map(|text| text.split('"').nth(1).map(str::to_owned)).collect()
}

#[tokio::test]
async fn the_server_allows_each_user_what_the_table_says_and_nothing_else() {
    let guarded = Guarded::start(ServerConfig::default()).await;
    let keys = public_keys(guarded.keys.path()).unwrap();
    let inbox = |name: &str| format!("_INBOX_{}.x", keys.iter().find(|known| known.user == name).unwrap().key);
    let all = |subjects: fn(&User) -> Vec<&'static str>| USERS.iter().flat_map(subjects).map(example).collect::<Vec<String>>();
    let mut publish = all(|user| user.publish.iter().chain(user.never).copied().collect());
    let streams = ["AUTOACT_TRAJECTORIES", "AUTOACT_QUEUE", "AUTOACT_TASK_INDEX", "AUTOACT_OUTBOX", "AUTOACT_RECEIPTS", "KV_AUTOACT_TOOLS"];
    for stream in streams {
        publish.extend(
            ["DELETE", "PURGE", "UPDATE", "INFO", "MSG.DELETE", "MSG.GET"].map(|request| format!("$JS.API.STREAM.{request}.{stream}")),
        );
        publish.extend([format!("$JS.API.DIRECT.GET.{stream}"), format!("$JS.API.CONSUMER.CREATE.{stream}.x.y")]);
    }
    publish.extend(["elsewhere".to_owned(), "autoact.t.events.x".to_owned(), "$JS.API.ACCOUNT.PURGE.x".to_owned()]);
    publish.sort();
    publish.dedup();
    let mut subscribe = all(|user| user.subscribe.to_vec());
    subscribe.extend(USERS.iter().map(|user| inbox(user.name)));
    subscribe.extend([">", "autoact.>", "$JS.API.>", "$JS.EVENT.>", "elsewhere"].map(str::to_owned));
    subscribe.sort();
    subscribe.dedup();
    for user in &USERS {
        let may_publish = |subject: &str| {
            user.publish.iter().any(|pattern| matches(pattern, subject)) && !user.never.iter().any(|pattern| matches(pattern, subject))
        };
        let own = inbox(user.name);
        let may_listen = |subject: &str| *subject == own || user.subscribe.iter().any(|pattern| matches(pattern, subject));
        let mut expected: Vec<String> = publish.iter().filter(|subject| !may_publish(subject)).cloned().collect();
        expected.extend(subscribe.iter().filter(|subject| !may_listen(subject)).cloned());
        assert_eq!(refused(&guarded, user, &publish, &subscribe).await, expected, "{}", user.name);
    }
}

#[tokio::test]
async fn who_has_no_login_or_another_users_permissions_is_told_so() {
    let guarded = Guarded::start(ServerConfig::default()).await;
    let strangers = tempfile::tempdir().unwrap();
    make_keys(strangers.path(), false).unwrap();
    let stranger = |nkey_file: Option<PathBuf>| {
        let nats = NatsConfig { nkey_file, ..guarded.config("gateway").nats };
        BusConfig { nats, ..guarded.config("gateway") }
    };
    for nobody in [stranger(None), stranger(Some(key_file(strangers.path(), "gateway")))] {
        assert!(matches!(Bus::connect(nobody.clone()).await, Err(BusError::Login { .. })));
        // a connection that is made in the background says so where it is used
        let book = ReceiptBook::connect(&nobody).await.unwrap();
        assert!(matches!(within(LIMIT, "an error", book.read(&task("t"))).await.unwrap(), Err(BusError::Login { .. })));
    }
    assert!(matches!(Bus::connect(stranger(Some("nowhere.nk".into()))).await, Err(BusError::Credentials { .. })));

    let forbidden = |error: BusError, who: &str, tried: &str| match error {
        BusError::Forbidden { name, what, subject } => {
            assert_eq!((name, format!("{what} {subject}")), (format!("{who}-1"), tried.to_owned()))
        }
        other => panic!("{who}: {other:?}"),
    };
    let as_tool_agent = Bus::connect(guarded.config("tool-agent")).await.unwrap_err();
    forbidden(as_tool_agent, "tool-agent", "publish to $JS.API.STREAM.INFO.AUTOACT_TRAJECTORY");
    Bus::connect(guarded.config("gateway")).await.unwrap();
    let as_announcer = Bus::attach(guarded.config("announcer")).await.unwrap_err();
    forbidden(as_announcer, "announcer", "publish to $JS.API.STREAM.INFO.AUTOACT_TRAJECTORIES");
    let book = ReceiptBook::connect(&guarded.config("plan-agent")).await.unwrap();
    let error = within(LIMIT, "an error", book.append(&task("t"), &Receipt::Fence { epoch: 1 }, 0)).await.unwrap().unwrap_err();
    forbidden(error, "plan-agent", "publish to autoact.acme.receipt.t");
    let error = within(LIMIT, "an error", book.read(&task("t"))).await.unwrap().unwrap_err();
    forbidden(error, "plan-agent", "publish to $JS.API.DIRECT.GET.AUTOACT_RECEIPTS");
    let mut news = AdapterNews::connect(&guarded.config("tool-agent")).await.unwrap();
    let error = within(LIMIT, "an error", news.next()).await.unwrap().unwrap().unwrap_err();
    forbidden(error, "tool-agent", "listen to $KV.AUTOACT_ADAPTERS.current");
    // who may read is not who may write: it attaches, and stores nothing
    let auditor = Bus::attach(guarded.config("auditor")).await.unwrap();
    let error = auditor.enqueue(&task("t")).await.unwrap_err();
    forbidden(error, "auditor", "publish to autoact.acme.queue.t");
    assert!(!BusError::Forbidden { name: String::new(), what: "publish to", subject: String::new() }.retryable());
    assert!(user("memory").is_none(), "memory does not use the bus");
}

#[tokio::test]
async fn an_account_of_its_own_holds_the_same_users() {
    let guarded = Guarded::start(ServerConfig { account: Some("AUTOACT".into()), ..ServerConfig::default() }).await;
    let bus = Bus::connect(guarded.config("gateway")).await.unwrap();
    ended(&bus, "one").await;
    guarded.refused_nothing();
    assert!(matches!(Bus::connect(BusConfig::new(guarded.server.url())).await, Err(BusError::Login { .. })));
}

#[tokio::test]
async fn tls_needs_certificates_of_one_authority_on_both_sides() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&ours, &theirs] {
        autoact_certificates::init(dir.path(), &autoact_certificates::Options::default()).unwrap();
    }
    let file = |dir: &TempDir, name: &str| autoact_certificates::files(dir.path(), name);
    let (cert, key) = file(&ours, autoact_certificates::NATS);
    let tls = Some((file(&ours, autoact_certificates::AUTHORITY).0, cert, key));
    let guarded = Guarded::start(ServerConfig { tls, ..ServerConfig::default() }).await;
    let with = |trust: Option<&TempDir>, show: Option<&TempDir>| {
        let own = show.map(|dir| file(dir, "gateway"));
        let nats = NatsConfig {
            ca: trust.map(|dir| file(dir, autoact_certificates::AUTHORITY).0),
            cert: own.clone().map(|(cert, _)| cert),
            key: own.map(|(_, key)| key),
            ..guarded.config("gateway").nats
        };
        BusConfig { nats, ..guarded.config("gateway") }
    };
    let bus = Bus::connect(with(Some(&ours), Some(&ours))).await.unwrap();
    ended(&bus, "one").await;
    for stranger in [with(Some(&theirs), Some(&ours)), with(Some(&ours), Some(&theirs)), with(Some(&ours), None), with(None, None)] {
        let refusal = Bus::connect(stranger).await;
        assert!(matches!(refusal, Err(BusError::Untrusted { .. })), "{refusal:?}");
    }
    // a certificate is no login
    let nobody = with(Some(&ours), Some(&ours));
    let nobody = BusConfig { nats: NatsConfig { nkey_file: None, ..nobody.nats }, ..guarded.config("gateway") };
    assert!(matches!(Bus::connect(nobody).await, Err(BusError::Login { .. })));
    // TLS that is asked for is not done without
    let plain = NatsServer::start().await.unwrap();
    let wanted = with(Some(&ours), Some(&ours));
    let nats = NatsConfig { url: plain.url(), nkey_file: None, ..wanted.nats };
    assert!(matches!(Bus::connect(BusConfig { nats, ..guarded.config("gateway") }).await, Err(BusError::Untrusted { .. })));
}
