//! What a remote makes of servers and networks that fail.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, engine, llama, options, read, run};
use autoact_model::{Backend, EngineOptions, GenerateError, GenerateRequest};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_testkit::{Fault, Kind, OpenAiServer, poll_until};

fn ask() -> GenerateRequest {
    GenerateRequest { max_tokens: 12, ..GenerateRequest::new("Thought: I") }
}

async fn plain() -> (OpenAiServer, Remote) {
    llama(Kind::Vllm, Dialect::Vllm).await
}

async fn gone(server: &OpenAiServer) {
    poll_until(PATIENCE, "the server to notice", async || (server.open() == 0).then_some(())).await.unwrap();
}

#[tokio::test]
async fn what_fails_before_the_first_token_is_asked_again() {
    let (server, remote) = plain().await;
    let good = run(&remote, ask()).await.unwrap();
    for fault in [
        Fault::busy(Some("0")),
        Fault::busy(None),
        Fault::status(500, "out of memory"),
        Fault::status(502, "bad gateway"),
        Fault::Status { status: 503, retry_after: Some("0.1".into()), body: "<html>loading</html>".into() },
        Fault::CutAfter(0),
        Fault::EndAfter(0),
        Fault::ErrorAfter(0),
        Fault::GarbageAfter(0),
    ] {
        let before = server.asked().len();
        server.fault(fault.clone());
        let done = run(&remote, ask()).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!((&done.text, done.completion_tokens), (&good.text, good.completion_tokens), "{fault:?}");
        assert_eq!(server.asked().len() - before, 2, "{fault:?}");
    }
    // several in a row, and still within the attempts
    for fault in [Fault::CutAfter(0), Fault::status(500, "x"), Fault::busy(Some("0"))] {
        server.fault(fault);
    }
    assert_eq!(run(&remote, ask()).await.unwrap().text, good.text);
}

#[tokio::test]
async fn connections_that_are_refused_are_made_again() {
    let (server, _) = plain().await;
    // a new pool: no connection is left from before
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    drop(remote);
    server.fault(Fault::Refuse);
    server.fault(Fault::Refuse);
    let remote = Remote::connect(options(&server, "plan")).await.unwrap();
    assert_eq!(remote.speaker().unwrap().name, "plan");
    assert!(run(&remote, ask()).await.is_ok());
}

#[tokio::test]
async fn what_fails_after_the_first_token_is_an_error() {
    let (server, remote) = plain().await;
    for (fault, words) in [
        (Fault::CutAfter(1), "broke off"),
        (Fault::EndAfter(1), "broke off"),
        (Fault::ErrorAfter(1), "the engine died"),
        (Fault::GarbageAfter(1), "something else than a completion"),
    ] {
        let before = server.asked().len();
        server.fault(fault.clone());
        let (texts, end) = read(remote.generate(ask())).await;
        let error = end.unwrap_err();
        assert!(matches!(&error, GenerateError::Engine { message } if message.contains(words)), "{fault:?}: {error}");
        assert!(!texts.concat().is_empty(), "{fault:?}");
        assert_eq!(server.asked().len() - before, 1, "{fault:?}");
    }
    assert!(run(&remote, ask()).await.is_ok(), "the next one works");
}

#[tokio::test]
async fn attempts_have_an_end() {
    let (server, remote) = plain().await;
    for _ in 0..4 {
        server.fault(Fault::status(500, &"long ".repeat(10_000)));
    }
    let error = run(&remote, ask()).await.unwrap_err().to_string();
    assert!(error.contains("answered 500") && error.len() < 1000, "{error}");
    assert_eq!(server.asked().len(), 4);
    for _ in 0..4 {
        server.fault(Fault::busy(Some("0")));
    }
    let error = run(&remote, ask()).await.unwrap_err();
    assert!(matches!(error, GenerateError::Overloaded { .. }), "{error}");
    assert_eq!(server.asked().len(), 8);
    // longer than anybody waits: told at once
    server.fault(Fault::busy(Some("60")));
    let error = run(&remote, ask()).await.unwrap_err();
    assert_eq!(error, GenerateError::Overloaded { retry_after: Duration::from_secs(60) });
    assert_eq!(server.asked().len(), 9);
    // what is wrong with the request itself is not asked again
    server.fault(Fault::status(400, "no"));
    let error = run(&remote, ask()).await.unwrap_err().to_string();
    assert!(error.contains("answered 400: `no`"), "{error}");
    assert_eq!(server.asked().len(), 10);
}

#[tokio::test]
async fn a_pause_does_not_outlive_the_deadline() {
    let (server, remote) = plain().await;
    server.fault(Fault::busy(Some("4")));
    let started = Instant::now();
    let deadline = Some(started + Duration::from_secs(2));
    let error = run(&remote, GenerateRequest { deadline, ..ask() }).await.unwrap_err();
    assert_eq!(error, GenerateError::Overloaded { retry_after: Duration::from_secs(4) });
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_silent_server_is_left_at_the_deadline() {
    let (server, remote) = plain().await;
    server.fault(Fault::SilenceAfter(1));
    let deadline = Some(Instant::now() + Duration::from_millis(300));
    let (texts, end) = read(remote.generate(GenerateRequest { deadline, ..ask() })).await;
    assert_eq!(end.unwrap_err(), GenerateError::DeadlineExceeded);
    assert!(!texts.is_empty());
    gone(&server).await;
    assert_eq!(server.abandoned(), 1, "the connection was closed");
}

#[tokio::test]
async fn a_request_without_a_deadline_has_a_bound_too() {
    let (server, _) = plain().await;
    let options = RemoteOptions { timeout: Duration::from_millis(200), ..options(&server, "plan") };
    let remote = Remote::connect(options).await.unwrap();
    server.hold();
    let error = run(&remote, ask()).await.unwrap_err();
    assert!(matches!(&error, GenerateError::Engine { message } if message.contains("200ms")), "{error}");
    gone(&server).await;
}

#[tokio::test]
async fn a_reader_who_leaves_before_the_first_token_is_noticed() {
    let (server, remote) = plain().await;
    server.hold();
    let stream = remote.generate(ask()).unwrap();
    poll_until(PATIENCE, "the request", async || (server.open() == 1).then_some(())).await.unwrap();
    drop(stream);
    gone(&server).await;
    assert_eq!(server.abandoned(), 1);
}

#[tokio::test]
async fn a_slow_first_token_is_prefill_and_a_full_house_is_queue() {
    let (server, _) = plain().await;
    let options = RemoteOptions { max_in_flight: 1, ..options(&server, "plan") };
    let remote = Remote::connect(options).await.unwrap();
    server.hold();
    let started = Instant::now();
    let (first, second) = (remote.generate(ask()).unwrap(), remote.generate(ask()).unwrap());
    poll_until(PATIENCE, "a request", async || (server.open() == 1 && started.elapsed() > Duration::from_millis(100)).then_some(()))
        .await
        .unwrap();
    assert_eq!(server.asked().len(), 1, "the second one waits here");
    server.release();
    let (first, second) = (first.finish().await.unwrap(), second.finish().await.unwrap());
    let held = Duration::from_millis(90);
    assert!(first.queue < held && first.prefill > held, "{first:?}");
    assert!(second.queue > held, "{second:?}");
}

#[tokio::test]
async fn adapters_come_and_go_at_the_server() {
    let engine = engine("llama2", EngineOptions::default());
    let server = crate::common::server(engine.clone(), Kind::Vllm).await;
    let remote = Remote::connect(options(&server, "llama2")).await.unwrap();
    assert_eq!(remote.speaker(), None);
    let tool = || GenerateRequest { adapter: Some("tool".into()), ..ask() };
    assert!(matches!(run(&remote, tool()).await, Err(GenerateError::UnknownAdapter { .. })));
    engine.load_adapter("tool", crate::common::fixture("llama2").join("adapter")).unwrap();
    assert_eq!(run(&remote, tool()).await.unwrap().adapter.unwrap().name, "tool");
    assert_eq!(remote.adapters().len(), 2);
    engine.unload_adapter("tool");
    let error = run(&remote, tool()).await.unwrap_err();
    assert_eq!(error, GenerateError::UnknownAdapter { name: "tool".into(), loaded: vec!["plan".into()] });
}
