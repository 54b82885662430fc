//! Calls that work, and failures that tools and servers report.

use autoact_http_tools::Secret;
use autoact_mcp_tools::{IDEMPOTENCY_KEY, McpClass, McpFailure};
use autoact_tools::{Tool as _, ToolCall, ToolError};
use autoact_trajectory::{Arguments, Trajectory};
use serde_json::json;

use crate::world::{SECRET, World, arguments, stdio};

#[test]
fn calls_are_answered() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    assert_eq!(tools["echo"].call(&arguments(json!({"text": "hello\u{1b}[0m\r\nyou"}))).unwrap(), "hello [0m\nyou");
    assert_eq!(tools["add"].call(&arguments(json!({"b": 2}))).unwrap(), "3");
    assert_eq!(tools["picture"].call(&Arguments::new()).unwrap(), "a picture\n(image, image/png, 3000 bytes, not shown)");
    let numbers = tools["numbers"].call(&Arguments::new()).unwrap();
    assert!(numbers.len() <= 4096 && serde_json::from_str::<serde_json::Value>(&numbers).is_ok(), "{numbers}");
    let meta = tools["echo"].call_as(&arguments(json!({"text": "_meta"})), "acme/t-1/3").unwrap();
    assert!(meta.contains(&format!("\"{IDEMPOTENCY_KEY}\":\"acme/t-1/3\"")), "{meta}");
    assert_eq!(world.noted("start"), 1);
}

#[test]
fn failures_have_classes() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    let error = tools["error"].call(&Arguments::new()).unwrap_err();
    assert_eq!(error, McpFailure::Tool { message: "the  [31mdisk is full".to_owned() });
    let refused = tools["refuse"].call(&Arguments::new()).unwrap_err();
    assert!(matches!(refused, McpFailure::Refused { code: -32602, .. }), "{refused}");
    assert_eq!(refused.class(), McpClass::Refused);
    let trajectory = Trajectory::default();
    let call = ToolCall { tenant: "", key: "", deadline: None, params: "{}", arguments: None, trajectory: &trajectory };
    let told = tools["refuse"].run(&call).unwrap_err();
    assert!(matches!(&told, ToolError::Params(text) if text.contains("`b` is wrong") && text.contains("refuse{}")), "{told}");
}

#[test]
fn requests_of_the_server_are_refused() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    let told = tools["asks"].call(&Arguments::new()).unwrap();
    assert_eq!(told, "ping: ok, roots/list: -32601, sampling/createMessage: -32601, elicitation/create: \"decline\", x/y: -32601");
}

#[test]
fn the_environment_is_what_the_entry_names_and_secrets_are_hidden() {
    let world = World::new();
    let mut options = world.options("all");
    stdio(&mut options).env.insert("PLAIN".to_owned(), "plain".to_owned());
    stdio(&mut options).secrets.insert("KEY".to_owned(), Secret::Env("THE_KEY".to_owned()));
    let (_server, tools) = world.tools(options);
    let seen = |name: &str| tools["env"].call(&arguments(json!({"text": name}))).unwrap();
    assert_eq!(seen("PLAIN"), "Ok(\"plain\") of [\"KEY\", \"LANG\", \"PATH\", \"PLAIN\"]");
    assert!(seen("KEY").starts_with("Ok(\"***\")"), "{}", seen("KEY"));
    let died = tools["die"].call(&Arguments::new()).unwrap_err().to_string();
    assert!(died.contains("out of memory, key ***") && !died.contains(SECRET), "{died}");
}

#[test]
fn a_missing_secret_and_a_missing_program_are_named() {
    let world = World::new();
    let mut options = world.options("all");
    stdio(&mut options).secrets.insert("KEY".to_owned(), Secret::Env("NO_SUCH".to_owned()));
    let failure = world.import(&world.server(options)).unwrap_err();
    assert_eq!(failure, McpFailure::Secret { name: "the variable `NO_SUCH`".to_owned() });
    let mut options = world.options("all");
    stdio(&mut options).program = "no-such-program-anywhere".to_owned();
    let failure = world.import(&world.server(options)).unwrap_err();
    assert!(matches!(&failure, McpFailure::Start { reason, .. } if reason.contains("no-such-program")), "{failure}");
}

#[test]
fn a_server_without_a_handshake_is_asked_in_the_newest_way() {
    let world = World::new();
    let server = world.server(world.options("newest"));
    let import = world.import(&server).unwrap();
    assert_eq!(import.protocol, "2026-07-28");
    let echo = import.tools.iter().find(|tool| tool.remote == "echo").unwrap();
    assert_eq!(server.tool(echo).call(&arguments(json!({"text": "x"}))).unwrap(), "x");
}

#[test]
fn a_server_is_closed_in_order_and_started_again() {
    let world = World::new();
    let (server, tools) = world.tools(world.options("all"));
    world.runtime.block_on(server.close());
    assert_eq!(world.noted("end"), 1);
    assert_eq!(tools["add"].call(&arguments(json!({"b": 2}))).unwrap(), "3");
    assert_eq!(world.noted("start"), 2);
}
