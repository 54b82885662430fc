//! Lengths of the training documents in tokens, and how fast they are made:
//! `cargo run --release -p autoact-pretrain --example lengths -- [COUNT]`. A longer document than
//! `seq_len` is cut, so few should be.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use autoact_pretrain::{AdapterDocuments, BaseDocuments, Encoder, Paths, Recipe, Role, Worlds};
use autoact_train::{Document, DocumentSource};
use tokenizers::Tokenizer;

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(2000), |count| count.parse())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let recipe = root.join("models/stem/recipe/recipe.toml");
    let paths = Paths { recipe: recipe.clone(), atlas: root.join("corpora/atlas"), model: PathBuf::new(), work: PathBuf::new() };
    let recipe = Recipe::load(&recipe)?;
    let worlds = Worlds::load(&paths, &recipe)?;
    let encoder = || -> Result<Encoder, Box<dyn Error>> {
        let file = root.join("models/stem/tokenizer.json");
        Ok(Encoder::new(Tokenizer::from_file(file).map_err(|error| error.to_string())?)?)
    };
    measure("base", count, &mut BaseDocuments::new(worlds.clone(), encoder()?, &recipe)?);
    for role in [Role::Plan, Role::Tool, Role::Reflect] {
        measure(role.as_str(), count, &mut AdapterDocuments::new(worlds.clone(), encoder()?, &recipe, role)?);
    }
    Ok(())
}

fn measure(name: &str, count: usize, source: &mut dyn DocumentSource) {
    let start = Instant::now();
    let documents: Vec<Document> = (0..count).map(|_| source.next()).collect();
    let seconds = start.elapsed().as_secs_f64();
    let mut lengths: Vec<usize> = documents.iter().map(|document| document.tokens.len()).collect();
    lengths.sort_unstable();
    let positions: usize = documents.iter().map(Document::positions).sum();
    let invocations: usize = documents.iter().map(|document| document.invocations.len()).sum();
    let tokens: usize = lengths.iter().sum();
    let over = |limit: usize| 100.0 * lengths.iter().filter(|length| **length > limit).count() as f64 / count as f64;
    let empty = lengths.iter().filter(|length| **length == 0).count();
    let at = |part: f64| lengths.get((part * (count - 1) as f64) as usize).copied().unwrap_or_default();
    println!(
        "{name}: {:.0} documents and {:.0} tokens a second; median {}, 95 % {}, longest {}; over 640: {:.1} %, 700: {:.1} %, \
         704: {:.1} %, 768: {:.1} %, 960: {:.1} %; empty {empty}; positions {:.2} × tokens, {:.1} invocations a document",
        count as f64 / seconds,
        tokens as f64 / seconds,
        at(0.5),
        at(0.95),
        at(1.0),
        over(640),
        over(700),
        over(704),
        over(768),
        over(960),
        positions as f64 / tokens as f64,
        invocations as f64 / count as f64,
    );
}
