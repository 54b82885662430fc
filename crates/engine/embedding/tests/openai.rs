//! An embedder against a server that keeps to the API, and does not.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_config::Secret;
use autoact_embedding::{ClientError, EmbedError, Embedder, OpenAiEmbedder, OpenAiEmbedderOptions};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What a server answers next, instead of the vectors.
enum Answer {
    Status(u16, Option<&'static str>, &'static str),
    Body(String),
    /// The vectors after a change.
    Changed(fn(&mut Vec<Value>)),
    Never,
}

#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<(HeaderMap, Value)>>,
}

/// A server whose vector of a text is its length in bytes, 1 and 2. It gives the last text's first.
struct Server {
    url: String,
    script: Arc<Script>,
}

impl Server {
    async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let script = Arc::new(Script::default());
        let router = Router::new().route("/v1/embeddings", post(answer)).with_state(script.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Server { url, script }
    }

    fn options(&self) -> OpenAiEmbedderOptions {
        OpenAiEmbedderOptions::new(&self.url, "small")
    }

    fn then(&self, answer: Answer) {
        self.script.answers.lock().unwrap().push_back(answer);
    }

    fn asked(&self) -> usize {
        self.script.asked.lock().unwrap().len()
    }
}

async fn answer(State(script): State<Arc<Script>>, headers: HeaderMap, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    script.asked.lock().unwrap().push((headers, body.clone()));
    let input = body["input"].as_array().unwrap();
    let vector = |(index, text): (usize, &Value)| json!({ "object": "embedding", "index": index, "embedding": [text.as_str().unwrap().len(), 1, 2] });
    let mut data: Vec<Value> = input.iter().enumerate().map(vector).rev().collect();
    let next = script.answers.lock().unwrap().pop_front();
    match next {
        None => {}
        Some(Answer::Status(status, retry_after, body)) => {
            let status = StatusCode::from_u16(status).unwrap();
            return match retry_after {
                Some(seconds) => (status, [("retry-after", seconds)], body).into_response(),
                None => (status, body).into_response(),
            };
        }
        Some(Answer::Body(body)) => return body.into_response(),
        Some(Answer::Changed(change)) => change(&mut data),
        Some(Answer::Never) => std::future::pending().await,
    }
    json!({ "object": "list", "model": "small", "data": data }).to_string().into_response()
}

async fn connected(change: impl FnOnce(&mut OpenAiEmbedderOptions)) -> (Server, Arc<OpenAiEmbedder>) {
    let server = Server::start().await;
    let mut options = server.options();
    change(&mut options);
    let embedder = Arc::new(OpenAiEmbedder::connect(options).await.unwrap());
    server.script.asked.lock().unwrap().clear();
    (server, embedder)
}

/// Calls the embedder as its users do, off the runtime.
async fn embed(embedder: &Arc<OpenAiEmbedder>, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let embedder = embedder.clone();
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let call = move || embedder.embed(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(call).await.unwrap()
}

/// The vector of a text with this many bytes.
fn vector(bytes: f32) -> Vec<f32> {
    let length = (bytes * bytes + 5.0).sqrt();
    vec![bytes / length, 1.0 / length, 2.0 / length]
}

fn close(found: &[Vec<f32>], expected: &[Vec<f32>]) -> bool {
    found.len() == expected.len() && found.concat().iter().zip(expected.concat()).all(|(a, b)| (a - b).abs() < 1e-6)
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts_in_batches() {
    let (server, embedder) = connected(|options| options.batch = 2).await;
    assert_eq!((embedder.name(), embedder.dimension()), ("small/3", 3));
    let found = embed(&embedder, &["one", "", "three", "a b c d", "é"]).await.unwrap();
    // an empty text is sent as a blank
    assert!(close(&found, &[3.0, 1.0, 5.0, 7.0, 2.0].map(vector)), "{found:?}");
    let asked: Vec<Value> = server.script.asked.lock().unwrap().iter().map(|(_, body)| body.clone()).collect();
    assert_eq!(asked[0], json!({ "model": "small", "input": ["one", " "] }));
    assert_eq!(asked.len(), 3);
    assert!(embed(&embedder, &[]).await.unwrap().is_empty());
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn failures_that_pass_are_tried_again() {
    let (server, embedder) = connected(|_| {}).await;
    for answer in [
        Answer::Status(429, Some("0"), "busy"),
        Answer::Status(429, None, "busy"),
        Answer::Status(503, Some("0.1"), "loading"),
        Answer::Status(502, None, "<html>"),
    ] {
        let before = server.asked();
        server.then(answer);
        assert!(close(&embed(&embedder, &["one"]).await.unwrap(), &[vector(3.0)]));
        assert_eq!(server.asked() - before, 2);
    }
}

#[tokio::test]
async fn retries_have_an_end() {
    let (server, embedder) = connected(|options| options.retries = 1).await;
    for _ in 0..2 {
        server.then(Answer::Status(429, Some("0"), "busy"));
    }
    let error = embed(&embedder, &["one"]).await.unwrap_err();
    assert!(matches!(error, EmbedError::Busy { .. }) && error.is_transient(), "{error}");
    assert_eq!(server.asked(), 2);
    // a server that asks for more than the longest pause is left alone
    server.then(Answer::Status(429, Some("3600"), "come back tomorrow"));
    let error = embed(&embedder, &["one"]).await.unwrap_err();
    assert!(matches!(error, EmbedError::Busy { retry_after: Some(after), .. } if after.as_secs() == 3600), "{error}");
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn replies_that_are_no_vectors_are_errors_at_once() {
    let (server, embedder) = connected(|_| {}).await;
    let body = |embedding: &str| Answer::Body(format!(r#"{{"data": [{{"index": 0, "embedding": {embedding}}}]}}"#));
    let answers = [
        Answer::Changed(|data| data.clear()),
        Answer::Changed(|data| data.push(data[0].clone())),
        Answer::Changed(|data| data[0]["index"] = json!(7)),
        Answer::Changed(|data| data[0]["embedding"] = json!([1, 2])),
        body("[NaN, 1, 2]"),
        body("[null, 1, 2]"),
        body("[1e39, 1, 2]"),
        body("[0, 0, 0]"),
        Answer::Body("<html>welcome</html>".to_owned()),
        // beyond the bound
        Answer::Body(" ".repeat(1 << 20)),
    ];
    let count = answers.len();
    for answer in answers {
        server.then(answer);
        let error = embed(&embedder, &["one"]).await.unwrap_err();
        assert!(matches!(error, EmbedError::Reply { .. }) && !error.is_transient(), "{error}");
    }
    assert_eq!(server.asked(), count);
    assert!(embed(&embedder, &["one"]).await.is_ok());
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let (server, embedder) = connected(|options| options.api_key = Secret::new("s3cret")).await;
    assert!(!format!("{embedder:?}").contains("s3cret"));
    embed(&embedder, &["one"]).await.unwrap();
    assert_eq!(server.script.asked.lock().unwrap()[0].0["authorization"], "Bearer s3cret");
    server.then(Answer::Status(401, None, r#"{"error": {"message": "no such key"}}"#));
    let error = embed(&embedder, &["one"]).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, EmbedError::Refused { .. }) && text.contains("no such key") && !text.contains("s3cret"), "{text}");
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn a_call_has_a_time_limit() {
    let (server, embedder) = connected(|options| options.timeout = Duration::from_millis(200)).await;
    server.then(Answer::Never);
    let error = embed(&embedder, &["one"]).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }) && error.is_transient(), "{error}");
    assert!(embed(&embedder, &["one"]).await.is_ok());
}

#[tokio::test]
async fn a_server_that_is_starting_is_waited_for() {
    let server = Server::start().await;
    for retry_after in [None, Some("3600"), None] {
        server.then(Answer::Status(503, retry_after, "loading"));
    }
    assert!(OpenAiEmbedder::connect(server.options()).await.is_ok());
    let never = OpenAiEmbedderOptions { start_timeout: Duration::from_millis(200), ..server.options() };
    server.then(Answer::Never);
    let error = OpenAiEmbedder::connect(never).await.unwrap_err();
    assert!(matches!(error, EmbedError::Unavailable { .. }), "{error}");
    server.then(Answer::Status(404, None, "no such model"));
    let error = OpenAiEmbedder::connect(server.options()).await.unwrap_err();
    assert!(matches!(&error, EmbedError::Refused { reason, .. } if reason.contains("`small`")), "{error}");
    let error = OpenAiEmbedder::connect(OpenAiEmbedderOptions::new("vllm:8000", "small")).await.unwrap_err();
    assert!(matches!(error, EmbedError::Client(ClientError::Url { .. })), "{error}");
}

#[test]
fn a_runtime_that_is_gone_is_an_error() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_server, embedder) = runtime.block_on(connected(|_| {}));
    runtime.shutdown_background();
    assert!(embedder.embed(&["one"]).unwrap_err().is_transient());
}
