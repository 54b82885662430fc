//! Mutual TLS between the processes of `autoact up`: who is let in, and certificates that are
//! renewed while tasks run.

use std::error::Error as _;
use std::time::{Duration, Instant};

use autoact_testkit::Group;
use autoact_wire::agents_v1::ListToolsRequest;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::client::{Connector, connect_lazy};
use autoact_wire::memory_v1::ListMemoriesRequest;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::status;
use tonic::Code;
use tonic::transport::Channel;

use crate::clients::{QUESTION, QUICK, TASK_LIMIT, ask, check_whole, gateway, task};

const LISTENERS: [&str; 4] = ["plan-agent", "tool-agent", "reflect-agent", "memory"];

/// Memory's answer to somebody who asks for everything that it has.
async fn memories(channel: Channel) -> Result<(), tonic::Status> {
    MemoryClient::new(channel).list_memories(ListMemoriesRequest::default()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_processes_only_those_who_need_each_other_talk() -> anyhow::Result<()> {
    let group = Group::start().await?;
    assert!(group.said().contains("mutual TLS") && group.said().contains("plain text"), "{}", group.said());
    for service in LISTENERS {
        let plain = connect_lazy(&group.door(service))?;
        let refused = memories(plain).await.err().ok_or_else(|| anyhow::anyhow!("{service} takes plain text"))?;
        // from the transport here: no service answered
        assert!(refused.source().is_some() && status::reason(&refused).is_none(), "{service}: {refused:?}");
    }
    let other = Group::start().await?;
    let stranger = other.connector("autoact")?.connect_lazy(&group.grpc("memory"))?;
    let refused = memories(stranger).await.err().ok_or_else(|| anyhow::anyhow!("another group's operator is let in"))?;
    assert!(refused.source().is_some(), "{refused:?}");
    drop(other);

    for (caller, allowed) in [("gateway", true), ("tool-agent", true), ("autoact", true), ("plan-agent", false), ("reflect-agent", false)] {
        let outcome = memories(group.connector(caller)?.connect_lazy(&group.grpc("memory"))?).await;
        match outcome {
            Ok(()) => assert!(allowed, "{caller} reads memories"),
            Err(refusal) => {
                assert!(!allowed && refusal.code() == Code::PermissionDenied, "{caller}: {refusal:?}");
                assert_eq!(status::reason(&refusal).as_deref(), Some("PEER_NOT_ALLOWED"));
            }
        }
    }
    let mut tools = ToolAgentClient::new(group.connector("memory")?.connect_lazy(&group.grpc("tool-agent"))?);
    let refusal = tools.list_tools(ListToolsRequest::default()).await.err().ok_or_else(|| anyhow::anyhow!("memory lists tools"))?;
    assert_eq!(refusal.code(), Code::PermissionDenied);
    Ok(())
}

/// What a newcomer does beside `autoact up`: nothing is said of certificates.
#[tokio::test(flavor = "multi_thread")]
async fn commands_beside_a_group_need_no_flags() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("travel.md"), "# Travel policy\n\nThe limit for a night is 140 euros.\n")?;
    let path = dir.path().display().to_string();
    // without a scheme, as the defaults are
    let beside = |args: &[&str]| anyhow::Ok(group.autoact(args.iter().copied())?.env("AUTOACT_MEMORY", group.door("memory")));
    for args in [&["corpus", "import", &path, "--collection", "travel"][..], &["corpus", "list"], &["memory", "list"]] {
        let output = beside(args)?.run(QUICK).await?;
        assert_eq!(output.code, Some(0), "{args:?}: {}", output.text());
    }
    let shown = group.autoact(["certs", "show", &group.state_dir().join("tls").display().to_string(), "--json"])?.run(QUICK).await?;
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout)?;
    assert_eq!(shown.as_array().map(Vec::len), Some(8));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_while_tasks_run() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let dir = group.state_dir().join("tls").display().to_string();
    let mut client = gateway(&group.gateway())?;
    let renewed = group.autoact(["certs", "renew", "--dir", &dir])?.run(QUICK).await?;
    assert_eq!(renewed.code, Some(0), "{}", renewed.text());
    let deadline = Instant::now() + TASK_LIMIT;
    let all_read = |group: &Group| LISTENERS.iter().all(|service| group.log(service).contains("certificates read again"));
    let mut tasks = 0;
    while tasks < 3 || !all_read(&group) {
        assert!(Instant::now() < deadline, "the renewed certificates were not read");
        let events = ask(&mut client, task(QUESTION)).await?;
        check_whole(&events, QUESTION)?;
        tasks += 1;
    }
    // whoever connects now is shown the new ones, and those of before still count: the authority is the same
    let connector: Connector = group.connector("gateway")?;
    for service in ["memory"] {
        tokio::time::timeout(Duration::from_secs(20), memories(connector.connect_lazy(&group.grpc(service))?)).await??;
    }
    Ok(())
}
