//! Programs in a sandbox.

use autoact_mcp_tools::McpFailure;
use autoact_sandbox::{Sandbox, Tier, Tiers};
use autoact_tools::Tool as _;
use autoact_trajectory::Arguments;
use serde_json::json;

use crate::world::{World, arguments, program, runs, stdio, until};

fn confined(tier: Tier) {
    let tiers = Tiers::of(program().as_ref());
    let available = match tier {
        Tier::Namespaces => tiers.namespaces,
        Tier::Landlock => tiers.landlock,
    };
    if let Err(reason) = available {
        return println!("skipped: {reason}");
    }
    let world = World::new();
    let outside = world.directory.path().join("outside");
    std::fs::write(&outside, "outside").unwrap();
    let mut options = world.options("all");
    assert!(world.tools(options.clone()).1["add"].is_trusted());
    stdio(&mut options).sandbox = Some(Sandbox { tier, launcher: Some(program().into()), ..Sandbox::default() });
    let (server, tools) = world.tools(options);
    assert!(!tools["add"].is_trusted());
    assert_eq!(tools["add"].call(&arguments(json!({"b": 1}))).unwrap(), "2");
    let read = tools["read"].call(&arguments(json!({"text": outside.display().to_string()}))).unwrap();
    assert!(read.starts_with("cannot read it"), "{read}");
    let died = tools["die"].call(&Arguments::new()).unwrap_err();
    assert!(matches!(&died, McpFailure::MayHaveRun { reason, .. } if reason.starts_with("exit code 9")), "{died}");
    assert_eq!(tools["add"].call(&arguments(json!({"b": 2}))).unwrap(), "3");
    let launchers = || children_of_this_process();
    until("the launcher runs", || !launchers().is_empty());
    let before = launchers();
    drop((server, tools));
    until("the launcher has ended", || before.iter().all(|process| !runs(*process)));
}

/// Processes that a thread of this one started, and those that they started.
fn children_of_this_process() -> Vec<u32> {
    let children = |process: u32| -> Vec<u32> {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let read = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        threads.map(read).flat_map(|line| line.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
    };
    let mut all = children(std::process::id());
    let mut at = 0;
    while at < all.len() {
        all.extend(children(all[at]));
        at += 1;
    }
    all
}

#[test]
fn a_program_is_confined_in_namespaces() {
    confined(Tier::Namespaces);
}

#[test]
fn a_program_is_confined_by_landlock() {
    confined(Tier::Landlock);
}
