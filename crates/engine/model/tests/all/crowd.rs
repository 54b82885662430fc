//! Many requests at once: every reply has the bits of the same request alone, and no memory leaks.

use std::collections::HashMap;

use crate::common::{engine_with, fixture};
use autoact_base::random::SplitMix64;
use autoact_model::{Backend, Engine, EngineOptions, GenerateError, GenerateRequest, Generated, Grammar, KvFormat, Sampling};

const WORDS: [&str; 8] = ["Thought:", " the river", " flows", " Action:", " Retrieve", " of", " Paris", "\n"];

/// One of 300 requests: all sizes, samplings, adapters, with and without a grammar.
fn request(kind: usize) -> GenerateRequest {
    let mut dice = SplitMix64::new(kind as u64);
    let words = 1 + dice.below(if kind.is_multiple_of(7) { 30 } else { 12 });
    let prompt: String = (0..words).map(|_| WORDS[dice.below(if kind.is_multiple_of(2) { 3 } else { 8 })]).collect();
    let grammar = match kind % 5 {
        0 => Some(Grammar::Choice(vec!["right".to_owned(), "wrong".to_owned(), "right or wrong".to_owned()])),
        1 => Some(Grammar::Regex(" [a-z]+ and then nothing else".to_owned())),
        _ => None,
    };
    GenerateRequest {
        adapter: (!kind.is_multiple_of(3)).then(|| if kind % 3 == 1 { "plan" } else { "tool" }.to_owned()),
        sampling: if kind.is_multiple_of(4) { Sampling::greedy() } else { Sampling::with_temperature(1.0, kind as u64) },
        max_tokens: 1 + dice.below(24),
        grammar,
        ..GenerateRequest::new(prompt)
    }
}

fn start(options: EngineOptions) -> Engine {
    let engine = engine_with("llama2", options);
    engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
    let other = crate::common::other_adapter("llama2");
    engine.load_adapter("tool", other.path()).unwrap();
    engine
}

fn reply(done: &Generated) -> (String, usize) {
    (done.text.clone(), done.completion_tokens)
}

/// Number of requests, including cancelled ones.
const ROUNDS: usize = 10_000;
/// Number of replies that wait to be read.
const OPEN: usize = 100;
/// Allowed growth of the process in bytes, because of fragmentation in the allocator.
const RESIDENT_SLACK: usize = 16 << 20;

/// Resident memory of this process in bytes, if the system reports it.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * text.split(' ').nth(1)?.parse::<usize>().ok()?)
}

#[test]
fn replies_do_not_depend_on_the_crowd() {
    crowd(KvFormat::F32);
}

#[test]
fn replies_with_keys_and_values_in_16_bits_do_not_depend_on_the_crowd() {
    crowd(KvFormat::Bf16);
}

fn crowd(kv: KvFormat) {
    let options = EngineOptions { kv: Some(kv), ..EngineOptions::default() };
    let alone = start(EngineOptions { cache_bytes: 0, draft: 0, threads: 1, batch: 1, ..options.clone() });
    let expected: HashMap<usize, _> =
        (0..300).map(|kind| (kind, reply(&alone.generate(request(kind)).unwrap().blocking_finish().unwrap()))).collect();
    // A small prefix cache, so that blocks are evicted all the time.
    let crowd = start(EngineOptions { cache_bytes: 200_000, threads: 2, batch: 12, queue: 64, ..options });
    assert_eq!(crowd.kv(), kv);
    let mut dice = SplitMix64::new(2026);
    let mut open = std::collections::VecDeque::new();
    let (mut answered, mut cancelled, mut accepted) = (0, 0, 0);
    let before = resident();
    for _ in 0..ROUNDS {
        let kind = dice.below(300);
        let stream = loop {
            match crowd.generate(request(kind)) {
                Ok(stream) if open.len() < OPEN => break stream,
                // Dropped: one more cancelled request, which is not counted.
                Ok(_) | Err(GenerateError::Overloaded { .. }) => {
                    let (kind, stream): (usize, autoact_model::GenerateStream) = open.pop_front().unwrap();
                    let done = stream.blocking_finish().unwrap();
                    assert_eq!(reply(&done), expected[&kind], "request {kind}");
                    answered += 1;
                    accepted += done.accepted_tokens;
                }
                Err(other) => panic!("{other}"),
            }
        };
        match dice.below(4) {
            0 => cancelled += 1, // at once, or in the middle
            1 => {
                let mut stream = stream;
                stream.blocking_next();
                cancelled += 1;
            }
            _ => open.push_back((kind, stream)),
        }
    }
    for (kind, stream) in open {
        assert_eq!(reply(&stream.blocking_finish().unwrap()), expected[&kind], "request {kind}");
        answered += 1;
    }
    assert_eq!(answered + cancelled, ROUNDS);
    assert!(accepted > 0, "no draft was ever right");
    crowd.clear_cache().unwrap();
    crowd.generate(GenerateRequest { max_tokens: 1, ..GenerateRequest::new("x") }).unwrap().blocking_finish().unwrap();
    crowd.clear_cache().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while crowd.cache_bytes() > 0 {
        assert!(std::time::Instant::now() < deadline, "{} bytes stay behind", crowd.cache_bytes());
        std::thread::yield_now();
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after < before + RESIDENT_SLACK, "{before} bytes in memory before, {after} after");
    }
}

#[test]
fn a_grammar_with_one_way_on_asks_the_model_nothing() {
    let engine = start(EngineOptions::default());
    let text = "the one and only answer";
    let request = GenerateRequest { grammar: Some(Grammar::Choice(vec![text.to_owned()])), ..GenerateRequest::new("Thought:") };
    let done = engine.generate(request).unwrap().blocking_finish().unwrap();
    assert_eq!(done.text, text);
    assert!(done.completion_tokens > 1 && done.prefill.is_zero(), "{done:?}");
}

#[test]
fn requests_run_side_by_side() {
    let engine = start(EngineOptions { batch: 8, ..EngineOptions::default() });
    let long = |seed| GenerateRequest {
        sampling: Sampling::with_temperature(1.0, seed),
        max_tokens: 150,
        grammar: Some(Grammar::Regex("[a-z ]{500}".to_owned())),
        ..GenerateRequest::new("x")
    };
    let mut first = engine.generate(long(1)).unwrap();
    first.blocking_next().unwrap().unwrap();
    let short = engine.generate(GenerateRequest { max_tokens: 2, ..long(2) }).unwrap().blocking_finish().unwrap();
    assert_eq!(short.completion_tokens, 2);
    // The long request was running before the short one, and still is.
    let rest = first.blocking_finish().unwrap();
    assert_eq!(rest.completion_tokens, 150);
}
