//! Backups, and what is brought back from them.

use autoact_bus::{BackupError, Bus, Summary, backup, restore};
use autoact_testkit::NatsServer;
use autoact_trajectory::{Digest, EventBody, NewArtifact, TaskKey, Tenant, Thought};
use autoact_wire::store::PurgeReason;

use crate::{LIMIT, config, ended, finished, id, look, of, running, server, store};

/// Everything of a task, as it is stored.
async fn digests(bus: &Bus, task: &TaskKey) -> Vec<(u64, Option<Digest>)> {
    bus.load(task).await.unwrap().iter().map(|event| (event.index, event.digest)).collect()
}

#[tokio::test]
async fn a_backup_brings_everything_back() {
    let (_server, bus) = server().await;
    let dir = tempfile::tempdir().unwrap();
    let artifact =
        NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data: vec![7; 300_000] };
    let kept = bus.keep_artifact(&id("one"), &artifact).await.unwrap();
    ended(&bus, &id("one"), 2).await;
    ended(&bus, &id("gone"), 2).await;
    running(&bus, &id("runs"), 2).await;
    bus.put_into_outbox(&id("one"), "c", b"remember".to_vec()).await.unwrap();
    let first = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert!(first.first && first.events == 5 + 5 + 4 && first.tools == 1 && first.artifacts == 1 && first.outbox == 1, "{first:?}");

    // only what is new
    ended(&bus, &of("acme", "two"), 2).await;
    let thought = EventBody::Thought(Thought { thought: "later".into(), tool: "Search".into() });
    store(&bus, &id("runs"), vec![thought]).await;
    bus.purge_task(&id("gone"), PurgeReason::Request { by: "ann".into() }).await.unwrap();
    let second = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!((second.first, second.events, second.records, second.artifacts), (false, 6, 3, 0), "{second:?}");
    let third = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!((third.events, third.records, third.tools), (0, 0, 0));

    let other = NatsServer::start().await.unwrap();
    let restored = Bus::connect(config(&other)).await.unwrap();
    let brought = restore(&restored, dir.path(), None, |_| {}).await.unwrap();
    assert_eq!((brought.tasks, brought.queued, brought.artifacts, brought.outbox, brought.events), (3, 1, 1, 1, 5 + 5 + 5), "{brought:?}");
    for task in [id("one"), of("acme", "two"), id("runs")] {
        assert_eq!(digests(&restored, &task).await, digests(&bus, &task).await);
    }
    assert!(restored.last(&id("gone")).await.unwrap().is_none());
    assert_eq!(restored.artifact(&id("one"), &kept).await.unwrap(), artifact.data);
    let report = look(&restored, Some(dir.path())).await;
    assert_eq!(report.findings, [], "{report:?}");
    let mut leases = restored.leases(&[Tenant::default()]).await.unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, leases.next()).await.unwrap().task(), &id("runs"));
    // the chain goes on
    store(&restored, &id("runs"), vec![finished()]).await;
    let last = restored.last(&id("runs")).await.unwrap().unwrap();
    restored.record_end(&id("runs"), last.index, last.digest).await.unwrap();
    assert_eq!(look(&restored, Some(dir.path())).await.findings, []);

    // not twice, and not over another
    assert!(matches!(restore(&restored, dir.path(), None, |_| {}).await, Err(BackupError::NotEmpty { .. })));
    assert!(matches!(backup(&restored, dir.path(), |_| {}).await, Err(BackupError::OtherBus { .. })));

    // one tenant's part, beside others
    let third = NatsServer::start().await.unwrap();
    let beside = Bus::connect(config(&third)).await.unwrap();
    ended(&beside, &id("mine"), 1).await;
    let acme: Tenant = "acme".parse().unwrap();
    let brought = restore(&beside, dir.path(), Some(&acme), |_| {}).await.unwrap();
    assert_eq!((brought.tasks, brought.events), (1, 5));
    assert_eq!(digests(&beside, &of("acme", "two")).await, digests(&bus, &of("acme", "two")).await);
    assert_eq!(look(&beside, None).await.findings, []);
}

#[tokio::test]
async fn a_damaged_backup_is_refused_and_an_interrupted_one_is_the_one_before() {
    let (_server, bus) = server().await;
    let dir = tempfile::tempdir().unwrap();
    ended(&bus, &id("one"), 2).await;
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    // an interrupted run leaves files that the manifest does not name
    std::fs::write(dir.path().join("trajectories-000002-000.seg"), b"half").unwrap();
    assert_eq!(Summary::read(dir.path()).unwrap().tasks.len(), 1);
    ended(&bus, &id("two"), 2).await;
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!(Summary::read(dir.path()).unwrap().tasks.len(), 2);

    let other = NatsServer::start().await.unwrap();
    let empty = Bus::connect(config(&other)).await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "seg" || extension == "json"));
    assert!(names.len() >= 5);
    for path in names {
        let whole = std::fs::read(&path).unwrap();
        for damage in 0..3 {
            let mut bytes = whole.clone();
            match damage {
                0 => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x10;
                    std::fs::write(&path, bytes).unwrap();
                }
                1 => {
                    bytes.pop();
                    bytes.pop();
                    std::fs::write(&path, bytes).unwrap();
                }
                _ => std::fs::remove_file(&path).unwrap(),
            }
            let error = restore(&empty, dir.path(), None, |_| {}).await.unwrap_err();
            assert!(matches!(error, BackupError::Damaged { .. } | BackupError::None { .. }), "{error}");
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert!(empty.last(&id("one")).await.unwrap().is_none(), "nothing was restored");
    restore(&empty, dir.path(), None, |_| {}).await.unwrap();
}
