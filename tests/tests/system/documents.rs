//! Users' files: imported into a knowledge base, served, and found by a tool.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::{Assets, Group, GroupOptions, Output, Program};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clients::{QUICK, TASK_LIMIT};

const FAILED: i32 = 1;
const STOP: Duration = Duration::from_secs(20);

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

/// The rows of a command with `--json`.
async fn rows<const N: usize>(group: &Group, args: [&str; N]) -> anyhow::Result<Value> {
    let output = group.autoact(args)?.run(QUICK).await?;
    anyhow::ensure!(output.code == Some(0), "{args:?}: {}", output.text());
    Ok(serde_json::from_str(&output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_are_imported_searched_asked_and_deleted_while_the_group_runs() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let handbook = dir.path().join("Handbook");
    std::fs::create_dir_all(&handbook)?;
    std::fs::write(handbook.join("travel.md"), "# Travel policy\n\n## Hotels\n\nThe limit for a night is 140 euros.\n")?;
    std::fs::write(handbook.join("people.html"), "<title>People</title><main><p>Maria Santos lives in Lisbon.</p></main>")?;
    std::fs::write(handbook.join("broken.pdf"), "no PDF")?;
    let path = handbook.display().to_string();
    let mut group = Group::start_with(GroupOptions::default()).await?;

    let summary = rows(&group, ["corpus", "import", &path, "--json"]).await?;
    assert_eq!((&summary["collection"], &summary["files"], &summary["segments"]), (&"handbook".into(), &2.into(), &2.into()), "{summary}");
    assert_eq!(summary["skipped"][0]["reason"], "broken");
    let again = rows(&group, ["corpus", "import", &path, "--json"]).await?;
    assert_eq!((&again["files"], &again["unchanged"], &again["segments"]), (&0.into(), &2.into(), &0.into()), "{again}");

    // a task looks into the collection, and into nothing else
    let asked = group.autoact(["ask", "--json", "--corpus", "handbook", "What is the limit of Hotels?"])?.run(TASK_LIMIT).await?;
    let events = asked.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>().context("a JSON event a line")?;
    assert!(events.iter().any(|event| event["event"] == "finished"), "{}", asked.text());
    let observed = |event: &Value| event["event"] == "observation" && event["body"]["text"].to_string().contains("140 euros");
    assert!(!group.assets().trained || events.iter().any(observed), "no tool saw the collection: {}", asked.text());

    // one that is not there is told at once, with those that are
    let unknown = group.autoact(["ask", "--corpus", "handbok", "What is the limit of Hotels?"])?.run(QUICK).await?;
    let told = unknown.stderr.contains("there is no collection `handbok`") && unknown.stderr.contains("`handbook`");
    assert!(unknown.code != Some(0) && told, "{}", unknown.text());

    // a changed file replaces itself alone
    std::fs::write(handbook.join("travel.md"), "# Travel policy\n\n## Hotels\n\nThe limit for a night is 155 euros.\n")?;
    std::fs::remove_file(handbook.join("people.html"))?;
    let changed = rows(&group, ["corpus", "import", &path, "--json"]).await?;
    assert_eq!((&changed["files"], &changed["missing"], &changed["deleted"]), (&1.into(), &serde_json::json!(["people.html"]), &0.into()));
    assert_eq!(rows(&group, ["corpus", "search", "handbook", "Lisbon", "--strategy", "words", "--json"]).await?[0]["path"], "people.html");
    assert_eq!(rows(&group, ["corpus", "import", &path, "--prune", "--json"]).await?["deleted"], 1);
    assert_eq!(rows(&group, ["corpus", "search", "handbook", "Lisbon", "--strategy", "words", "--json"]).await?, serde_json::json!([]));

    // it is there after a crash
    group.signal(Signal::SIGKILL);
    group.ended(STOP).await?;
    group.all_gone(STOP).await?;
    group.start_again().await?;
    let found = rows(&group, ["corpus", "search", "handbook", "limit for a night", "--strategy", "words", "--json"]).await?;
    assert_eq!((&found[0]["text"], &found[0]["title"]), (&"The limit for a night is 155 euros.".into(), &"Travel policy: Hotels".into()));
    assert_eq!(rows(&group, ["corpus", "list", "--json"]).await?[0]["segments"], serde_json::json!(1));

    let deleted = group.autoact(["corpus", "delete", "handbook"])?.run(QUICK).await?;
    assert_eq!(deleted.code, Some(0), "{}", deleted.text());
    let gone = group.autoact(["corpus", "files", "handbook"])?.run(QUICK).await?;
    assert!(gone.code == Some(FAILED) && gone.stderr.contains("there is no collection `handbook`"), "{}", gone.text());
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}
