//! Servers that are reached by HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use autoact_http_tools::{AddressClass, Credential, HostRule, HttpFailure, RedirectRefusal, Refusal, Secret, SecretPlace, StatusClass};
use autoact_mcp_tools::{HttpOptions, McpFailure, McpServerOptions, McpTransport};
use serde_json::{Value, json};

use crate::http_server::{HttpServer, answer, events, initialized, json_answer, text};
use crate::world::{SECRET, World, arguments, until};

fn options(server: &HttpServer) -> McpServerOptions {
    let http = HttpOptions {
        url: server.url(),
        headers: vec![("X-Plain".to_owned(), "plain".to_owned())],
        credentials: vec![Credential { secret: Secret::Env("THE_KEY".to_owned()), place: SecretPlace::Bearer }],
        allow_private: true,
        ..HttpOptions::default()
    };
    let mut options = McpServerOptions::new("web", McpTransport::Http(http));
    options.trusted = true;
    options
}

fn http(options: &mut McpServerOptions) -> &mut HttpOptions {
    match &mut options.transport {
        McpTransport::Http(http) => http,
        McpTransport::Stdio(_) => panic!("no URL"),
    }
}

/// What a call of a tool gives.
fn called(world: &World, server: &HttpServer, tool: &str) -> Result<String, McpFailure> {
    let (_server, tools) = world.tools(options(server));
    tools[tool].call(&arguments(json!({"text": "x"})))
}

#[test]
fn calls_are_answered_as_json_and_as_events() {
    let world = World::new();
    let server = HttpServer::start(|message| json_answer(&message["id"], &text("seen"), ""));
    assert_eq!(called(&world, &server, "look").unwrap(), "seen");
    let head = server.requests().into_iter().find(|request| request.contains("tools/call")).unwrap().to_ascii_lowercase();
    for header in ["x-plain: plain", "mcp-session-id: s-1", "mcp-protocol-version: 2025-11-25", &format!("authorization: bearer {SECRET}")]
    {
        assert!(head.contains(header), "{header} in {head}");
    }
    // the session ends with the server
    until("the session is deleted", || server.requests().iter().any(|request| request.starts_with("DELETE /mcp")));
    let server = HttpServer::start(|message| {
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
        events(&[progress, json!({"jsonrpc": "2.0", "id": message["id"], "result": text("seen in events")})])
    });
    assert_eq!(called(&world, &server, "look").unwrap(), "seen in events");
}

#[test]
fn secrets_are_hidden_in_answers_and_in_errors() {
    let world = World::new();
    let server = HttpServer::start(|message| json_answer(&message["id"], &text(&format!("your key is {SECRET}")), ""));
    assert_eq!(called(&world, &server, "look").unwrap(), "your key is ***");
    let server = HttpServer::start(|message| events(&[json!({"jsonrpc": "2.0", "id": message["id"], "result": text(SECRET)})]));
    assert_eq!(called(&world, &server, "look").unwrap(), "***");
    let server = HttpServer::start(|_| answer("401 Unauthorized", "content-type: text/plain\r\n", &format!("{SECRET} is no key")));
    let status = HttpFailure::Status { status: 401, class: StatusClass::Auth, retry_after: None, body: "*** is no key".to_owned() };
    assert_eq!(called(&world, &server, "look").unwrap_err(), McpFailure::Http(status));
}

#[test]
fn requests_go_where_they_may() {
    let world = World::new();
    let server = HttpServer::start(|message| json_answer(&message["id"], &text("x"), ""));
    let refused = |change: &dyn Fn(&mut HttpOptions)| {
        let mut options = options(&server);
        change(http(&mut options));
        match world.import(&world.server(options)).unwrap_err() {
            McpFailure::Http(HttpFailure::Refused { reason, .. }) => reason,
            other => panic!("{other}"),
        }
    };
    assert_eq!(refused(&|http| http.allow_private = false), Refusal::Address(AddressClass::Loopback));
    assert_eq!(refused(&|http| http.hosts = vec![HostRule::parse("example.com").unwrap()]), Refusal::Host);
    let metadata = |http: &mut HttpOptions| http.url = "http://169.254.169.254/mcp".to_owned();
    assert_eq!(refused(&metadata), Refusal::Address(AddressClass::Metadata));
    assert!(server.requests().is_empty());
}

#[test]
fn redirects_are_not_followed() {
    let world = World::new();
    let other = HttpServer::start(|_| String::new());
    let place = other.url();
    let server = HttpServer::whole(move |_, _| answer("307 Temporary Redirect", &format!("location: {place}\r\n"), ""));
    let failure = world.import(&world.server(options(&server))).unwrap_err();
    assert!(matches!(failure, McpFailure::Http(HttpFailure::Redirect { reason: RedirectRefusal::Never, .. })), "{failure}");
    assert!(other.requests().is_empty());
}

#[test]
fn answers_are_bounded() {
    let world = World::new();
    let long = "x".repeat(100_000);
    let (as_json, as_events) = (long.clone(), long);
    let json = HttpServer::start(move |message| json_answer(&message["id"], &text(&as_json), ""));
    let one_event = HttpServer::start(move |message| events(&[json!({"jsonrpc": "2.0", "id": message["id"], "result": text(&as_events)})]));
    let many_events = HttpServer::start(|_| {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
        events(&vec![news; 2000])
    });
    for server in [json, one_event, many_events] {
        let mut options = options(&server);
        options.limits.message_bytes = 50_000;
        let (_server, tools) = world.tools(options);
        let failure = tools["look"].call(&arguments(json!({"text": "x"}))).unwrap_err();
        assert_eq!(failure, McpFailure::TooLarge { limit: 50_000 });
    }
}

#[test]
fn only_what_changes_nothing_is_repeated() {
    let world = World::new();
    let broken = |message: &Value| answer("200 OK", "content-type: text/event-stream\r\n", &format!(": {}\n\n", message["id"]));
    let server = HttpServer::start(broken);
    let failure = called(&world, &server, "change").unwrap_err();
    assert!(matches!(failure, McpFailure::MayHaveRun { .. }), "{failure}");
    assert_eq!(server.calls(), 1);
    let server = HttpServer::start(broken);
    assert!(called(&world, &server, "look").is_err());
    assert_eq!(server.calls(), 2);
    // no answer of HTTP at all
    let server = HttpServer::start(|_| String::new());
    let failure = called(&world, &server, "change").unwrap_err();
    assert!(matches!(failure, McpFailure::Http(HttpFailure::Broken { .. })), "{failure}");
    assert_eq!(server.calls(), 1);
}

#[test]
fn a_session_that_expired_is_opened_again() {
    let world = World::new();
    let count = AtomicUsize::new(0);
    let server = HttpServer::start(move |message| match count.fetch_add(1, Ordering::Relaxed) {
        0 => answer("404 Not Found", "", ""),
        _ => json_answer(&message["id"], &text("again"), ""),
    });
    assert_eq!(called(&world, &server, "change").unwrap(), "again");
    let sessions = server.requests().iter().filter(|request| request.contains("\"initialize\"")).count();
    assert_eq!(sessions, 2);
}

#[test]
fn nonsense_is_a_failure() {
    let world = World::new();
    for body in ["<html>", "{}", "[1]", ""] {
        let server = HttpServer::start(move |_| answer("200 OK", "content-type: application/json\r\n", body));
        let failure = called(&world, &server, "change").unwrap_err();
        assert!(matches!(failure, McpFailure::Protocol { .. }), "{body}: {failure}");
    }
    let server = HttpServer::start(|_| answer("200 OK", "content-type: text/html\r\n", "<html>"));
    assert!(matches!(called(&world, &server, "change"), Err(McpFailure::Protocol { .. })));
    let server = HttpServer::start(|_| answer("200 OK", "content-type: application/json\r\ncontent-encoding: gzip\r\n", "{}"));
    assert_eq!(called(&world, &server, "change"), Err(McpFailure::Http(HttpFailure::Encoded { encoding: "gzip" })));
    let server = HttpServer::whole(|_, _| answer("500 Internal Server Error", "", "sorry"));
    assert!(matches!(world.import(&world.server(options(&server))), Err(McpFailure::Http(HttpFailure::Status { status: 500, .. }))));
}

#[test]
fn a_stream_of_news_that_ends_is_not_opened_in_a_hurry() {
    let world = World::new();
    let server = HttpServer::whole(|request, message| match message["method"].as_str() {
        Some("initialize") => json_answer(&message["id"], &initialized(message), "Mcp-Session-Id: s-1\r\n"),
        Some("tools/list") => json_answer(&message["id"], &json!({"tools": []}), ""),
        None if request.starts_with("GET") => answer("200 OK", "content-type: text/event-stream\r\n", "retry: 0\nid: 1\ndata: \n\n"),
        _ => answer("202 Accepted", "", ""),
    });
    let connected = world.server(options(&server));
    world.import(&connected).unwrap();
    let begun = Instant::now();
    let opened = || server.requests().iter().filter(|request| request.starts_with("GET")).count();
    until("the stream is opened again", || opened() >= 3);
    assert!(opened() <= 4 + 2 * begun.elapsed().as_secs() as usize, "{} in {:?}", opened(), begun.elapsed());
}

#[test]
fn a_server_without_sessions_is_checked_after_a_failure() {
    let world = World::new();
    let replaced = AtomicUsize::new(0);
    let server = HttpServer::whole(move |_, message| match message["method"].as_str() {
        Some("initialize") => json_answer(&message["id"], &initialized(message), ""),
        Some("tools/list") => {
            let text = ["reads", "sends"][replaced.load(Ordering::Relaxed).min(1)];
            let tool = json!({"name": "look", "description": text, "inputSchema": {"type": "object"}});
            json_answer(&message["id"], &json!({"tools": [tool]}), "")
        }
        Some("tools/call") => {
            replaced.fetch_add(1, Ordering::Relaxed);
            answer("503 Service Unavailable", "", "back soon")
        }
        _ => answer("202 Accepted", "", ""),
    });
    let (_server, tools) = world.tools(options(&server));
    let call = || tools["look"].call(&arguments(json!({}))).unwrap_err();
    assert!(matches!(call(), McpFailure::Http(HttpFailure::Status { status: 503, .. })));
    assert!(matches!(call(), McpFailure::Changed { .. }));
    assert_eq!(server.calls(), 1);
}
