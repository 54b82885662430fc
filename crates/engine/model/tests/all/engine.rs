//! The engine through its public interface, on the golden fixtures: replies, refusals, failures.

use std::time::{Duration, Instant};

use crate::common::{engine, engine_with, finish, fixture};
use autoact_model::{
    Backend, Engine, EngineOptions, FinishReason, GenerateError, GenerateEvent, GenerateRequest, Generated, Owner, Sampling, WordBias,
    WordLimit,
};

/// Time limit of waits, far above what is needed.
const PATIENCE: Duration = Duration::from_secs(60);

fn hot(prompt: &str, seed: u64) -> GenerateRequest {
    GenerateRequest { sampling: Sampling::with_temperature(1.0, seed), max_tokens: 40, ..GenerateRequest::new(prompt) }
}

/// Long enough to be cancelled during decoding; the fixtures' weights rarely end a text by
/// themselves.
fn endless() -> GenerateRequest {
    GenerateRequest { max_tokens: 200, grammar: Some(autoact_model::Grammar::Regex("[a-z ]{500}".to_owned())), ..hot("x", 1) }
}

fn run(engine: &Engine, request: GenerateRequest) -> Generated {
    finish(engine, request).unwrap()
}

#[test]
fn a_seed_gives_the_same_text_again() {
    let engine = engine("llama2");
    let texts: Vec<String> = (0..4).map(|seed| run(&engine, hot("Thought:", seed)).text).collect();
    let again: Vec<String> = (0..4).map(|seed| run(&engine, hot("Thought:", seed)).text).collect();
    assert_eq!(texts, again);
    assert!(texts.iter().any(|t| *t != texts[0]), "all seeds gave the same");
}

#[test]
fn events_add_up_to_the_result() {
    let engine = engine("qwen2");
    for seed in 0..20 {
        let mut stream = engine.generate(hot("東京 →", seed)).unwrap();
        let mut text = String::new();
        let done = loop {
            match stream.blocking_next().unwrap().unwrap() {
                GenerateEvent::Token { text: more } => text.push_str(&more),
                GenerateEvent::Done(done) => break done,
            }
        };
        assert_eq!(text, done.text);
        assert_eq!(stream.blocking_next(), None);
        assert!(done.completion_tokens <= 40);
        assert_eq!((done.model.as_str(), done.adapter), ("qwen2", None));
    }
}

#[test]
fn a_bias_leads_to_its_words_and_through_them() {
    let engine = engine("llama2");
    let with = |bias| GenerateRequest { word_bias: WordBias::all(["river", "mountain"], bias), ..hot("Need:", 5) };
    assert_eq!(run(&engine, with(0.0)).text, run(&engine, hot("Need:", 5)).text);
    let led = run(&engine, with(1e6)).text;
    // each word once, then what the model says of itself
    assert!(["river", "mountain"].iter().all(|word| led.contains(word)), "{led}");
    let grammar = autoact_model::Grammar::Choice(vec!["sea".to_owned(), "river".to_owned()]);
    assert!(["sea", "river"].contains(&run(&engine, GenerateRequest { grammar: Some(grammar), ..with(1e6) }).text.as_str()));
}

#[test]
fn a_limit_leaves_no_other_words() {
    let engine = engine("llama2");
    let limit = |words: &[&str]| Some(WordLimit::new(words.iter().map(|word| (*word).to_owned())));
    let with = |word_limit, seed| GenerateRequest { word_limit, max_tokens: 40, ..hot("Need:", seed) };
    let words = ["river", "mountain", "the", "of"];
    let mut count = 0;
    for seed in 0..8 {
        let text = run(&engine, with(limit(&words), seed)).text;
        let line = text.split('\n').next().unwrap();
        let said: Vec<String> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        count += said.len();
        // the length may cut the last one
        let Some((last, whole)) = said.split_last() else { continue };
        assert!(whole.iter().all(|word| words.contains(&word.as_str())), "{line}");
        assert!(words.iter().any(|word| word.starts_with(last.as_str())), "{line}");
    }
    assert!(count > 0, "nothing was said");
    // with a grammar that no word fits, the grammar holds
    let grammar = Some(autoact_model::Grammar::Choice(vec!["sea".to_owned(), "lake".to_owned()]));
    let text = run(&engine, GenerateRequest { grammar, ..with(limit(&words), 5) }).text;
    assert!(["sea", "lake"].contains(&text.as_str()), "{text}");
    let grammar = Some(autoact_model::Grammar::Choice(vec!["sea".to_owned(), "river".to_owned()]));
    assert_eq!(run(&engine, GenerateRequest { grammar, ..with(limit(&words), 5) }).text, "river");
}

#[test]
fn stop_strings_end_the_text_and_are_not_in_it() {
    let engine = engine("llama2");
    let whole = run(&engine, hot("Thought:", 3)).text;
    let (at, _) = whole.char_indices().nth(6).unwrap();
    let stop: String = whole[at..].chars().take(3).collect();
    let first = whole.find(&stop).unwrap();
    let done = run(&engine, GenerateRequest { stop: vec![stop.clone()], ..hot("Thought:", 3) });
    assert_eq!((done.text.as_str(), done.finish), (&whole[..first], FinishReason::Stop));
}

#[test]
fn lengths_are_kept() {
    let engine = engine("qwen3");
    let done = run(&engine, GenerateRequest { max_tokens: 7, ..endless() });
    assert_eq!((done.completion_tokens, done.finish), (7, FinishReason::Length));
    let done = run(&engine, GenerateRequest { max_tokens: 0, ..endless() });
    assert_eq!((done.completion_tokens, done.text.as_str(), done.finish), (0, "", FinishReason::Length));
}

#[test]
fn the_context_is_the_limit() {
    let engine = engine_with("qwen3", EngineOptions { context_length: Some(32), ..EngineOptions::default() });
    let done = run(&engine, endless());
    assert_eq!((done.prompt_tokens + done.completion_tokens, done.finish), (32, FinishReason::Length));
    let error = engine.generate(GenerateRequest::new("word ".repeat(100))).unwrap_err();
    assert!(matches!(error, GenerateError::PromptTooLong { limit: 31, tokens } if tokens > 31), "{error}");
}

#[test]
fn an_unknown_adapter_is_refused_by_name() {
    let engine = engine("llama2");
    engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
    let error = engine.generate(GenerateRequest { adapter: Some("tool".to_owned()), ..hot("x", 0) }).unwrap_err();
    assert_eq!(error, GenerateError::UnknownAdapter { name: "tool".to_owned(), loaded: vec!["plan".to_owned()] });
    assert!(!error.retryable());
}

#[test]
fn adapters_alternate_without_leaking() {
    let engine = engine("llama2");
    let one = engine.load_adapter("one", fixture("llama2").join("adapter")).unwrap();
    let other = crate::common::other_adapter("llama2");
    let two = engine.load_adapter("two", other.path()).unwrap();
    assert_ne!(one.digest, two.digest);
    assert_eq!(engine.adapters(), [one.clone(), two]);
    let ask = |adapter: Option<&str>| {
        let prompt = "Thought: I should look up the author of the book.";
        run(&engine, GenerateRequest { adapter: adapter.map(str::to_owned), max_tokens: 12, ..GenerateRequest::new(prompt) })
    };
    let names = [None, Some("one"), Some("two")];
    let texts = names.map(|name| ask(name).text);
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2], "{texts:?}");
    for _ in 0..3 {
        assert_eq!(names.map(|name| ask(name).text), texts);
    }
    assert_eq!(ask(Some("one")).adapter, Some(one));
    assert!(engine.unload_adapter("one") && !engine.unload_adapter("one"));
}

#[test]
fn an_adapter_is_replaced_under_its_name() {
    let engine = engine("llama2");
    engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
    let ask = || run(&engine, GenerateRequest { adapter: Some("plan".to_owned()), ..GenerateRequest::new("Thought: I") });
    let before = ask();
    let other = crate::common::other_adapter("llama2");
    let version = engine.load_adapter("plan", other.path()).unwrap();
    let after = ask();
    assert_eq!(after.adapter, Some(version));
    assert_ne!(before.text, after.text);
}

#[test]
fn a_prompt_that_grew_pays_for_what_is_new() {
    let engine = engine("mistral");
    let fresh = engine_with("mistral", EngineOptions { cache_bytes: 0, ..EngineOptions::default() });
    let mut prompt = "Thought: the river flows through the capital. Action:".to_owned();
    let mut last = 0;
    for turn in 0..4 {
        let request = GenerateRequest { max_tokens: 8, ..GenerateRequest::new(&prompt) };
        let (warm, cold) = (run(&engine, request.clone()), run(&fresh, request));
        assert_eq!(warm.text, cold.text, "turn {turn}");
        assert_eq!(cold.cached_prompt_tokens, 0);
        assert!(warm.cached_prompt_tokens >= last, "turn {turn}: {warm:?}");
        last = warm.prompt_tokens - 1;
        prompt.push_str(" more of the river");
    }
    // The same prompt again: everything is cached except the last token, whose logits are needed.
    let again = run(&engine, GenerateRequest { max_tokens: 8, ..GenerateRequest::new(prompt.clone()) });
    let once_more = run(&engine, GenerateRequest { max_tokens: 8, ..GenerateRequest::new(prompt) });
    assert_eq!(once_more.cached_prompt_tokens, once_more.prompt_tokens - 1);
    assert_eq!(again.text, once_more.text);
}

/// Two activated adapters and the base share the keys and values of the history before the
/// invocation.
#[test]
fn activated_adapters_share_what_comes_before_their_invocation() {
    let prompt = "the río flows → 東京, and the río flows → 東京, and the río flows → 東京, Action";
    let load = |engine: &Engine| {
        engine.load_adapter("plan", fixture("llama2").join("activated")).unwrap();
        let other = crate::common::copy(&fixture("llama2").join("activated"));
        crate::common::edit_json(&other.path().join("adapter_config.json"), |config| config["lora_alpha"] = 24.into());
        engine.load_adapter("tool", other.path()).unwrap();
    };
    let fresh = engine_with("llama2", EngineOptions { cache_bytes: 0, ..EngineOptions::default() });
    let engine = engine("llama2");
    load(&fresh);
    load(&engine);
    let ask = |engine: &Engine, adapter: Option<&str>| {
        run(engine, GenerateRequest { adapter: adapter.map(str::to_owned), max_tokens: 20, ..GenerateRequest::new(prompt) })
    };
    let before = ask(&engine, None).prompt_tokens - 5; // the invocation begins five tokens before the end
    for adapter in [Some("plan"), Some("tool"), Some("plan"), None] {
        let (warm, cold) = (ask(&engine, adapter), ask(&fresh, adapter));
        assert_eq!(warm.text, cold.text, "{adapter:?}");
        assert!(warm.cached_prompt_tokens >= before, "{adapter:?}: {} of {before}", warm.cached_prompt_tokens);
        assert!(adapter.is_none() || warm.cached_prompt_tokens == before, "{adapter:?}: its own words are not the base's");
    }
    assert_ne!(ask(&engine, Some("plan")).text, ask(&engine, Some("tool")).text);
}

/// What one owner asked makes no call of another faster, but for the head that all share; and nobody's
/// reply depends on it.
#[test]
fn owners_share_the_head_of_a_prompt_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let options = || EngineOptions { shared_prefixes: Some(dir.path().join("prefixes")), ..EngineOptions::default() };
    let engine = engine_with("llama2", options());
    engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
    let head = "the río flows → 東京, and the río flows → 東京, and the río flows → 東京. Question:";
    let asks = |engine: &Engine, owner: &str, question: &str, adapter: Option<&str>| {
        let owner = Some(Owner { name: owner.to_owned(), head: head.into() });
        let prompt = format!("{head} {question} the capital, and more of the river, and more of the river");
        run(engine, GenerateRequest { owner, adapter: adapter.map(str::to_owned), max_tokens: 20, ..GenerateRequest::new(prompt) })
    };
    for adapter in [Some("plan"), None] {
        let first = asks(&engine, "ops", "which is", adapter);
        assert_eq!(first.cached_prompt_tokens, 0, "{adapter:?}");
        let same = asks(&engine, "ops", "which is", adapter);
        assert_eq!((same.cached_prompt_tokens, &same.text), (same.prompt_tokens - 1, &first.text));
        // the head's whole blocks, whatever the question
        let shared = asks(&engine, "dev", "what was", adapter).cached_prompt_tokens;
        assert!(shared >= 16 && shared % 16 == 0 && shared < first.prompt_tokens - 16, "{shared} of {}", first.prompt_tokens);
        let other = asks(&engine, "lab", "which is", adapter);
        assert_eq!((other.cached_prompt_tokens, &other.text), (shared, &first.text), "the same question of another owner");
    }
    // another process of the machine
    drop(engine);
    let second = engine_with("llama2", options());
    let known = asks(&second, "ops", "which is", None).cached_prompt_tokens;
    let fresh = engine_with("llama2", options());
    let unknown = asks(&fresh, "new", "which is", None).cached_prompt_tokens;
    assert!(unknown < known && unknown > 0, "{unknown} {known}");
}

/// Two engines stand for two processes of a machine. Keys and values that the base computed in one
/// are used by the other, and replies are equal.
#[test]
fn engines_share_what_the_base_has_read() {
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let engine =
            engine_with("llama2", EngineOptions { shared_prefixes: Some(dir.path().join("prefixes")), ..EngineOptions::default() });
        engine.load_adapter("plan", fixture("llama2").join("adapter")).unwrap();
        engine
    };
    let prompt = "the río flows → 東京, and the río flows → 東京, and the río flows → 東京, Action";
    let ask = |engine: &Engine, adapter: Option<&str>| {
        run(engine, GenerateRequest { adapter: adapter.map(str::to_owned), max_tokens: 20, ..GenerateRequest::new(prompt) })
    };
    let first = start();
    let alone = ask(&first, None);
    let own = ask(&first, Some("plan"));
    drop(first);
    let files = || std::fs::read_dir(dir.path().join("prefixes")).unwrap().count();
    let deadline = Instant::now() + PATIENCE;
    while files() < (alone.prompt_tokens + alone.completion_tokens - 1) / 16 {
        assert!(Instant::now() < deadline, "{} files", files());
        std::thread::yield_now();
    }
    let second = start();
    let taken = ask(&second, None);
    assert_eq!(taken.text, alone.text);
    assert_eq!(taken.cached_prompt_tokens, (taken.prompt_tokens - 1) / 16 * 16);
    // an adapter that always acts has its own keys and values
    let under = ask(&second, Some("plan"));
    assert_eq!((under.text, under.cached_prompt_tokens), (own.text, 0));
}

#[test]
fn dropping_the_stream_frees_the_engine() {
    let engine = engine("llama2");
    let started = Instant::now();
    for _ in 0..8 {
        let mut stream = engine.generate(endless()).unwrap();
        stream.blocking_next().unwrap().unwrap();
        drop(stream);
    }
    let done = run(&engine, GenerateRequest { max_tokens: 1, ..hot("x", 0) });
    assert!(done.completion_tokens == 1 && started.elapsed() < PATIENCE);
}

#[test]
fn a_full_queue_is_overloaded() {
    let engine = engine_with("llama2", EngineOptions { queue: 1, ..EngineOptions::default() });
    let mut kept = Vec::new();
    let error = loop {
        match engine.generate(endless()) {
            Ok(stream) => kept.push(stream),
            Err(error) => break error,
        }
        assert!(kept.len() < 1_000, "never refused");
    };
    assert!(matches!(error, GenerateError::Overloaded { retry_after } if retry_after > Duration::ZERO), "{error}");
    assert!(error.retryable());
    // Accepted requests are answered.
    for stream in kept {
        stream.blocking_finish().unwrap();
    }
}

#[test]
fn a_deadline_ends_the_work() {
    let engine = engine("llama2");
    let error = finish(&engine, GenerateRequest { deadline: Some(Instant::now()), ..endless() }).unwrap_err();
    assert_eq!(error, GenerateError::DeadlineExceeded);
    let soon = Some(Instant::now() + Duration::from_millis(1));
    let error = finish(&engine, GenerateRequest { deadline: soon, ..endless() }).unwrap_err();
    assert_eq!(error, GenerateError::DeadlineExceeded);
}

#[tokio::test]
async fn async_callers_read_events_and_wholes() {
    use futures::StreamExt as _;
    let engine = engine("llama3");
    let events: Vec<_> = engine.generate(hot("Observation:", 5)).unwrap().collect().await;
    assert!(matches!(events.last(), Some(Ok(GenerateEvent::Done(_)))));
    let done = engine.generate(hot("Observation:", 5)).unwrap().finish().await.unwrap();
    let Some(Ok(GenerateEvent::Done(first))) = events.last() else { unreachable!() };
    assert_eq!((&first.text, first.finish), (&done.text, done.finish));
}
