//! Definitions that change.

use autoact_mcp_tools::{McpFailure, McpSkip};
use autoact_trajectory::Arguments;
use serde_json::json;

use crate::world::{World, arguments, until};

#[test]
fn a_changed_tool_is_out_of_service_until_it_is_imported_again() {
    let world = World::new();
    let (server, tools) = world.tools(world.options("all"));
    let hello = arguments(json!({"text": "hello"}));
    assert_eq!(tools["echo"].call(&hello).unwrap(), "hello");
    let changes = server.changes();
    assert_eq!(tools["change"].call(&Arguments::new()).unwrap(), "changed");
    until("the change is noticed", || *changes.borrow() == 1);
    let failure = tools["echo"].call(&hello).unwrap_err();
    assert_eq!(failure, McpFailure::Changed { server: "test".to_owned(), tool: "echo".to_owned() });
    assert_eq!(world.noted("echo"), 1);
    assert_eq!(tools["add"].call(&arguments(json!({"b": 1}))).unwrap(), "2");
    let again = world.import(&server).unwrap();
    let echo = again.tools.iter().find(|tool| tool.remote == "echo").unwrap();
    assert_ne!(echo.digest, tools["echo"].digest());
    assert_eq!(server.tool(echo).call(&hello).unwrap(), "hello");
    assert!(tools["echo"].call(&hello).is_err());
}

#[test]
fn only_accepted_definitions_are_imported() {
    let world = World::new();
    let found = world.import(&world.server(world.options("all"))).unwrap();
    let mut options = world.options("all");
    options.accepted = found.tools.iter().map(|tool| (tool.remote.clone(), tool.digest.clone())).collect();
    options.accepted.insert("echo".to_owned(), "0".repeat(64));
    let import = world.import(&world.server(options)).unwrap();
    assert_eq!(import.tools.len(), found.tools.len() - 1);
    assert!(matches!(import.skipped[0].reason, McpSkip::NotAccepted { .. }));
    assert_ne!(import.digest, found.digest);
}

#[test]
fn a_server_of_the_newest_protocol_tells_who_listens() {
    let world = World::new();
    let (server, tools) = world.tools(world.options("newest"));
    let changes = server.changes();
    until("the client listens", || world.noted("listener") == 1);
    assert_eq!(tools["change"].call(&Arguments::new()).unwrap(), "changed");
    until("the change is noticed", || *changes.borrow() == 1);
    assert!(matches!(tools["echo"].call(&arguments(json!({"text": "hello"}))), Err(McpFailure::Changed { .. })));
}
