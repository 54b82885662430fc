//! Log-probabilities of completions: against plain arithmetic over the model's logits, and the same
//! bits with drafts, from caches and in company.

use crate::common::{engine_with, finish, fixture};
use autoact_lora::Adapter;
use autoact_model::{
    Backend, Engine, EngineOptions, GenerateRequest, Generated, Grammar, Item, KvFormat, Logits, ModelDir, Odds, Sampling, Scored, Scores,
    Scratch, Team, Tokenizer, Transformer, WordBias,
};
use proptest::prelude::*;

/// Maximum difference of a token's log-probability from softmax in f64 over the same logits.
const TOLERANCE: f64 = 2e-6;
const FIXTURES: [&str; 5] = ["llama2", "llama3", "mistral", "qwen2", "qwen3"];
const PROMPT: &str = "Thought: the river flows";

/// The model without an engine: no cache, no drafts, no grammar, no sampler.
struct Reference {
    model: Transformer,
    adapter: autoact_model::BoundAdapter,
    tokenizer: Tokenizer,
    team: Team,
}

impl Reference {
    fn load(name: &str) -> Self {
        let dir = ModelDir::open(fixture(name)).unwrap();
        let model = Transformer::load(&dir, None).unwrap();
        let adapter = model.bind(&Adapter::load(fixture(name).join("adapter")).unwrap(), None).unwrap();
        Self { model, adapter, tokenizer: dir.tokenizer().unwrap(), team: Team::new(1).unwrap() }
    }

    /// The log-probabilities of all tokens after the last of `tokens`.
    fn after(&self, tokens: &[u32], adapter: bool) -> Vec<f64> {
        let mut cache = self.model.new_cache();
        let adapter = adapter.then_some(&self.adapter);
        let item = Item { tokens, cache: &mut cache, adapter, adapter_from: 0, logits: Logits::Last };
        let logits = self.model.forward(&self.team, &mut [item], &mut Scratch::default()).to_vec();
        let sum: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
        logits.iter().map(|l| f64::from(*l) - sum.ln()).collect()
    }

    /// Checks the scores of a completion and returns its tokens. A byte can have two tokens; the
    /// one that was chosen is the one with the right score.
    fn check(&self, what: &str, request: &GenerateRequest, done: &Generated) -> Vec<u32> {
        let scored = done.scores.as_ref().unwrap_or_else(|| panic!("{what}: no scores"));
        // random weights write bytes that are no text: then the score alone says which token it was
        let text = !done.text.contains('\u{fffd}');
        let mut tokens = self.tokenizer.encode(&request.prompt, request.add_bos).unwrap();
        let prompt = tokens.len();
        let end = scored.tokens.len();
        for (i, score) in scored.tokens.iter().enumerate() {
            let until = if i + 1 < end { scored.tokens[i + 1].at } else { done.text.len() };
            let bytes = &done.text.as_bytes()[score.at..until];
            let expected = self.after(&tokens, request.adapter.is_some());
            // the last one ends before the text does where a label came, after it where a stop string did
            let spells = |token: &u32| {
                let spelling = self.tokenizer.bytes(*token);
                !text
                    || !spelling.is_empty()
                        && if i + 1 < end { spelling == bytes } else { bytes.starts_with(spelling) || spelling.starts_with(bytes) }
            };
            let all = 0..u32::try_from(self.model.config().vocab_size).unwrap();
            let close = |token: &u32| (expected[*token as usize] - score.log_prob).abs() < TOLERANCE;
            let found = all.filter(spells).find(close);
            let found = found.unwrap_or_else(|| panic!("{what}: token {i} of {:?} has the score {}", done.text, score.log_prob));
            tokens.push(found);
        }
        tokens.split_off(prompt)
    }

    /// The log-probability of a text after tokens.
    fn spelled(&self, before: &[u32], text: &str, adapter: bool) -> f64 {
        let mut tokens = before.to_vec();
        let spelling = self.tokenizer.encode(text, Some(false)).unwrap();
        spelling
            .into_iter()
            .map(|token| {
                let log_prob = self.after(&tokens, adapter)[token as usize];
                tokens.push(token);
                log_prob
            })
            .sum()
    }
}

fn start(name: &str, options: EngineOptions) -> Engine {
    let engine = engine_with(name, options);
    engine.load_adapter("plan", fixture(name).join("adapter")).unwrap();
    engine
}

fn all() -> Option<Scores> {
    Some(Scores::default())
}

fn scored(engine: &Engine, request: &GenerateRequest) -> Scored {
    *finish(engine, request.clone()).unwrap().scores.expect("scores")
}

#[test]
fn scores_are_a_softmax_over_raw_logits() {
    for name in FIXTURES {
        let (reference, engine) = (Reference::load(name), start(name, EngineOptions::default()));
        let base = GenerateRequest { max_tokens: 24, scores: all(), ..GenerateRequest::new(PROMPT) };
        let hot = Sampling { top_k: Some(40), top_p: Some(0.9), ..Sampling::with_temperature(1.7, 5) };
        let line = Grammar::Regex(" [a-z ]{1,9}\nAction: (Retrieve|Finish)\n".into());
        let bias = WordBias::all(["river", "sea", "the"], 4.0);
        let object = serde_json::json!({
            "type": "object", "properties": { "to": { "enum": ["sea"] } }, "required": ["to"], "additionalProperties": false
        });
        for (what, request) in [
            ("greedy", base.clone()),
            ("hot", GenerateRequest { sampling: hot, ..base.clone() }),
            ("biased", GenerateRequest { word_bias: bias.clone(), sampling: hot, ..base.clone() }),
            ("grammar", GenerateRequest { grammar: Some(line.clone()), max_tokens: 60, ..base.clone() }),
            ("all", GenerateRequest { grammar: Some(line), word_bias: bias, sampling: hot, max_tokens: 60, ..base.clone() }),
            // the grammar forces every token, so none is ever sampled
            ("forced", GenerateRequest { grammar: Some(Grammar::Choice(vec![" to the sea".into()])), ..base.clone() }),
            // it forces the first and the last ones
            ("object", GenerateRequest { grammar: Some(Grammar::JsonLine(object)), max_tokens: 60, ..base.clone() }),
            ("stopped", GenerateRequest { stop: vec!["e".into()], ..base.clone() }),
        ] {
            for adapter in [None, Some("plan".to_owned())] {
                let request = GenerateRequest { adapter, ..request.clone() };
                let what = format!("{name} {what} {:?}", request.adapter);
                let done = finish(&engine, request.clone()).unwrap();
                let tokens = reference.check(&what, &request, &done);
                let whole: Vec<u8> = tokens.iter().flat_map(|token| reference.tokenizer.bytes(*token)).copied().collect();
                assert!(whole.starts_with(done.text.as_bytes()) || done.text.contains('\u{fffd}'), "{what}: {:?}", done.text);
                let sum: f64 = done.scores.as_ref().unwrap().tokens.iter().map(|token| token.log_prob).sum();
                assert!((done.scores.unwrap().log_prob() - sum).abs() < 1e-9, "{what}");
            }
        }
    }
}

#[test]
fn a_label_ends_what_is_scored() {
    let (reference, engine) = (Reference::load("llama3"), start("llama3", EngineOptions::default()));
    let grammar = Grammar::Regex(" [a-z ]{1,9}\nAction: (Retrieve|Finish)\n".into());
    let whole = GenerateRequest { grammar: Some(grammar), max_tokens: 60, scores: all(), ..GenerateRequest::new(PROMPT) };
    let until = |label: &str| Some(Scores { until: Some(label.into()), odds: None });
    let done = finish(&engine, whole.clone()).unwrap();
    let label = done.text.find("\nAction:").unwrap();
    let all = *done.scores.unwrap();
    let part = scored(&engine, &GenerateRequest { scores: until("\nAction:"), ..whole.clone() });
    let mut cut = all.clone();
    cut.truncate(label);
    assert_eq!(part, cut);
    assert!(!part.tokens.is_empty() && part.tokens.len() < all.tokens.len());
    // the rest, as a completion of its own, has the rest of the sum
    let tokens =
        reference.check("whole", &whole, &Generated { scores: Some(Box::new(all.clone())), ..finish(&engine, whole.clone()).unwrap() });
    let prompt = reference.tokenizer.encode(PROMPT, None).unwrap();
    let mut context: Vec<u32> = prompt.into_iter().chain(tokens[..part.tokens.len()].iter().copied()).collect();
    let rest: f64 = tokens[part.tokens.len()..]
        .iter()
        .map(|token| {
            let log_prob = reference.after(&context, false)[*token as usize];
            context.push(*token);
            log_prob
        })
        .sum();
    assert!((all.log_prob() - part.log_prob() - rest).abs() < 1e-4, "{} {} {rest}", all.log_prob(), part.log_prob());
    // one that does not come, and one that is there from the beginning
    assert_eq!(scored(&engine, &GenerateRequest { scores: until("\nInput:"), ..whole.clone() }), all);
    assert_eq!(scored(&engine, &GenerateRequest { scores: until(""), ..whole }).tokens, []);
}

#[test]
fn two_continuations_are_compared_whichever_was_chosen() {
    // Byte-level vocabularies, where the reference can tokenise a continuation on its own.
    for name in ["llama3", "qwen2", "qwen3"] {
        let (reference, engine) = (Reference::load(name), start(name, EngineOptions::default()));
        // a spelling of several tokens; one token each; a common beginning; one within the other
        for (this, other) in [(" right", " wrong"), ("r", "w"), (" the", " then"), ("a", "ab"), ("ab", "a"), ("re", "ro")] {
            for chosen in [this, other] {
                let grammar = Grammar::Regex(format!(" [a-z]{{2,5}}\nVerdict:{chosen}\n"));
                let odds = Odds { after: "\nVerdict:".into(), this: this.into(), other: other.into() };
                let scores = Some(Scores { until: Some("\nVerdict:".into()), odds: Some(odds) });
                let either = Grammar::Regex(format!(" [a-z]{{2,5}}\nVerdict:({this}|{other})\n"));
                for (grammar, adapter) in [(grammar.clone(), false), (grammar, true), (either, false)] {
                    let request = GenerateRequest {
                        grammar: Some(grammar),
                        max_tokens: 60,
                        adapter: adapter.then(|| "plan".to_owned()),
                        scores: scores.clone(),
                        ..GenerateRequest::new(PROMPT)
                    };
                    let done = finish(&engine, request.clone()).unwrap();
                    let found = done.scores.as_ref().unwrap().log_odds.expect("log-odds");
                    let thought = reference.check(name, &request, &done);
                    let label = &done.text[..done.text.find("Verdict:").unwrap() + "Verdict:".len()];
                    let rest = reference.tokenizer.encode(&label[label.find('\n').unwrap()..], Some(false)).unwrap();
                    let prompt = reference.tokenizer.encode(PROMPT, None).unwrap();
                    let before = [prompt, thought, rest].concat();
                    let [a, b] = [this, other].map(|text| reference.spelled(&before, text, adapter));
                    let what = format!("{name} {this:?} {other:?} {:?}", done.text);
                    assert!((found - (a - b)).abs() < 1e-5, "{what}: {found}, expected {}", a - b);
                }
            }
        }
    }
}

#[test]
fn continuations_of_a_prompt_and_of_a_label_that_does_not_come() {
    let (reference, engine) = (Reference::load("llama3"), start("llama3", EngineOptions::default()));
    let odds = |after: &str| Odds { after: after.into(), this: " the".into(), other: " sea".into() };
    let request = |max_tokens, after| GenerateRequest {
        max_tokens,
        scores: Some(Scores { until: None, odds: Some(odds(after)) }),
        ..GenerateRequest::new(PROMPT)
    };
    let prompt = reference.tokenizer.encode(PROMPT, None).unwrap();
    let expected = reference.spelled(&prompt, " the", false) - reference.spelled(&prompt, " sea", false);
    for max_tokens in [0, 5] {
        let found = scored(&engine, &request(max_tokens, ""));
        assert!((found.log_odds.unwrap() - expected).abs() < 1e-5, "{found:?} {expected}");
        assert_eq!(found.tokens.len(), max_tokens);
    }
    assert_eq!(scored(&engine, &request(5, "\nVerdict:")).log_odds, None);
    // no room in the context for the longer one
    let long = Odds { this: " the".repeat(300), ..odds("") };
    let request = GenerateRequest { scores: Some(Scores { until: None, odds: Some(long) }), ..request(5, "") };
    assert_eq!(scored(&engine, &request).log_odds, None);
    assert_eq!(finish(&engine, GenerateRequest { max_tokens: 5, ..GenerateRequest::new(PROMPT) }).unwrap().scores, None);
}

fn request() -> impl Strategy<Value = GenerateRequest> {
    let words = prop::sample::select(vec!["Thought:", " the river", " flows", " Action: Retrieve[", "Paris]", " 12", "\n"]);
    let grammar = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Grammar::Regex("( the| river| flows)+\\.".to_owned()))),
        2 => Just(Some(Grammar::Regex(" [a-z ]{1,12}\nVerdict: (right|wrong)\n".to_owned()))),
        1 => Just(Some(Grammar::Choice(vec!["Retrieve".to_owned(), "Retriever".to_owned(), "Calculate".to_owned()]))),
        1 => Just(Some(Grammar::JsonSchema(serde_json::json!({"type": "object", "properties": {"query": {"type": "string"}}})))),
    ];
    let sampling = prop_oneof![Just(Sampling::greedy()), any::<u64>().prop_map(|seed| Sampling::with_temperature(0.7, seed))];
    let until = prop::sample::select(vec![None, Some("\nVerdict:"), Some(" river"), Some("e")]);
    let after = prop::sample::select(vec!["\nVerdict:", "\nVerdict: ", " ri", ""]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (prop::collection::vec(words, 1..30), grammar, sampling, 0..60usize, flags, until, after).prop_map(
        |(words, grammar, sampling, max_tokens, (adapter, stop, bias), until, after)| GenerateRequest {
            adapter: adapter.then(|| "plan".to_owned()),
            sampling,
            max_tokens,
            grammar,
            stop: if stop { vec!["ri".to_owned()] } else { Vec::new() },
            word_bias: if bias { WordBias::all(["river", "the"], 3.0) } else { Vec::new() },
            scores: Some(Scores {
                until: until.map(str::to_owned),
                odds: Some(Odds { after: after.to_owned(), this: " right".to_owned(), other: " wrong".to_owned() }),
            }),
            ..GenerateRequest::new(words.concat())
        },
    )
}

fn bits(scored: &Option<Box<Scored>>) -> (Vec<(usize, u64)>, Option<u64>) {
    let scored = scored.as_ref().expect("scores");
    (scored.tokens.iter().map(|token| (token.at, token.log_prob.to_bits())).collect(), scored.log_odds.map(f64::to_bits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn scores_have_the_same_bits_and_change_no_reply(
        requests in prop::collection::vec(request(), 1..8), kv in prop::sample::select(vec![None, Some(KvFormat::Bf16)]),
    ) {
        let options = || EngineOptions { kv, threads: 1, ..EngineOptions::default() };
        let alone = start("llama2", EngineOptions { draft: 0, cache_bytes: 0, ..options() });
        let (drafted, together) = (start("llama2", options()), start("llama2", options()));
        // In the second run, everything has occurred before.
        let twice: Vec<GenerateRequest> = requests.iter().chain(&requests).cloned().collect();
        let streams: Vec<_> = twice.iter().map(|request| together.generate(request.clone()).unwrap()).collect();
        for (request, stream) in twice.iter().zip(streams) {
            let expected = finish(&alone, request.clone()).unwrap();
            let plain = finish(&alone, GenerateRequest { scores: None, ..request.clone() }).unwrap();
            prop_assert_eq!((&plain.text, plain.finish), (&expected.text, expected.finish));
            prop_assert_eq!(plain.completion_tokens, expected.completion_tokens);
            for found in [finish(&drafted, request.clone()).unwrap(), stream.blocking_finish().unwrap()] {
                prop_assert_eq!(&found.text, &expected.text);
                prop_assert_eq!(bits(&found.scores), bits(&expected.scores), "{:?}", request);
            }
            // what is scored is a beginning of all that could be
            let scores = Some(Scores { until: None, ..request.scores.clone().unwrap() });
            let whole = finish(&alone, GenerateRequest { scores, ..request.clone() }).unwrap();
            let (part, whole) = (bits(&expected.scores), bits(&whole.scores));
            prop_assert!(whole.0.starts_with(&part.0) && whole.1 == part.1);
            prop_assert!(expected.scores.unwrap().tokens.iter().all(|token| token.log_prob <= 0.0 && token.at < expected.text.len()));
        }
    }
}
