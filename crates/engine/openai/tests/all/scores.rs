//! Log-probabilities of a server: the same numbers as the engine's, or none.

use std::sync::Arc;

use crate::common::{Script, engine, options, run};
use autoact_model::{Backend, EngineOptions, GenerateRequest, Grammar, Odds, Sampling, Scores};
use autoact_openai::{Dialect, Remote, RemoteOptions};
use autoact_testkit::{Fault, Kind, Logprobs, OpenAiOptions, OpenAiServer};

/// `r` and `w` are tokens of the fixtures' vocabularies.
fn verdict() -> GenerateRequest {
    let odds = Odds { after: "\nVerdict:".into(), this: "r".into(), other: "w".into() };
    GenerateRequest {
        grammar: Some(Grammar::Regex(" [a-z]{3,9}\nVerdict:(r|w)\n".into())),
        scores: Some(Scores { until: Some("\nVerdict:".into()), odds: Some(odds) }),
        max_tokens: 60,
        adapter: Some("plan".into()),
        ..GenerateRequest::new("Thought: I")
    }
}

async fn serve(kind: Kind, logprobs: Logprobs) -> OpenAiServer {
    let alternatives = vec!["r".to_owned(), "w".to_owned(), "x".to_owned()];
    let options = OpenAiOptions { kind, logprobs, alternatives, ..OpenAiOptions::default() };
    OpenAiServer::of_engine(engine("llama3", EngineOptions::default()), options).await.unwrap()
}

async fn remote(server: &OpenAiServer, dialect: Dialect) -> Remote {
    Remote::connect(RemoteOptions { dialect, context_length: Some(256), ..options(server, "llama3") }).await.unwrap()
}

#[tokio::test]
async fn a_server_gives_the_engines_numbers() {
    let local = engine("llama3", EngineOptions::default());
    for (kind, dialect) in [(Kind::Vllm, Dialect::Vllm), (Kind::VllmGuided, Dialect::VllmGuided)] {
        let server = serve(kind, Logprobs::Served).await;
        let remote = remote(&server, dialect).await;
        let hot = Sampling::with_temperature(0.7, 3);
        let whole = Some(Scores::default());
        for request in [
            verdict(),
            GenerateRequest { sampling: hot, ..verdict() },
            GenerateRequest { adapter: None, ..verdict() },
            GenerateRequest { scores: whole.clone(), ..verdict() },
            GenerateRequest { scores: whole, grammar: None, max_tokens: 20, ..verdict() },
        ] {
            let expected = run(&*local, request.clone()).await.unwrap();
            let found = run(&remote, request.clone()).await.unwrap();
            assert_eq!(found.text, expected.text);
            let (found, expected) = (found.scores.expect("scores"), expected.scores.unwrap());
            let at = |scored: &autoact_model::Scored| scored.tokens.iter().map(|token| token.at).collect::<Vec<_>>();
            assert_eq!(at(&found), at(&expected), "{request:?}");
            assert!((found.log_prob() - expected.log_prob()).abs() < 1e-9, "{found:?} {expected:?}");
            assert_eq!(found.log_odds.is_some(), expected.log_odds.is_some());
            let gap = found.log_odds.unwrap_or_default() - expected.log_odds.unwrap_or_default();
            assert!(gap.abs() < 1e-5, "{found:?} {expected:?}");
        }
        let asked: Vec<_> = server.asked().iter().map(|asked| asked.body["logprobs"].as_u64()).collect();
        assert_eq!(asked, [Some(5), Some(5), Some(5), Some(1), Some(1)]);
        // nothing is asked for, and nothing given, without need
        assert_eq!(run(&remote, GenerateRequest { scores: None, ..verdict() }).await.unwrap().scores, None);
        assert!(server.asked().last().unwrap().body.get("logprobs").is_none());
    }
}

#[tokio::test]
async fn a_server_that_leaves_them_out_gives_no_scores() {
    let server = serve(Kind::Vllm, Logprobs::LeftOut).await;
    let done = run(&remote(&server, Dialect::Vllm).await, verdict()).await.unwrap();
    assert!(done.scores.is_none() && done.text.contains("\nVerdict:"), "{done:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_server_that_refuses_them_is_asked_once() {
    let server = serve(Kind::Vllm, Logprobs::Refused).await;
    let remote = remote(&server, Dialect::Vllm).await;
    for _ in 0..3 {
        let done = run(&remote, verdict()).await.unwrap();
        assert!(done.scores.is_none() && done.text.contains("\nVerdict:"), "{done:?}");
    }
    let asked: Vec<bool> = server.asked().iter().map(|asked| asked.body.get("logprobs").is_some()).collect();
    assert_eq!(asked, [true, false, false, false]);
}

#[tokio::test]
async fn a_refusal_for_another_reason_is_not_remembered() {
    let server = serve(Kind::Vllm, Logprobs::Served).await;
    let remote = remote(&server, Dialect::Vllm).await;
    for _ in 0..2 {
        server.fault(Fault::status(400, "no"));
    }
    let error = run(&remote, verdict()).await.unwrap_err().to_string();
    assert!(error.contains("answered 400: `no`"), "{error}");
    assert_eq!(server.asked().len(), 2, "with and without log-probabilities");
    // a failure that passes is asked again as it was
    server.fault(Fault::CutAfter(0));
    assert!(run(&remote, verdict()).await.unwrap().scores.is_some());
}

/// What the client adds to lead a text back to its grammar has no score: a thought before it keeps
/// its own, a part with it has none.
#[tokio::test]
async fn forced_text_has_no_score() {
    let plan = Some(Scores { until: Some("\nAction:".into()), odds: None });
    let grammar = Some(Grammar::Regex(" [a-z]{1,9}\nAction: (Retrieve|Finish)\n".into()));
    let script = Script::new(|request| if request.prompt.ends_with("Action:") { " Finish\n".into() } else { " so\nInput: x".into() });
    let server =
        OpenAiServer::start(Arc::clone(&script) as Arc<dyn Backend>, OpenAiOptions { kind: Kind::OpenAi, ..OpenAiOptions::default() });
    let server = server.await.unwrap();
    let options = RemoteOptions { dialect: Dialect::Openai, context_length: Some(4096), ..options(&server, "script") };
    let remote = Remote::connect(options).await.unwrap();
    let ask = |scores| GenerateRequest { grammar: grammar.clone(), scores, ..GenerateRequest::new("Thought:") };
    let done = run(&remote, ask(plan)).await.unwrap();
    assert_eq!(done.text, " so\nAction: Finish\n");
    let scores = done.scores.expect("scores of the thought");
    assert_eq!(scores.tokens.iter().map(|token| token.at).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(run(&remote, ask(Some(Scores::default()))).await.unwrap().scores, None);
}
