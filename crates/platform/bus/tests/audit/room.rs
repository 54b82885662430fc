//! A bus that fills up: what goes, and what never does.

use std::time::SystemTime;

use autoact_bus::{BackupError, Bus, BusConfig, BusError, Order, Retention, backup};
use autoact_testkit::NatsServer;
use autoact_trajectory::{Event, EventBody, Tenant, Thought};

use crate::{LATER, config, ended, id, look, running, server, store};

#[tokio::test]
async fn retention_removes_the_oldest_ended_tasks_and_never_a_running_one() {
    let server = NatsServer::start().await.unwrap();
    // room for some hundred and fifty tasks of 1.6 KB
    let bus = Bus::connect(BusConfig { max_bytes: 256 << 10, ..config(&server) }).await.unwrap();
    let long = id("long");
    let mut mine = running(&bus, &long, 1).await;
    let queued = running(&bus, &id("queued"), 0).await;
    let mut retention = Retention::default();
    let mut purged = 0;
    for number in 0..1000 {
        ended(&bus, &id(&format!("short-{number}")), 1).await;
        if number % 10 == 0 {
            let thought = EventBody::Thought(Thought { thought: "still here".into(), tool: "Search".into() });
            mine.extend(store(&bus, &long, vec![thought]).await);
            purged += retention.step(&bus, SystemTime::now()).await.unwrap().purged.len();
        }
    }
    assert!(purged > 700, "{purged}");
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    assert_eq!(bus.load(&id("queued")).await.unwrap().len(), queued.len());
    assert!(bus.last(&id("short-0")).await.unwrap().is_none() && bus.last(&id("short-999")).await.unwrap().is_some());
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], purged as u64), "{report:?}");
    // what is old goes too, and a new process begins at the beginning
    let later = SystemTime::now() + BusConfig::new("").max_age + LATER;
    let mut retention = Retention::default();
    while retention.step(&bus, later).await.unwrap().more {}
    assert!(bus.last(&id("short-999")).await.unwrap().is_none());
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    assert_eq!(look(&bus, None).await.findings, []);
}

#[tokio::test]
async fn a_full_bus_of_running_tasks_refuses_and_loses_nothing() {
    let server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(BusConfig { max_bytes: 64 << 10, ..config(&server) }).await.unwrap();
    let task = id("t");
    running(&bus, &task, 0).await;
    let mut stored = 2;
    let refused = loop {
        let last = bus.last(&task).await.unwrap().unwrap();
        let body = EventBody::Thought(Thought { thought: "x".repeat(4000), tool: "Search".into() });
        let event = Event { previous: last.digest, epoch: 1, ..Event::new(&task, last.index + 1, SystemTime::now(), "g", body) };
        match bus.append(&event, last.sequence).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, BusError::Full { .. }) && refused.retryable(), "{refused}");
    assert!(Retention::default().step(&bus, SystemTime::now()).await.unwrap().purged.is_empty());
    assert_eq!(bus.load(&task).await.unwrap().len(), stored);
}

#[tokio::test]
async fn an_index_that_is_nearly_full_loses_its_older_half_and_says_so() {
    let (server, bus) = server().await;
    let (long, gone) = (id("long"), id("short-0"));
    let mine = running(&bus, &long, 1).await;
    bus.close().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut small = jetstream.get_stream("AUTOACT_TASK_INDEX").await.unwrap().cached_info().config.clone();
    small.max_bytes = 64 << 10;
    jetstream.update_stream(small).await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (mut retention, mut trimmed) = (Retention::default(), 0);
    for number in 0..150 {
        ended(&bus, &id(&format!("short-{number}")), 0).await;
        if number == 20 {
            backup(&bus, dir.path(), |_| {}).await.unwrap();
        }
        if number % 10 == 0 {
            trimmed += retention.step(&bus, SystemTime::now()).await.unwrap().trimmed;
        }
    }
    assert!(trimmed > 100, "{trimmed}");
    assert!(bus.last(&gone).await.unwrap().is_none());
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    let page = bus.list(&Tenant::default(), 1000, Order::NewestFirst, None).await.unwrap();
    assert!(page.tasks.iter().any(|head| head.first.task_id == long.id), "a task that runs is listed for ever");
    for against in [None, Some(dir.path())] {
        let report = look(&bus, against).await;
        assert_eq!(report.findings, [], "{report:?}");
    }
    // what the index alone remembers is not enough for the old backup to go on
    assert!(matches!(backup(&bus, dir.path(), |_| {}).await, Err(BackupError::OtherBus { .. })));
}
