//! Grammars hold at any temperature, also with random weights.

use std::sync::LazyLock;

use crate::common::{engine, finish};
use autoact_model::{Engine, FinishReason, GenerateError, GenerateRequest, Generated, Grammar, Sampling};
use proptest::prelude::*;

/// One byte-level vocabulary and one of SentencePiece.
static ENGINES: LazyLock<[Engine; 2]> = LazyLock::new(|| [engine("qwen2"), engine("mistral")]);

const TEMPERATURE: f32 = 2.0;

fn constrained(engine: &Engine, grammar: Grammar, seed: u64, max_tokens: usize) -> Result<Generated, GenerateError> {
    let sampling = Sampling::with_temperature(TEMPERATURE, seed);
    finish(engine, GenerateRequest { sampling, max_tokens, grammar: Some(grammar), ..GenerateRequest::new("Thought: which tool? Action:") })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_choice_is_always_one_of_the_choices(seed: u64) {
        let choices = ["Search", "SearchAll", "Retrieve", " say \"yes\"\\", "東京", "right\n"].map(str::to_owned);
        for engine in ENGINES.iter() {
            let done = constrained(engine, Grammar::Choice(choices.to_vec()), seed, 64).unwrap();
            prop_assert!(choices.contains(&done.text), "{:?}", done.text);
            prop_assert_eq!(done.finish, FinishReason::Grammar);
        }
    }

    #[test]
    fn a_regex_matches_whole(seed: u64) {
        for engine in ENGINES.iter() {
            let done = constrained(engine, Grammar::Regex(r"(yes|no), [0-9]{2,4}\.".to_owned()), seed, 64).unwrap();
            let rest = done.text.strip_prefix("yes, ").or_else(|| done.text.strip_prefix("no, ")).unwrap();
            let digits = rest.strip_suffix('.').unwrap();
            prop_assert!((2..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()), "{:?}", done.text);
        }
    }

    #[test]
    fn json_satisfies_its_schema(seed: u64) {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "tool": {"enum": ["search", "look up"]},
                "query": {"type": "string", "maxLength": 12},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            },
            "required": ["tool", "query", "limit"],
            "additionalProperties": false,
        });
        for engine in ENGINES.iter() {
            let done = constrained(engine, Grammar::JsonSchema(schema.clone()), seed, 200).unwrap();
            prop_assert_eq!(done.finish, FinishReason::Grammar, "{:?}", &done.text);
            let value: serde_json::Value = serde_json::from_str(&done.text).unwrap();
            prop_assert!(value["tool"] == "search" || value["tool"] == "look up");
            prop_assert!(value["query"].as_str().unwrap().chars().count() <= 12);
            prop_assert!((1..=50).contains(&value["limit"].as_i64().unwrap()));
        }
    }

    #[test]
    fn a_line_of_json_is_one_line(seed: u64) {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"to": {"enum": ["a\nb", "c"]}, "text": {"type": "string", "maxLength": 12}, "flag": {"type": "boolean"}},
            "required": ["to", "text", "flag"],
            "additionalProperties": false,
            // no grammar can express it
            "not": {"required": ["other"]},
        });
        for engine in ENGINES.iter() {
            let done = constrained(engine, Grammar::JsonLine(schema.clone()), seed, 200).unwrap();
            prop_assert_eq!(done.finish, FinishReason::Grammar, "{:?}", &done.text);
            let json = done.text.strip_prefix(" {\"to\":").and_then(|rest| rest.strip_suffix("}\n"));
            prop_assert!(json.is_some_and(|json| !json.contains(['\n', '\r'])), "{:?}", &done.text);
            let value: serde_json::Value = serde_json::from_str(&done.text).unwrap();
            prop_assert!(value["to"] == "a\nb" || value["to"] == "c");
            prop_assert!(value["text"].as_str().unwrap().chars().count() <= 12);
        }
    }
}

#[test]
fn a_context_free_grammar_balances() {
    let grammar = Grammar::Lark("start: \"(\" start? \")\"".to_owned());
    for engine in ENGINES.iter() {
        for seed in 0..20 {
            let done = constrained(engine, grammar.clone(), seed, 200).unwrap();
            let half = done.text.len() / 2;
            if done.finish == FinishReason::Grammar {
                assert_eq!(done.text, "(".repeat(half) + &")".repeat(half));
            }
        }
    }
}

#[test]
fn a_grammar_that_does_not_compile_is_the_callers_mistake() {
    let bad = [
        Grammar::Regex("(".to_owned()),
        Grammar::Lark("start: nothing".to_owned()),
        Grammar::Choice(Vec::new()),
        Grammar::Choice(vec![String::new()]),
        Grammar::JsonSchema(serde_json::json!({"type": "no such type"})),
    ];
    for grammar in bad {
        let error = constrained(&ENGINES[0], grammar.clone(), 0, 8).unwrap_err();
        assert!(matches!(error, GenerateError::InvalidGrammar { .. }), "{grammar:?}: {error}");
        assert!(!error.retryable());
    }
    // The engine still works.
    constrained(&ENGINES[0], Grammar::Choice(vec!["a".to_owned()]), 0, 8).unwrap();
}
