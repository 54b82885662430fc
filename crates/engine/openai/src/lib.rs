//! The model on another machine: a server that speaks OpenAI's completions API (vLLM, and what imitates it) behind
//! [`autoact_model::Backend`], so that an agent does not know the difference.
//!
//! [`Remote::connect`] asks the server for its models and finds the one that is to speak: a served LoRA name, which the server's list says
//! belongs to a base, or the base itself. Every completion is one `POST /completions` that streams ([`Remote`] says how deadlines,
//! cancellation, retries and overload work). [`Dialect`] says how the server is told of a grammar. Whatever it is told, what it writes
//! is followed against the grammar as it comes: no text that breaks it ever reaches the reader.

mod attempt;
mod backend;
mod completion;
mod error;
mod failure;
mod follow;
mod http;
mod models;
mod options;
mod patience;
mod queue;
mod retry;
mod spellings;
mod sse;
mod tls;
mod wire;

pub use backend::Remote;
pub use error::RemoteError;
pub use options::{Dialect, RemoteOptions};
