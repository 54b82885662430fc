//! `autoact corpus`.

use std::path::PathBuf;

use autoact_collections::CollectionName;
use autoact_trajectory::Tenant;
use autoact_wire::memory_v1::SearchStrategy;
use clap::{Args as ClapArgs, Subcommand};

/// `autoact corpus`
#[derive(Debug, Subcommand)]
pub(crate) enum CorpusCommand {
    /// Read the PDF, HTML, Markdown and text files of a directory into a collection.
    Import(ImportOptions),
    /// The collections.
    List {
        #[command(flatten)]
        store: StoreOptions,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// The files of a collection.
    Files {
        /// The collection.
        collection: CollectionName,
        #[command(flatten)]
        store: StoreOptions,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// The segments that match a query best.
    Search {
        /// The collections (comma-separated names).
        #[arg(value_name = "COLLECTIONS", value_delimiter = ',', num_args = 1, required = true)]
        collections: Vec<CollectionName>,
        /// What to look for: plain words.
        query: String,
        /// How: `words`, `vectors`, `concatenation` or `reciprocal-ranks`. Without it, what the service
        /// has.
        #[arg(long, value_parser = strategy)]
        strategy: Option<SearchStrategy>,
        /// How many.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        #[command(flatten)]
        store: StoreOptions,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// Delete a collection, or files of it, from the disk.
    Delete {
        /// The collection.
        collection: CollectionName,
        /// Only these files: paths as `autoact corpus files` shows them.
        paths: Vec<String>,
        #[command(flatten)]
        store: StoreOptions,
    },
    /// Check the tables and write `pages.jsonl` and `questions/*.jsonl` anew.
    Build {
        /// The atlas.
        #[arg(long, default_value = "corpora/atlas")]
        dir: PathBuf,
        /// Check that the files are what the tables make; write nothing.
        #[arg(long)]
        check: bool,
    },
}

/// Where collections are kept, and whose.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct StoreOptions {
    /// Whose collections. Without it, those of the token's tenant, or of `default` where there is no
    /// token.
    #[arg(long)]
    pub(crate) tenant: Option<Tenant>,
    /// Where the memory service listens.
    #[arg(long, env = "AUTOACT_MEMORY", default_value = "127.0.0.1:7404")]
    pub(crate) memory: String,
}

impl StoreOptions {
    /// The tenant as requests have it; empty: the caller's own.
    pub(crate) fn tenant(&self) -> String {
        self.tenant.as_ref().map(Tenant::to_string).unwrap_or_default()
    }
}

/// `autoact corpus import`
#[derive(Debug, ClapArgs)]
pub(crate) struct ImportOptions {
    /// A directory, or one file.
    pub(crate) path: PathBuf,
    /// The collection: made if it is not there. Files that it has with the same bytes are no work.
    /// Without it, the directory's name.
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub(crate) collection: Option<CollectionName>,
    /// Delete the collection's files that the directory does not have.
    #[arg(long, conflicts_with = "out")]
    pub(crate) prune: bool,
    /// Write a knowledge base for `autoact up --corpus FILE` instead. One that exists is replaced once
    /// everything has been read.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Larger files are skipped.
    #[arg(long, value_name = "N", default_value_t = autoact_documents::Limits::default().file_bytes, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_file_bytes: u64,
    /// Read files in this process. Without it each is read in a confined process of its own, with
    /// bounded memory.
    #[arg(long)]
    pub(crate) unconfined: bool,
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// A JSON summary for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How collections are searched.
fn strategy(text: &str) -> Result<SearchStrategy, String> {
    Ok(match text {
        "words" => SearchStrategy::Words,
        "vectors" => SearchStrategy::Vectors,
        "concatenation" => SearchStrategy::Concatenation,
        "reciprocal-ranks" => SearchStrategy::ReciprocalRanks,
        _ => return Err("expected `words`, `vectors`, `concatenation` or `reciprocal-ranks`".to_owned()),
    })
}
