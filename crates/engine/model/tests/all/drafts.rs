//! Drafts change the number of passes of a completion, and nothing else.

use crate::common::{engine_with, finish, fixture};
use autoact_model::{EngineOptions, GenerateRequest, Generated, Grammar, KvFormat, Sampling};
use proptest::prelude::*;

/// The visible parts of a reply.
fn seen(done: Generated) -> (String, autoact_model::FinishReason, usize) {
    (done.text, done.finish, done.completion_tokens)
}

fn request() -> impl Strategy<Value = GenerateRequest> {
    let words = prop::sample::select(vec!["Thought:", " the river", " flows", " Action: Retrieve[", "Paris]", " 12", "\n"]);
    let grammar = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Grammar::Regex("( the| river| flows)+\\.".to_owned()))),
        1 => Just(Some(Grammar::Choice(vec!["Retrieve".to_owned(), "Retriever".to_owned(), "Calculate".to_owned()]))),
        1 => Just(Some(Grammar::JsonSchema(serde_json::json!({"type": "object", "properties": {"query": {"type": "string"}}})))),
    ];
    let sampling = prop_oneof![Just(Sampling::greedy()), any::<u64>().prop_map(|seed| Sampling::with_temperature(0.7, seed))];
    (prop::collection::vec(words, 1..30), grammar, sampling, 0..40usize, any::<bool>(), any::<bool>()).prop_map(
        |(words, grammar, sampling, max_tokens, adapter, stop)| GenerateRequest {
            adapter: adapter.then(|| "plan".to_owned()),
            sampling,
            max_tokens,
            grammar,
            stop: if stop { vec!["ri".to_owned()] } else { Vec::new() },
            ..GenerateRequest::new(words.concat())
        },
    )
}

/// The number format of keys and values.
fn kv() -> impl Strategy<Value = Option<KvFormat>> {
    prop::sample::select(vec![None, Some(KvFormat::Bf16)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn replies_are_the_same_with_and_without(requests in prop::collection::vec(request(), 1..8), kv in kv()) {
        let start = |draft| {
            let engine = engine_with("llama2", EngineOptions { draft, kv, threads: 1, ..EngineOptions::default() });
            engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
            engine
        };
        let (without, with) = (start(0), start(EngineOptions::MOST_DRAFTED));
        // In the second run, everything has occurred before.
        for request in requests.iter().chain(&requests) {
            let plain = finish(&without, request.clone()).unwrap();
            let drafted = finish(&with, request.clone()).unwrap();
            prop_assert_eq!(plain.drafted_tokens, 0);
            prop_assert!(drafted.accepted_tokens <= drafted.drafted_tokens);
            prop_assert_eq!(seen(plain), seen(drafted), "{:?}", request);
        }
    }
}

#[test]
fn what_was_said_before_is_accepted() {
    let engine = engine_with("llama2", EngineOptions::default());
    let request = GenerateRequest { max_tokens: 60, ..GenerateRequest::new("Thought: the river flows") };
    // The length of a draft depends on the measured cost of a row, which can seem high on a busy
    // machine.
    let accepted =
        (0..100).map(|_| finish(&engine, request.clone()).unwrap()).any(|done| done.accepted_tokens > done.completion_tokens / 2);
    assert!(accepted);
}
