//! Servers that do not keep to anything.

use std::time::{Duration, Instant};

use autoact_http_tools::Secret;
use autoact_mcp_tools::{McpClass, McpFailure};
use autoact_trajectory::Arguments;
use serde_json::json;

use crate::world::{SECRET, World, arguments, runs, stdio, until};

#[test]
fn a_call_that_may_have_run_is_not_repeated() {
    let world = World::new();
    let mut options = world.options("all");
    options.trusted = true;
    let (_server, tools) = world.tools(options);
    let failure = tools["die"].call(&Arguments::new()).unwrap_err();
    assert!(matches!(&failure, McpFailure::MayHaveRun { reason, .. } if reason.starts_with("exit code 9")), "{failure}");
    assert_eq!(failure.class(), McpClass::MayHaveRun);
    assert_eq!((world.noted("die"), world.noted("start")), (1, 1));
    // the next call starts it again
    assert_eq!(tools["echo"].call(&arguments(json!({"text": "again"}))).unwrap(), "again");
    assert_eq!(world.noted("start"), 2);
}

#[test]
fn a_server_that_dies_again_and_again_is_left_alone_for_a_while() {
    let world = World::new();
    let mut options = world.options("ends");
    options.timeout = Duration::from_millis(900);
    options.limits.connect = Duration::from_millis(900);
    stdio(&mut options).secrets.insert("KEY".to_owned(), Secret::Env("THE_KEY".to_owned()));
    let server = world.server(options);
    let first = world.import(&server).unwrap_err();
    assert!(matches!(&first, McpFailure::Ended { reason, .. } if reason.contains("exit code 3")), "{first}");
    assert!(first.to_string().contains("cannot start: ***") && !first.to_string().contains(SECRET), "{first}");
    let later: Vec<McpFailure> = (0..4).map(|_| world.import(&server).unwrap_err()).collect();
    assert!(matches!(later.last(), Some(McpFailure::NotConnected { .. })), "{later:?}");
    assert!(world.noted("start") < 5);
}

#[test]
fn an_endless_line_ends_the_server() {
    let world = World::new();
    let mut options = world.options("all");
    options.limits.message_bytes = 1 << 20;
    let (_server, tools) = world.tools(options);
    assert_eq!(tools["endless"].call(&Arguments::new()).unwrap_err(), McpFailure::TooLarge { limit: 1 << 20 });
    assert_eq!(tools["add"].call(&arguments(json!({"b": 1}))).unwrap(), "2");
    assert_eq!(world.noted("start"), 2);
}

#[test]
fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let world = World::new();
    let mut options = world.options("all");
    options.timeout = Duration::from_secs(2);
    let (_server, tools) = world.tools(options);
    let begun = Instant::now();
    assert_eq!(tools["silent"].call(&Arguments::new()).unwrap_err(), McpFailure::TimedOut { after: Duration::from_secs(2) });
    assert!(begun.elapsed() < Duration::from_secs(5));
    until("the server is told", || world.noted("cancelled") == 1);
    assert_eq!(tools["add"].call(&arguments(json!({"b": 1}))).unwrap(), "2");
    assert_eq!(world.noted("start"), 1);
}

#[test]
fn a_server_that_asks_and_does_not_read_is_given_up() {
    let world = World::new();
    let mut options = world.options("all");
    options.timeout = Duration::from_secs(2);
    let (_server, tools) = world.tools(options);
    assert_eq!(tools["nag"].call(&Arguments::new()).unwrap_err(), McpFailure::TimedOut { after: Duration::from_secs(2) });
    assert_eq!(tools["add"].call(&arguments(json!({"b": 1}))).unwrap(), "2");
    assert_eq!(world.noted("start"), 2);
}

#[test]
fn a_mute_server_is_not_waited_for() {
    let world = World::new();
    let mut options = world.options("mute");
    options.limits.connect = Duration::from_secs(1);
    let begun = Instant::now();
    assert!(matches!(world.import(&world.server(options)), Err(McpFailure::TimedOut { .. })));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn nonsense_between_messages_is_passed_over() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    assert_eq!(tools["garbage"].call(&Arguments::new()).unwrap(), "after garbage");
    for odd in ["malformed", "odd"] {
        let failure = tools[odd].call(&Arguments::new()).unwrap_err();
        assert!(matches!(failure, McpFailure::Protocol { .. }), "{odd}: {failure}");
    }
    assert!(tools["deep"].call(&Arguments::new()).is_ok());
    assert_eq!(world.noted("start"), 1);
}

#[test]
fn calls_at_once_are_bounded() {
    let world = World::new();
    let mut options = world.options("all");
    (options.timeout, options.limits.concurrency) = (Duration::from_secs(3), 1);
    let (_server, tools) = world.tools(options);
    std::thread::scope(|scope| {
        scope.spawn(|| tools["silent"].call(&Arguments::new()));
        until("the first call is under way", || world.noted("silent") == 1);
        let second = tools["echo"].call(&arguments(json!({"text": "x"})));
        assert_eq!(second, Err(McpFailure::Busy { limit: 1 }));
    });
}

#[test]
fn nothing_is_left_of_a_dropped_server() {
    let world = World::new();
    let (server, tools) = world.tools(world.options("all"));
    let child: u32 = tools["child"].call(&Arguments::new()).unwrap().parse().unwrap();
    assert!(runs(child));
    drop(server);
    assert!(runs(child), "a tool keeps its server");
    drop(tools);
    until("the child has ended", || !runs(child));
}

#[test]
fn nothing_is_left_of_a_server_that_died() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    let child: u32 = tools["child"].call(&Arguments::new()).unwrap().parse().unwrap();
    assert!(tools["die"].call(&Arguments::new()).is_err());
    until("the child has ended", || !runs(child));
}
