//! How well and how fast collections are searched: recall of the right pages by four strategies, and
//! the time of a query over 10,000 segments and more.
//!
//! ```text
//! scripts/fetch-embedder
//! cargo run --release -p autoact-bench-retrieval -- --hotpotqa hotpotqa.jsonl --sizes 10000,100000,1000000
//! ```
//!
//! With `--memory URL` the same questions are asked of a memory service, whatever keeps its documents.

mod latency;
mod recall;
mod served;
mod sets;

use std::path::PathBuf;

use anyhow::Context as _;
use autoact_collections::{Collection, Entry, NewSegment, Space, Strategy};
use autoact_embedding::{Embedder, MiniLm, MiniLmOptions};
use clap::Parser;

use crate::sets::Set;

/// What is measured.
#[derive(Debug, Parser)]
#[command(version, about = "Recall and time of searches in collections of documents, by four strategies")]
struct Options {
    /// The weights that `scripts/fetch-embedder` fetches.
    #[arg(long, default_value = "models/all-minilm-l6-v2")]
    embedder: PathBuf,
    /// The atlas: its pages, and its held-out questions.
    #[arg(long, default_value = "corpora/atlas")]
    atlas: PathBuf,
    /// Questions of HotpotQA with their paragraphs, a JSON object a line, in the published fields.
    #[arg(long)]
    hotpotqa: Option<PathBuf>,
    /// Ask a memory service at this address instead, in a collection that is deleted afterwards.
    #[arg(long, value_name = "URL")]
    memory: Option<String>,
    /// Numbers of segments whose search is timed (comma-separated).
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Segments whose vectors are computed for the timing; those beyond have these, a little moved.
    #[arg(long, default_value_t = 2000)]
    real_vectors: usize,
}

/// The strategies, as the tables name them.
const STRATEGIES: [(&str, Strategy); 4] = [
    ("words", Strategy::Words),
    ("vectors", Strategy::Vectors),
    ("concatenation", Strategy::Concatenation),
    ("reciprocal ranks", Strategy::ReciprocalRanks),
];

#[allow(clippy::print_stdout)] // a report
fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut sets = vec![sets::atlas(&options.atlas)?];
    if let Some(path) = &options.hotpotqa {
        sets.push(sets::hotpotqa(path).with_context(|| format!("cannot read `{}`", path.display()))?);
    }
    if let Some(memory) = &options.memory {
        let runtime = tokio::runtime::Runtime::new()?;
        for set in &sets {
            println!("{}", runtime.block_on(served::table(set, memory))?);
        }
        return Ok(());
    }
    let embedder = MiniLm::open(&options.embedder, MiniLmOptions::default())?;
    for set in &sets {
        println!("{}", recall::table(set, &embedder)?);
    }
    for size in options.sizes {
        println!("{}", latency::table(&sets, &embedder, size, options.real_vectors)?);
    }
    Ok(())
}

fn space(embedder: &dyn Embedder) -> Space {
    Space { name: embedder.name().to_owned(), dimension: embedder.dimension() }
}

/// Stores segments as one file.
fn put(collection: &Collection, path: &str, segments: Vec<NewSegment>) -> anyhow::Result<()> {
    let entry = Entry {
        path: path.to_owned(),
        sha256: String::new(),
        reader: String::new(),
        title: path.to_owned(),
        kind: "text".to_owned(),
        pages: None,
        bytes: 0,
        segments: 0,
    };
    collection.put(&entry, segments)?;
    Ok(())
}

/// The segments of a set's pages.
fn segments(set: &Set) -> Vec<NewSegment> {
    let segment = |(title, text): &(String, String)| NewSegment { title: title.clone(), text: text.clone(), ..NewSegment::default() };
    set.pages.iter().map(segment).collect()
}
