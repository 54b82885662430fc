//! `autoact eval` against a running group: what approval is worth, from the group's own events.

use anyhow::Context as _;
use autoact_testkit::Group;
use serde_json::Value;

use crate::clients::TASK_LIMIT;

const FAILED: i32 = 1;
const BAD_ARGUMENTS: i32 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_says_what_approval_is_worth() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let dir = tempfile::tempdir()?;
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (rows, plot, calibration) = (path("rows.jsonl"), path("plot.html"), path("calibration.json"));
    let asked = ["eval", "--running", "--set", "dev", "--limit", "4", "--json"];

    let first = [&asked[..], &["--min-confidence", "0", "--output", &rows, "--plot", &plot]].concat();
    let output = group.autoact(first)?.run(TASK_LIMIT).await?;
    assert_eq!(output.code, Some(0), "{}", output.text());
    let report: Value = serde_json::from_str(&output.stdout)?;
    assert!(report["approval"]["approved"]["mean"].is_number(), "{report}");
    let text = std::fs::read_to_string(&rows)?;
    let rows_read: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(rows_read.len(), 4);
    let judged: Vec<&Value> = rows_read.iter().filter_map(|row| row["judgements"].as_array()).flatten().collect();
    // a random model may never come to an answer
    if group.assets().trained {
        assert!(judged.len() >= 4, "{text}");
        assert_eq!(report["approval"]["evidence"]["answers"], 4, "{report}");
    }
    for one in judged {
        assert!(one["threshold"] == 0.0 && one["answer"].is_string(), "{one}");
        // the engine's own log-probabilities, through agents, gateway and bus
        let part = |name: &str| one["evidence"][name].as_f64().with_context(|| format!("no `{name}` in {one}"));
        assert!(part("thoughts")? <= 0.0 && part("lowest_thought")? <= part("thoughts")? && part("reflection")? <= 0.0, "{one}");
        // a greedy verdict is the likelier of the two words; a random model may split them into pieces
        assert!(!group.assets().trained || one["approved"].as_bool() == Some(part("verdict")? > 0.0), "{one}");
    }
    assert!(std::fs::read_to_string(&plot)?.ends_with("</html>\n"));

    // four answers are too few to fit on: the scores are printed in any case, and no file is there
    let few = [&asked[..], &["--calibrate", &calibration, "--judged", &rows]].concat();
    let output = group.autoact(few)?.run(TASK_LIMIT).await?;
    assert_eq!(output.code, Some(FAILED), "{}", output.text());
    let report: Value = serde_json::from_str(&output.stdout)?;
    assert!(report["calibration"].is_null() && report["all"]["questions"] == 4, "{report}");
    assert!(!dir.path().join("calibration.json").exists());

    let held_out = ["eval", "--running", "--set", "held-out", "--limit", "1", "--calibrate", &calibration];
    assert_eq!(group.autoact(held_out)?.run(TASK_LIMIT).await?.code, Some(FAILED));
    let both = [&asked[..], &["--calibrate", &calibration, "--min-confidence", "0.5"]].concat();
    assert_eq!(group.autoact(both)?.run(TASK_LIMIT).await?.code, Some(BAD_ARGUMENTS));
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}
