//! Answers, failures, repetitions and bounds of calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_http_tools::{BodyForm, HttpFailure, Method, Place, StatusClass};
use autoact_tools::{Tool, ToolCall, ToolError};
use autoact_trajectory::{Effect, Trajectory};
use serde_json::{Value, json};

use crate::server::{Names, Server, World, arguments, ok, operation, response};

fn call(world: &World, method: Method, url: &str) -> Result<String, HttpFailure> {
    world.tool(operation(method, url, &[], BodyForm::None)).call(&arguments(json!({})), "")
}

#[test]
fn a_server_that_says_when_is_asked_again_at_most_twice() {
    let world = World::new(Names::default());
    let busy = |status| {
        Server::start(move |_, before| if before < 2 { response(status, "retry-after: 0\r\n", "") } else { ok("text/plain", "done") })
    };
    for status in [429, 503] {
        for method in [Method::Get, Method::Put, Method::Delete] {
            let server = busy(status);
            assert_eq!(call(&world, method, &server.url("/")).unwrap(), "done");
            assert_eq!(server.requests().len(), 3);
        }
        // it may have taken effect
        let server = busy(status);
        assert!(matches!(call(&world, Method::Post, &server.url("/")), Err(HttpFailure::Status { .. })));
        assert_eq!(server.requests().len(), 1);
    }
    let never = Server::start(|_, _| response(429, "retry-after: 0\r\n", "slow down"));
    let failure = call(&world, Method::Get, &never.url("/")).unwrap_err();
    let expected =
        HttpFailure::Status { status: 429, class: StatusClass::RateLimited, retry_after: Some(Duration::ZERO), body: "slow down".into() };
    assert_eq!((failure, never.requests().len()), (expected, 3));
    // longer than the call may take, or never said
    let late = Server::start(|_, _| response(503, "retry-after: 3600\r\n", ""));
    let started = Instant::now();
    assert!(matches!(call(&world, Method::Get, &late.url("/")), Err(HttpFailure::Status { retry_after: Some(_), .. })));
    let absurd = Server::start(|_, _| response(503, "retry-after: 1e19\r\n", ""));
    assert!(matches!(call(&world, Method::Get, &absurd.url("/")), Err(HttpFailure::Status { retry_after: Some(_), .. })));
    let silent = Server::start(|_, _| response(503, "", ""));
    assert!(matches!(call(&world, Method::Get, &silent.url("/")), Err(HttpFailure::Status { retry_after: None, .. })));
    assert_eq!((late.requests().len(), silent.requests().len()), (1, 1));
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_refusal_of_the_arguments_says_what_is_expected() {
    let server = Server::start(|_, _| {
        response(422, "content-type: application/json\r\n", r#"{"detail":[{"loc":["query","day"],"msg":"not a date"}]}"#)
    });
    let world = World::new(Names::default());
    let tool = world.tool(operation(Method::Get, &server.url("/"), &[("day", Place::Query)], BodyForm::None));
    let (given, trajectory) = (arguments(json!({"day": "x"})), Trajectory::default());
    match tool.run(&ToolCall { tenant: "", key: "", deadline: None, params: "", arguments: Some(&given), trajectory: &trajectory }) {
        Err(ToolError::Params(text)) => assert!(text.contains("query/day: not a date") && text.contains("Usage: Call{"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_answer_stays_json_and_secrets_of_others_do_not_matter() {
    let items: Vec<Value> = (0..5000).map(|n| json!({"id": n, "text": "long text ".repeat(20)})).collect();
    let body = json!({"total": 5000, "items": items}).to_string();
    let server = Server::start(move |_, _| ok("application/json", &body));
    let world = World::new(Names::default());
    let text = call(&world, Method::Get, &server.url("/")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(text.len() <= 4096 && text.len() > 3000 && value["total"] == 5000, "{}", text.len());
    assert!(value["items"].as_array().unwrap().last().unwrap().as_str().unwrap().ends_with("more"));
}

#[test]
fn a_head_request_is_its_headers() {
    let server = Server::start(|_, _| "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 12\r\n\r\n".to_owned());
    let world = World::new(Names::default());
    assert_eq!(
        call(&world, Method::Head, &server.url("/")).unwrap(),
        "status 200, content-type: image/png, content-length: 12, no content"
    );
}

#[test]
fn the_name_of_a_call_goes_with_what_changes_the_world() {
    let server = Server::echo();
    let world = World::new(Names::default());
    for (method, sent) in [(Method::Get, false), (Method::Post, true), (Method::Delete, true)] {
        let tool = world.tool(operation(method, &server.url("/"), &[], BodyForm::None));
        assert_eq!(tool.spec().effect != Effect::ReadOnly, sent);
        assert_eq!(tool.call(&arguments(json!({})), "task-1").unwrap().contains("idempotency-key: task-1"), sent);
    }
}

#[test]
fn calls_at_once_have_a_bound() {
    let open = Arc::new(std::sync::Barrier::new(2));
    let gate = Arc::clone(&open);
    let server = Server::start(move |_, _| {
        gate.wait();
        ok("text/plain", "done")
    });
    let world = World::new(Names::default());
    let mut operation = operation(Method::Get, &server.url("/"), &[], BodyForm::None);
    operation.limits.concurrency = 1;
    operation.limits.time = Duration::from_secs(4);
    let tool = world.tool(operation);
    let first = {
        let tool = tool.clone();
        std::thread::spawn(move || tool.call(&arguments(json!({})), ""))
    };
    while server.requests().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(tool.call(&arguments(json!({})), ""), Err(HttpFailure::Busy { limit: 1 }));
    open.wait();
    assert_eq!(first.join().unwrap().unwrap(), "done");
}

#[test]
fn a_connection_that_fails_is_a_failure_of_its_kind() {
    let world = World::new(Names::default());
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    assert!(matches!(call(&world, Method::Get, &format!("http://{closed}/")), Err(HttpFailure::Unreachable { .. })));
    assert!(matches!(call(&world, Method::Get, "http://none.test/"), Err(HttpFailure::Unreachable { .. })));
    let short = Server::start(|_, _| "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_owned());
    assert!(matches!(call(&world, Method::Get, &short.url("/")), Err(HttpFailure::Broken { .. })));
    let garbage = Server::start(|_, _| "hello\r\n\r\n".to_owned());
    assert!(matches!(call(&world, Method::Get, &garbage.url("/")), Err(HttpFailure::Broken { .. })));
    let switching = Server::start(|_, _| response(304, "", ""));
    assert!(matches!(call(&world, Method::Get, &switching.url("/")), Err(HttpFailure::Status { class: StatusClass::Unexpected, .. })));
}
