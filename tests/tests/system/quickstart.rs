//! What `./quickstart --once` runs after the build.

use std::time::Duration;

use autoact_testkit::{Group, GroupOptions};

use crate::clients::ANSWER;

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_answers_shows_the_work_and_leaves_nothing_running() -> anyhow::Result<()> {
    let options = GroupOptions { args: vec!["--demo".to_owned(), "--once".to_owned()], ..GroupOptions::default() };
    let mut group = Group::spawn(options)?;
    let code = group.ended(Duration::from_secs(120)).await?;
    let said = group.said();
    for expected in ["the group is up after", "question", "thought 1", "action 1", "answer", "where the time went", "plan", "tool", "whole"]
    {
        assert!(said.contains(expected), "`{expected}` is missing in:\n{said}");
    }
    if group.assets().trained {
        assert_eq!(code, Some(0), "{said}");
        let answer = said.lines().find(|line| line.starts_with("answer")).unwrap_or_default();
        assert!(answer.contains(ANSWER) && answer.contains("approved by reflect-agent"), "{said}");
        for expected in ["observation 1", "reflection"] {
            assert!(said.contains(expected), "`{expected}` is missing in:\n{said}");
        }
    } else {
        assert!(matches!(code, Some(0 | 3)), "{said}");
    }
    group.all_gone(Duration::from_secs(10)).await?;
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}
