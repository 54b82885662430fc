//! Remote models: servers with OpenAI's API (vLLM and compatible ones) behind
//! [`autoact_model::Backend`], so that agents treat them like the engine.
//!
//! [`Remote::connect`] asks the server for its models and finds the configured name, which is
//! either a LoRA adapter with its base or the base itself, and how it wants to be asked (`probe`):
//! `/completions`, or `/chat/completions` where the server has a chat template for the model.
//! Every completion is one streaming request; [`Remote`] describes deadlines, cancellation, retries
//! and overload. [`Dialect`] determines how a grammar is sent to the server. In addition, every
//! reply is checked against its grammar, so no text that violates it reaches the reader.

mod attempt;
mod backend;
mod completion;
mod error;
mod failure;
mod follow;
mod limit;
mod models;
mod options;
mod probe;
mod queue;
mod scores;
mod server;
mod spellings;
mod sse;
mod tidy;
mod whole;
mod wire;

pub use autoact_http_client::ClientError;
pub use backend::Remote;
pub use error::RemoteError;
pub use options::{Api, Dialect, RemoteOptions};
