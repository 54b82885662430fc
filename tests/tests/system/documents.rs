//! Users' files: imported into a knowledge base, served, and found by a tool.

use std::path::Path;

use anyhow::Context as _;
use autoact_testkit::{Assets, Group, GroupOptions, Output, Program};
use serde_json::Value;

use crate::clients::{QUICK, TASK_LIMIT};

const FAILED: i32 = 1;

async fn import(from: &Path, out: &Path) -> anyhow::Result<Output> {
    let (from, out) = (from.display().to_string(), out.display().to_string());
    Program::new("autoact")?.args(["corpus", "import", &from, "--out", &out, "--json"]).run(QUICK).await
}

#[tokio::test(flavor = "multi_thread")]
async fn own_files_are_a_knowledge_base_that_the_group_reads() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (from, out) = (dir.path().join("handbook"), dir.path().join("handbook.jsonl"));
    std::fs::create_dir_all(from.join("rules"))?;
    std::fs::write(from.join("rules/travel.md"), "# Travel policy\n\n## Hotels\n\nThe limit for a night is 140 euros.\n")?;
    std::fs::write(from.join("people.html"), "<title>People</title><nav>Home</nav><main><p>Maria Santos lives in Lisbon.</p></main>")?;
    std::fs::write(from.join("broken.pdf"), "no PDF")?;
    let imported = import(&from, &out).await?;
    assert_eq!(imported.code, Some(0), "{}", imported.text());
    let summary: Value = serde_json::from_str(&imported.stdout)?;
    assert_eq!((&summary["files"], &summary["written"], &summary["skipped"][0]["reason"]), (&2.into(), &2.into(), &"broken".into()));
    let written = std::fs::read_to_string(&out)?;

    // what cannot be imported loses nothing
    let none = import(&dir.path().join("nowhere"), &out).await?;
    assert_eq!((none.code, std::fs::read_to_string(&out)?.as_str()), (Some(FAILED), written.as_str()), "{}", none.text());

    let assets = Some(Assets { corpus: out, ..Assets::bundled(dir.path())? });
    let group = Group::start_with(GroupOptions { assets, ..GroupOptions::default() }).await?;
    let asked = group.autoact(["ask", "--json", "What is the limit of Hotels?"])?.run(TASK_LIMIT).await?;
    let events = asked.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>().context("a JSON event a line")?;
    assert!(events.iter().any(|event| event["event"] == "finished"), "{}", asked.text());
    let observed = |event: &Value| event["event"] == "observation" && event["body"]["text"].to_string().contains("Travel policy: Hotels");
    assert!(!group.assets().trained || events.iter().any(observed), "no tool saw the imported page: {}", asked.text());
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}
