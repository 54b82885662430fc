//! The bus's disk is full while tasks run: what was accepted goes on once there is room.

use std::time::Duration;

use autoact_testkit::poll::poll_until;
use autoact_testkit::{Cluster, ClusterOptions, NatsServer, SmallDisk, effects};
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, GetTaskRequest};

use crate::checker::Counted;
use crate::load::{LEASE, TIME, ask_all, examine, questions, task, told};
use crate::tasks;

/// Of the disk; the streams need less.
const BYTES: u64 = 64 << 20;
/// What the server believes to have, so that only the disk itself says that it is full.
const CONFIG: &str = "jetstream { max_file_store: 4GB }\n";
/// A call that finds a full disk is answered within this time, be it with a refusal.
const ANSWER: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_loses_nothing_that_was_accepted() -> anyhow::Result<()> {
    let disk = match SmallDisk::new(BYTES) {
        Ok(disk) => disk,
        Err(why) => {
            println!("SKIPPED: {why:#}");
            return Ok(());
        }
    };
    let tasks = tasks(8, 40);
    let nats = NatsServer::start_in(disk.path(), CONFIG).await?;
    let options = ClusterOptions { replicas: 2, lease: LEASE, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(vec![nats], options, effects::library).await?;
    let gateways = cluster.addresses("gateway");

    // the disk is full in the middle of the first tasks
    let asked = tokio::spawn(ask_all(gateways.clone(), 0..tasks, tasks));
    let (first, questions) = (gateways[0].clone(), questions()?);
    poll_until(TIME, "a task to begin", async || {
        let mut client = autoact_wire::limited!(GatewayClient::new(connect_lazy(&first).ok()?));
        let request = GetTaskRequest { task_id: "chaos-0".to_owned(), view: 0 };
        let state = client.get_task(request).await.ok()?.into_inner().task?;
        (state.steps > 0).then_some(())
    })
    .await?;
    disk.fill()?;

    // what is not stored is not accepted
    let mut client = autoact_wire::limited!(GatewayClient::new(connect_lazy(&first)?));
    let (mut accepted, mut refused) = (Vec::new(), 0);
    for number in tasks..tasks + 4 {
        let request: v1::SubmitTaskRequest = task(&questions, number)?;
        match tokio::time::timeout(ANSWER, client.submit_task(request)).await {
            Ok(Ok(_)) => accepted.push(number),
            Ok(Err(_)) | Err(_) => refused += 1,
        }
    }

    // an operator makes room, and starts a server that has given up its streams
    disk.free()?;
    for server in &mut cluster.nats {
        server.restart().await?;
    }
    let mut told = told(&cluster, asked.await?).await?;
    for number in &accepted {
        told.extend(ask_all(gateways.clone(), *number..number + 1, 1).await?);
    }
    let Counted { effects, unknown, take_overs } = examine(&cluster, &told, "a full disk").await?;
    assert_eq!(told.len(), tasks + accepted.len());
    assert!(refused > 0, "a full disk refused nothing");
    println!(
        "{tasks} tasks and a full disk: {refused} submissions refused, {} accepted; {take_overs} take-overs, {effects} effects, {unknown} unknown \
         outcomes, nothing lost or doubled",
        accepted.len()
    );
    // the server's files lie on the disk
    drop(cluster);
    drop(disk);
    Ok(())
}
