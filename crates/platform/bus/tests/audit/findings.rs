//! What is lost or changed is named, and what is removed on purpose is not.

use std::time::SystemTime;

use autoact_bus::{Bus, BusError, Kind, Purged, backup};
use autoact_testkit::NatsServer;
use autoact_trajectory::{Event, NewArtifact, Tenant};
use autoact_wire::store::PurgeReason;

use crate::{LATER, LIMIT, bodies, config, ended, finished, id, look, of, running, says, server, store, stream};

#[tokio::test]
async fn a_whole_bus_has_no_findings_and_every_loss_is_named() {
    let (server, bus) = server().await;
    for number in 0..5 {
        ended(&bus, &id(&format!("e-{number}")), 3).await;
    }
    let runs = running(&bus, &id("runs"), 3).await;
    bus.record_submission(&id("cut-off")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    for against in [None, Some(dir.path())] {
        let report = look(&bus, against).await;
        assert_eq!(report.findings, [], "{report:?}");
        assert_eq!((report.tasks, report.ended, report.cut_off, report.events), (6, 5, 1, 5 * 6 + 5));
    }

    let trajectories = stream(&server, "AUTOACT_TRAJECTORIES").await;
    let inner = bus.load(&id("e-0")).await.unwrap()[2].clone();
    trajectories.delete_message(inner.sequence).await.unwrap();
    let end = bus.load(&id("e-1")).await.unwrap().pop().unwrap();
    trajectories.delete_message(end.sequence).await.unwrap();
    trajectories.purge().filter("autoact.default.traj.e-2").await.unwrap();
    trajectories.delete_message(runs.last().unwrap().sequence).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("e-0"), Kind::Missing) && says(&report, &id("e-1"), Kind::TailMissing), "{report:?}");
    assert!(says(&report, &id("e-2"), Kind::TaskMissing), "{report:?}");
    assert_eq!(report.findings.len(), 3, "{report:?}");
    let report = look(&bus, Some(dir.path())).await;
    let tail = report.findings.iter().find(|finding| finding.task == Some(id("runs"))).unwrap();
    assert_eq!((tail.kind, tail.index), (Kind::TailMissing, Some(5)));

    // somebody's tool writes into a task
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    jetstream.publish("autoact.default.traj.e-3", "nonsense".into()).await.unwrap().await.unwrap();
    let index = stream(&server, "AUTOACT_TASK_INDEX").await;
    index.delete_message(2).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("e-3"), Kind::Unreadable), "{report:?}");
    assert!(report.findings.iter().any(|finding| finding.kind == Kind::IndexBroken), "{report:?}");
}

/// The files in which the server keeps a stream's messages.
fn blocks(server: &NatsServer, stream: &str) -> Vec<std::path::PathBuf> {
    let dir = server.data().join("jetstream/$G/streams").join(stream).join("msgs");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "blk")).collect()
}

#[tokio::test]
async fn a_byte_that_is_flipped_on_the_disk_is_named() {
    let (mut server, bus) = server().await;
    for number in 0..5 {
        ended(&bus, &id(&format!("e-{number}")), 3).await;
    }
    let before = bus.load(&id("e-2")).await.unwrap();
    bus.close().await;
    server.restart().await.unwrap();
    server.kill();
    // within a thought of the third task
    let block = blocks(&server, "AUTOACT_TRAJECTORIES").pop().unwrap();
    let mut bytes = std::fs::read(&block).unwrap();
    let subject = b"autoact.default.traj.e-2";
    let third = bytes.windows(subject.len()).enumerate().filter(|(_, window)| window == subject).nth(2).unwrap().0;
    let text = b"thought 0 xxx";
    let at = third + bytes[third..].windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&block, bytes).unwrap();
    server.resume().await.unwrap();
    let bus = Bus::attach(config(&server)).await.unwrap();
    let report = look(&bus, None).await;
    assert!(report.findings.iter().any(|finding| finding.task == Some(id("e-2"))), "{report:?} {}", before.len());
}

#[tokio::test]
async fn artifacts_that_are_gone_or_have_other_bytes_are_named() {
    let (server, bus) = server().await;
    let mut objects = Vec::new();
    for number in 0..4_u8 {
        let task = id(&format!("t-{number}"));
        // several parts of an object
        let data = (0..300_000_u32).map(|at| at.to_le_bytes()[0] ^ number).collect();
        let artifact = NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data };
        let kept = bus.keep_artifact(&task, &artifact).await.unwrap();
        bus.record_submission(&task).await.unwrap();
        store(&bus, &task, bodies(1)).await;
        let last = bus.last(&task).await.unwrap().unwrap();
        let time = SystemTime::now() - LATER;
        let mut event = Event { previous: last.digest, epoch: 1, ..Event::new(&task, last.index + 1, time, "g", finished()) };
        event.artifacts = vec![kept.clone()];
        let place = bus.append(&event, last.sequence).await.unwrap();
        bus.record_end(&task, event.index, Some(place.digest)).await.unwrap();
        objects.push(kept.object);
    }
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.artifacts), (&[][..], 4), "{report:?}");

    let client = async_nats::connect(server.url()).await.unwrap();
    let stored = async_nats::jetstream::new(client).get_object_store("AUTOACT_ARTIFACTS_default").await.unwrap();
    let parts = stream(&server, "OBJ_AUTOACT_ARTIFACTS_default").await;
    stored.delete(&objects[0]).await.unwrap();
    // one part of it
    let nuid = stored.info(&objects[1]).await.unwrap().nuid;
    let part = parts.get_last_raw_message_by_subject(&format!("$O.AUTOACT_ARTIFACTS_default.C.{nuid}")).await.unwrap();
    parts.delete_message(part.sequence).await.unwrap();
    // as many bytes, one of them another
    let mut data: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0] ^ 2).collect();
    data[200_000] ^= 1;
    stored.put(objects[2].as_str(), &mut data.as_slice()).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("t-0"), Kind::ArtifactMissing), "{report:?}");
    assert!(says(&report, &id("t-1"), Kind::ArtifactChanged) && says(&report, &id("t-2"), Kind::ArtifactChanged), "{report:?}");
    assert_eq!(report.findings.len(), 3, "{report:?}");
}

#[tokio::test]
async fn what_is_removed_on_purpose_is_no_finding() {
    let (server, bus) = server().await;
    let artifact =
        NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data: vec![1; 100] };
    let (old, runs) = (id("old"), id("runs"));
    let kept = bus.keep_artifact(&old, &artifact).await.unwrap();
    bus.record_submission(&old).await.unwrap();
    store(&bus, &old, bodies(2)).await;
    let last = bus.last(&old).await.unwrap().unwrap();
    let mut event = Event { previous: last.digest, epoch: 1, ..Event::new(&old, last.index + 1, SystemTime::now(), "g", finished()) };
    event.artifacts = vec![kept.clone()];
    let place = bus.append(&event, last.sequence).await.unwrap();
    // nobody has recorded its end yet
    running(&bus, &runs, 2).await;
    ended(&bus, &of("acme", "theirs"), 2).await;
    assert_eq!(bus.purge_task(&runs, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::NotEnded);
    assert_eq!(bus.purge_task(&old, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::Done);
    assert_eq!(bus.purge_task(&old, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::NotThere);
    assert!(place.sequence > 0 && bus.last(&old).await.unwrap().is_none());
    assert!(matches!(bus.artifact(&old, &kept).await, Err(BusError::MissingArtifact { .. })));
    assert!(!bus.record_loss(&old).await.unwrap(), "a lease that is left over is no loss");
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], 1), "{report:?}");

    // the same name again
    ended(&bus, &old, 1).await;
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], 0), "{report:?}");
    let acme: Tenant = "acme".parse().unwrap();
    let mut told = Vec::new();
    assert_eq!(bus.purge_ended(&acme, SystemTime::now(), "ann", |task| told.push(task.clone())).await.unwrap(), 1);
    assert_eq!(told, [of("acme", "theirs")]);
    assert_eq!(look(&bus, None).await.findings, []);
    drop(server);
}

#[tokio::test]
async fn a_lost_task_in_the_queue_is_recorded() {
    let (server, bus) = server().await;
    running(&bus, &id("t"), 1).await;
    stream(&server, "AUTOACT_TRAJECTORIES").await.purge().filter("autoact.default.traj.t").await.unwrap();
    assert!(says(&look(&bus, None).await, &id("t"), Kind::TaskMissing));
    assert!(bus.record_loss(&id("t")).await.unwrap());
    let mut leases = bus.leases(&[Tenant::default()]).await.unwrap();
    tokio::time::timeout(LIMIT, leases.next()).await.unwrap().ack().await.unwrap();
    assert!(says(&look(&bus, None).await, &id("t"), Kind::TaskMissing), "also once it has left the queue");
}
