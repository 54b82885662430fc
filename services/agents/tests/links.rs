//! Called through a link, the program is the agent of that name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::process::Command;

#[test]
fn a_link_chooses_the_agent() {
    let dir = tempfile::tempdir().unwrap();
    for (name, about) in [("plan-agent", "Plan-Agent"), ("tool-agent", "Tool-Agent"), ("reflect-agent", "Reflect-Agent")] {
        let link = dir.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_agents"), &link).unwrap();
        let output = Command::new(&link).arg("--help").output().unwrap();
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with(about), "{output:?}");
    }
}

#[test]
fn without_a_name_it_says_what_it_needs() {
    let usage = "agents plan-agent|tool-agent|reflect-agent";
    for args in [&[][..], &["gateway"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_agents")).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(64));
        assert!(String::from_utf8_lossy(&output.stderr).contains(usage), "{output:?}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_agents")).arg("--help").output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains(usage), "{output:?}");
}
