//! What every backend promises: one body for our own engine and for a server over it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, engine, options, read, run, server};
use autoact_model::{Backend, Engine, EngineOptions, FinishReason, GenerateError, GenerateRequest, Grammar, Prompt, Sampling};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_testkit::{Kind, OpenAiServer, poll_until};
use serde_json::json;

/// A backend under test, and its server.
struct Subject {
    name: &'static str,
    backend: Arc<dyn Backend>,
    server: Option<OpenAiServer>,
}

/// Our engine, and servers over engines of their own, all of them alike.
async fn subjects(fixture: &str, engine_options: EngineOptions) -> Vec<Subject> {
    let mut subjects = vec![Subject { name: "local", backend: engine(fixture, engine_options.clone()), server: None }];
    for (name, kind, dialect) in [("vllm", Kind::Vllm, Dialect::Vllm), ("vllm before 0.12", Kind::VllmGuided, Dialect::VllmGuided)] {
        let server = server(engine(fixture, engine_options.clone()), kind).await;
        // as full as an engine with a queue of one
        let (max_in_flight, queue) = if engine_options.queue == 1 { (1, 1) } else { (64, 64) };
        let options = RemoteOptions { dialect, max_in_flight, queue, ..options(&server, fixture) };
        subjects.push(Subject { name, backend: Arc::new(Remote::connect(options).await.unwrap()), server: Some(server) });
    }
    subjects
}

fn hot(prompt: &str, seed: u64) -> GenerateRequest {
    GenerateRequest { sampling: Sampling::with_temperature(1.0, seed), max_tokens: 40, ..GenerateRequest::new(prompt) }
}

/// Long enough to be caught in the middle: the fixtures' weights end a text only by chance.
fn endless() -> GenerateRequest {
    GenerateRequest { max_tokens: 200, grammar: Some(Grammar::Regex("[a-z ]{500}".to_owned())), ..hot("x", 1) }
}

#[tokio::test]
async fn the_same_request_gives_the_same_everywhere() {
    let subjects = subjects("qwen2", EngineOptions::default()).await;
    let plan = || Some("plan".to_owned());
    let sampling = Sampling { temperature: 0.8, top_k: Some(50), top_p: Some(0.9), seed: u64::MAX - 5 };
    for request in [
        GenerateRequest::new("Thought: I"),
        GenerateRequest { adapter: plan(), max_tokens: 20, ..GenerateRequest::new("Thought: I") },
        hot("東京 →", 3),
        GenerateRequest { sampling, adapter: plan(), ..hot("Question:", 0) },
        GenerateRequest { add_bos: Some(false), ..hot("Tools:", 9) },
    ] {
        let mut results = Vec::new();
        for Subject { name, backend, .. } in &subjects {
            let (texts, done) = read(backend.generate(request.clone())).await;
            let done = done.unwrap();
            assert_eq!(texts.concat(), done.text, "{name}");
            assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
            let adapter = done.adapter.map(|adapter| adapter.name);
            results.push((
                done.text,
                done.finish,
                done.prompt_tokens,
                done.cached_prompt_tokens,
                done.completion_tokens,
                adapter,
                done.model,
            ));
        }
        assert!(results.iter().all(|result| *result == results[0]), "{request:?}: {results:?}");
    }
}

#[tokio::test]
async fn control_tokens_in_text_stay_text() {
    let count = |engine: &Engine, text: &str| engine.tokenizer().encode(text, None).unwrap().len();
    let counter = engine("llama2", EngineOptions::default());
    for Subject { name, backend, server } in subjects("llama2", EngineOptions::default()).await {
        let ask = |prompt: Prompt| GenerateRequest { max_tokens: 1, ..GenerateRequest::new(prompt) };
        let done = run(&*backend, ask("Is </s> an <s>?".into())).await.unwrap();
        // a server is sent the spellings broken up
        let read = if server.is_some() { "Is < /s> an < s>?" } else { "Is </s> an <s>?" };
        assert_eq!(done.prompt_tokens, count(&counter, read), "{name}");
        let mut chat = Prompt::template("<s>[INST] ");
        chat.push_text("Hi");
        chat.push_template(" [/INST]</s>");
        // the two control tokens are one token each
        assert_eq!(run(&*backend, ask(chat)).await.unwrap().prompt_tokens, 1 + count(&counter, "[INST] Hi [/INST]"), "{name}");
    }
}

#[tokio::test]
async fn stop_strings_end_the_text_and_are_not_in_it() {
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions::default()).await {
        let whole = run(&*backend, hot("Thought:", 3)).await.unwrap().text;
        let (at, _) = whole.char_indices().nth(6).unwrap();
        let stop: String = whole[at..].chars().take(3).collect();
        let first = whole.find(&stop).unwrap();
        let done = run(&*backend, GenerateRequest { stop: vec![stop.clone()], ..hot("Thought:", 3) }).await.unwrap();
        assert_eq!((done.text.as_str(), done.finish), (&whole[..first], FinishReason::Stop), "{name}");
    }
}

#[tokio::test]
async fn a_stop_string_comes_before_the_grammars_end() {
    let request = || GenerateRequest { stop: vec!["b".to_owned()], grammar: Some(Grammar::Regex("a{3}b{3}".to_owned())), ..hot("x", 1) };
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions::default()).await {
        let done = run(&*backend, request()).await.unwrap();
        assert_eq!((done.text.as_str(), done.finish), ("aaa", FinishReason::Stop), "{name}");
    }
}

#[tokio::test]
async fn lengths_are_kept() {
    for Subject { name, backend, .. } in subjects("qwen3", EngineOptions::default()).await {
        let done = run(&*backend, GenerateRequest { max_tokens: 7, ..endless() }).await.unwrap();
        assert_eq!((done.completion_tokens, done.finish), (7, FinishReason::Length), "{name}");
        let done = run(&*backend, GenerateRequest { max_tokens: 0, ..endless() }).await.unwrap();
        assert_eq!((done.completion_tokens, done.text.as_str(), done.finish), (0, "", FinishReason::Length), "{name}");
    }
}

#[tokio::test]
async fn the_context_is_the_limit() {
    let short = EngineOptions { context_length: Some(32), ..EngineOptions::default() };
    let mut refusals = Vec::new();
    for Subject { name, backend, .. } in subjects("qwen3", short).await {
        assert_eq!(backend.info().context_length, 32);
        let done = run(&*backend, endless()).await.unwrap();
        assert_eq!((done.prompt_tokens + done.completion_tokens, done.finish), (32, FinishReason::Length), "{name}");
        let error = run(&*backend, GenerateRequest::new("word ".repeat(100))).await.unwrap_err();
        assert!(matches!(error, GenerateError::PromptTooLong { limit: 31, tokens } if tokens > 31), "{name}: {error}");
        refusals.push(error);
    }
    // a server before 0.12 says the number itself, a later one is asked
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
}

#[tokio::test]
async fn grammars_of_every_kind_hold() {
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions::default()).await {
        let ask = async |grammar| run(&*backend, GenerateRequest { grammar: Some(grammar), max_tokens: 100, ..hot("x", 4) }).await;
        let plan = ask(Grammar::Regex(r" [^\n]{1,20}\nAction: (Retrieve|Finish)\n".to_owned())).await.unwrap();
        assert_eq!(plan.finish, FinishReason::Grammar, "{name}");
        assert!(plan.text.contains("\nAction: ") && plan.text.ends_with('\n'), "{name}: {plan:?}");
        let choice = ask(Grammar::Choice(vec!["yes".into(), "no".into()])).await.unwrap();
        assert!(["yes", "no"].contains(&choice.text.as_str()) && choice.finish == FinishReason::Grammar, "{name}: {choice:?}");
        let lark = ask(Grammar::Lark("start: \"a\" (\"b\" | \"c\") \"d\"".into())).await.unwrap();
        assert!(["abd", "acd"].contains(&lark.text.as_str()), "{name}: {lark:?}");
        let object = ask(Grammar::JsonSchema(schema.clone())).await.unwrap();
        if object.finish == FinishReason::Grammar {
            let value: serde_json::Value = serde_json::from_str(&object.text).unwrap();
            assert!(value["n"].is_i64() || value["n"].is_u64() || value["n"].is_number(), "{name}: {value}");
        }
        // a server leaves out what stands around the object
        let line = ask(Grammar::JsonLine(schema.clone())).await.unwrap();
        if line.finish == FinishReason::Grammar {
            let value: serde_json::Value = serde_json::from_str(line.text.trim()).unwrap();
            assert!(value["n"].is_number(), "{name}: {value}");
        }
        let error = ask(Grammar::Regex("(".to_owned())).await.unwrap_err();
        assert!(matches!(error, GenerateError::InvalidGrammar { .. }), "{name}: {error}");
    }
}

#[tokio::test]
async fn an_unknown_adapter_is_refused_by_name() {
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions::default()).await {
        let error = run(&*backend, GenerateRequest { adapter: Some("tool".to_owned()), ..hot("x", 0) }).await.unwrap_err();
        assert_eq!(error, GenerateError::UnknownAdapter { name: "tool".to_owned(), loaded: vec!["plan".to_owned()] }, "{name}");
        assert!(!error.retryable());
    }
}

#[tokio::test]
async fn dropping_the_stream_frees_the_place() {
    for Subject { name, backend, server } in subjects("llama2", EngineOptions::default()).await {
        let started = Instant::now();
        for _ in 0..8 {
            let mut stream = backend.generate(endless()).unwrap();
            stream.next().await.unwrap().unwrap();
            drop(stream);
        }
        let done = run(&*backend, GenerateRequest { max_tokens: 1, ..hot("x", 0) }).await.unwrap();
        assert!(done.completion_tokens == 1 && started.elapsed() < PATIENCE, "{name}");
        if let Some(server) = server {
            poll_until(PATIENCE, "the server to notice", async || (server.open() == 0).then_some(())).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_full_queue_is_overloaded() {
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions { queue: 1, ..EngineOptions::default() }).await {
        let mut kept = Vec::new();
        let error = loop {
            match backend.generate(endless()) {
                Ok(stream) => kept.push(stream),
                Err(error) => break error,
            }
            assert!(kept.len() < 1_000, "{name}: never refused");
        };
        assert!(matches!(error, GenerateError::Overloaded { retry_after } if retry_after > Duration::ZERO), "{name}: {error}");
        assert!(error.retryable());
        // what was accepted is answered
        for stream in kept {
            read(Ok(stream)).await.1.unwrap();
        }
    }
}

#[tokio::test]
async fn a_deadline_ends_the_work() {
    for Subject { name, backend, server } in subjects("llama2", EngineOptions::default()).await {
        for deadline in [Instant::now(), Instant::now() + Duration::from_millis(1)] {
            let error = run(&*backend, GenerateRequest { deadline: Some(deadline), ..endless() }).await.unwrap_err();
            assert_eq!(error, GenerateError::DeadlineExceeded, "{name}");
        }
        if let Some(server) = server {
            poll_until(PATIENCE, "the server to notice", async || (server.open() == 0).then_some(())).await.unwrap();
        }
    }
}

#[tokio::test]
async fn many_at_once_are_all_answered_as_alone() {
    for Subject { name, backend, .. } in subjects("llama2", EngineOptions::default()).await {
        let alone: Vec<String> = futures_texts(&backend, 4).await;
        let together = tokio::task::JoinSet::from_iter((0..24).map(|index| {
            let backend = Arc::clone(&backend);
            async move { (index, run(&*backend, hot("Thought:", index % 4)).await.unwrap().text) }
        }));
        for (index, text) in together.join_all().await {
            assert_eq!(text, alone[(index % 4) as usize], "{name}");
        }
    }
}

async fn futures_texts(backend: &Arc<dyn Backend>, seeds: u64) -> Vec<String> {
    let mut texts = Vec::new();
    for seed in 0..seeds {
        texts.push(run(&**backend, hot("Thought:", seed)).await.unwrap().text);
    }
    texts
}

#[test]
fn code_without_a_runtime_can_wait() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for Subject { name, backend, .. } in runtime.block_on(subjects("llama3", EngineOptions::default())) {
        let done = backend.generate(hot("Observation:", 5)).unwrap().blocking_finish().unwrap();
        assert!(done.completion_tokens > 0 && done.prefill > Duration::ZERO, "{name}: {done:?}");
    }
}
