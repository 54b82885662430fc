//! What a grammar costs: the time of a mask and of forced tokens along the completions that the grammar allows.
//! `cargo run --release -p autoact-model --example masks`
use std::time::Instant;

use autoact_model::{Backend, Engine, EngineOptions, GenerateRequest, Grammar, ModelDir};

fn main() -> anyhow::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "models/stem".to_owned());
    let engine = Engine::start(&ModelDir::open(&dir)?, EngineOptions { cache_bytes: 0, threads: 1, ..EngineOptions::default() })?;
    let grammars = [
        ("none", None),
        ("anything", Some(Grammar::Regex("(?s:.*)".to_owned()))),
        ("plan", Some(Grammar::Regex(r" [^\n]*\nAction: (Search|Retrieve|Lookup|Calculate|Finish)\n".to_owned()))),
    ];
    let prompt =
        "Tools: Search[query] Retrieve[title] Finish[answer]\nQuestion: What is the capital of the country of the Loire?\nThought:";
    for _ in 0..3 {
        for (name, grammar) in &grammars {
            let request = || GenerateRequest { grammar: grammar.clone(), max_tokens: 64, ..GenerateRequest::new(prompt) };
            engine.generate(request())?.blocking_finish()?;
            let (mut tokens, mut decode) = (0, 0.0);
            let begun = Instant::now();
            for _ in 0..10 {
                let done = engine.generate(request())?.blocking_finish()?;
                tokens += done.completion_tokens;
                decode += done.decode.as_secs_f64();
            }
            println!(
                "{name:10} {:7.1} µs a token, {tokens} tokens, {:.1} ms in all",
                1e6 * decode / tokens as f64,
                1e3 * begun.elapsed().as_secs_f64()
            );
        }
    }
    Ok(())
}
