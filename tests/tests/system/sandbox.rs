//! A tool's program in its sandbox, in the real Tool-Agent.

use anyhow::Context as _;
use autoact_testkit::{Assets, Group, GroupOptions};
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{ExecuteRequest, ExecuteResponse};
use autoact_wire::limited;
use autoact_wire::v1::Action;

/// A tool that runs its input in a shell.
fn tool(name: &str, sandbox: &str) -> String {
    format!(
        "\n[[tool]]\nname = \"{name}\"\ndefinition = \"Runs a line in a shell.\"\nusage = \"{name}[line]\"\neffect = \"read_only\"\n\
         timeout = \"20s\"\nrun = {{ kind = \"command\", program = \"sh\"{sandbox} }}\n"
    )
}

async fn run(group: &Group, tool: &str, line: &str) -> anyhow::Result<ExecuteResponse> {
    let mut client = limited!(ToolAgentClient::new(group.channel("tool-agent")?));
    let action = Some(Action { tool: tool.to_owned(), params: line.to_owned() });
    let request = ExecuteRequest { task_id: "sandbox".to_owned(), action, ..ExecuteRequest::default() };
    Ok(client.execute(request).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confined_program_does_its_work_and_reaches_nothing_else() -> anyhow::Result<()> {
    if let Err(reason) = autoact_sandbox::Tiers::of(&autoact_testkit::files::program("agents")?).namespaces {
        eprintln!("skipped: no namespaces: {reason}");
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let secret = dir.path().join("secret.txt");
    std::fs::write(&secret, "xylophagous")?;
    let tools = dir.path().join("tools.toml");
    let bundled = Assets::bundled(dir.path())?;
    let text = std::fs::read_to_string(&bundled.tools)? + &tool("Free", ", sandbox = false") + &tool("Confined", "");
    std::fs::write(&tools, text)?;
    let group = Group::start_with(GroupOptions { assets: Some(Assets { tools, ..bundled }), ..GroupOptions::default() }).await?;

    let worked = run(&group, "Confined", "echo 6,7 > $ARTIFACTS_DIR/a.csv; expr 6 \\* 7").await?;
    assert_eq!((worked.observation.as_str(), worked.is_error), ("42", false), "{worked:?}");
    assert_eq!(worked.artifacts.first().context("no artifact")?.data, b"6,7\n");

    let read = format!("cat {}", secret.display());
    assert_eq!(run(&group, "Free", &read).await?.observation, "xylophagous");
    assert!(run(&group, "Confined", &read).await?.is_error);
    let write = format!("echo x > {}", dir.path().join("written").display());
    assert!(run(&group, "Confined", &write).await?.is_error && !dir.path().join("written").exists());
    let port = group.nats();
    let port = port.rsplit(':').next().context("a port")?;
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    assert!(run(&group, "Confined", &format!("bash -c '{connect}'")).await?.is_error);
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}
