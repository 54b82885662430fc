//! Servers that do not hold their model to the grammar: scripted models in place of real ones.

use std::sync::Arc;

use crate::common::{Script, options, read, run};
use autoact_model::{Backend, FinishReason, GenerateError, GenerateRequest, Grammar, Sampling};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_testkit::{Kind, OpenAiOptions, OpenAiServer};

const PLAN: &str = r" [^\n]{1,600}\nAction: (Retrieve|Finish)\n";

fn plan() -> GenerateRequest {
    GenerateRequest { grammar: Some(Grammar::Regex(PLAN.to_owned())), ..GenerateRequest::new("Question: x\nThought:") }
}

async fn remote(script: &Arc<Script>, kind: Kind, dialect: Dialect) -> (OpenAiServer, Remote) {
    let server = OpenAiServer::start(script.clone(), OpenAiOptions { kind, ..OpenAiOptions::default() }).await.unwrap();
    let options = RemoteOptions { dialect, context_length: Some(4096), ..options(&server, "script") };
    let remote = Remote::connect(options).await.unwrap();
    (server, remote)
}

async fn openai(script: &Arc<Script>) -> (OpenAiServer, Remote) {
    remote(script, Kind::OpenAi, Dialect::Openai).await
}

#[tokio::test]
async fn a_model_that_knows_the_form_is_cut_where_it_is_satisfied() {
    let script = Script::new(|_| " I know it.\nAction: Finish\nInput: Paris\nObservation: and so on, for ever".into());
    let (server, remote) = openai(&script).await;
    let done = run(&remote, plan()).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish), (" I know it.\nAction: Finish\n", FinishReason::Grammar));
    assert!(done.completion_tokens > 0);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn without_a_grammar_the_text_is_the_models() {
    let script = Script::new(|_| "anything at all".into());
    let (_server, remote) = openai(&script).await;
    let done = run(&remote, GenerateRequest::new("x")).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish, done.completion_tokens), ("anything at all", FinishReason::Stop, 15));
    assert_eq!((done.prompt_tokens, done.cached_prompt_tokens), (7, 3));
    let done = run(&remote, GenerateRequest { max_tokens: 8, ..GenerateRequest::new("x") }).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("anything", FinishReason::Length));
}

/// Forgets the label, and goes on properly after it.
fn forgetful() -> Arc<Script> {
    Script::new(|request| match request.prompt.ends_with("Action:") {
        true => " Finish\nInput: x".into(),
        false => " Loire, I think.\nInput: Loire\n".into(),
    })
}

#[tokio::test]
async fn a_text_is_led_back_where_the_grammar_leaves_no_choice() {
    for (kind, dialect) in [(Kind::OpenAi, Dialect::Openai), (Kind::VllmGuided, Dialect::Vllm), (Kind::Vllm, Dialect::VllmGuided)] {
        let script = forgetful();
        let (_server, remote) = remote(&script, kind, dialect).await;
        let (texts, done) = read(remote.generate(plan())).await;
        let done = done.unwrap();
        assert_eq!(done.text, " Loire, I think.\nAction: Finish\n", "{dialect:?}");
        assert_eq!(texts.concat(), done.text, "what was shown is never taken back");
        assert_eq!(done.finish, FinishReason::Grammar);
        let requests = script.requests.lock().unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].prompt, "Question: x\nThought: Loire, I think.\nAction:", "the space comes with the word");
    }
}

#[tokio::test]
async fn a_model_that_stops_too_soon_goes_on() {
    let script = Script::new(|request| if request.prompt.ends_with("Action:") { " Retrieve\n".into() } else { " Hm.\n".into() });
    let (_server, remote) = openai(&script).await;
    assert_eq!(run(&remote, plan()).await.unwrap().text, " Hm.\nAction: Retrieve\n");
}

#[tokio::test]
async fn a_greedy_model_that_goes_astray_is_an_error_that_says_where() {
    let script = Script::new(|_| "No form at all".into());
    let (server, remote) = openai(&script).await;
    let error = run(&remote, GenerateRequest { grammar: Some(Grammar::Regex("[a-z]+[0-9]".into())), ..GenerateRequest::new("x") }).await;
    let error = error.unwrap_err();
    let GenerateError::Malformed { reason } = &error else { panic!("{error}") };
    assert!(reason.contains("`N"), "{reason}");
    assert_eq!(server.asked().len(), 1, "it would say the same again");
}

#[tokio::test]
async fn a_model_that_draws_gets_another_three_draws() {
    let script = Script::new(|request| if request.sampling.seed == 12 { "yes".into() } else { "maybe".into() });
    let (server, remote) = openai(&script).await;
    let ask = |seed| GenerateRequest {
        grammar: Some(Grammar::Choice(vec!["yes".into(), "no".into()])),
        sampling: Sampling::with_temperature(0.7, seed),
        ..GenerateRequest::new("x")
    };
    assert_eq!(run(&remote, ask(10)).await.unwrap().text, "yes");
    assert_eq!(server.asked().len(), 3);
    assert!(run(&remote, ask(20)).await.is_err());
    assert_eq!(server.asked().len(), 3 + 4);
}

#[tokio::test]
async fn stop_strings_win_over_the_grammar() {
    let script = Script::new(|_| "aaa".into());
    let (_server, remote) = openai(&script).await;
    let grammar = Some(Grammar::Regex("a{10}".into()));
    let done = run(&remote, GenerateRequest { grammar, stop: vec!["b".into()], ..GenerateRequest::new("x") }).await.unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("aaa", FinishReason::Stop));
}
