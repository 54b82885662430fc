//! What hostile bytes reach first: one function per fuzz target.
//!
//! Each takes any bytes and calls what production calls with them: a stored event, a model's reply,
//! an adapter from elsewhere, a page of a web server. Bytes that are refused are fine. A panic, an
//! overflow, a state that a task must not be in, or more time or memory than the fuzzer allows is a
//! finding. `fuzz/` has a target for each; the tests here feed the committed seeds and every finding
//! to the same functions, without a fuzzer (docs/fuzzing.md).

mod adapter;
#[cfg(feature = "documents")]
mod documents;
mod events;
#[cfg(feature = "tools")]
mod network;
mod parts;
mod records;
mod replies;
mod requests;
mod scratch;
#[cfg(feature = "tools")]
mod tables;
#[cfg(feature = "engine")]
mod tokenizer;
#[cfg(feature = "access")]
mod tokens;
#[cfg(feature = "tools")]
mod tools;
mod weights;

pub use adapter::adapter;
#[cfg(feature = "documents")]
pub use documents::documents;
pub use events::events;
#[cfg(feature = "tools")]
pub use network::{http, mcp, model_server};
pub use records::records;
pub use replies::replies;
pub use requests::requests;
#[cfg(feature = "tools")]
pub use tables::tables;
#[cfg(feature = "engine")]
pub use tokenizer::model;
#[cfg(feature = "access")]
pub use tokens::tokens;
#[cfg(feature = "tools")]
pub use tools::{arguments, openapi};
pub use weights::weights;

/// A target's name, and its function.
pub type Entry = (&'static str, fn(&[u8]));

/// All targets.
pub const ENTRIES: &[Entry] = &[
    ("adapter", adapter),
    #[cfg(feature = "documents")]
    ("documents", documents),
    ("events", events),
    ("records", records),
    ("replies", replies),
    ("requests", requests),
    #[cfg(feature = "access")]
    ("tokens", tokens),
    ("weights", weights),
    #[cfg(feature = "engine")]
    ("model", model),
    #[cfg(feature = "tools")]
    ("arguments", arguments),
    #[cfg(feature = "tools")]
    ("http", http),
    #[cfg(feature = "tools")]
    ("mcp", mcp),
    #[cfg(feature = "tools")]
    ("model_server", model_server),
    #[cfg(feature = "tools")]
    ("openapi", openapi),
    #[cfg(feature = "tools")]
    ("tables", tables),
];
