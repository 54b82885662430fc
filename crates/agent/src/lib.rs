//! What the three agents have in common: a model that speaks in one role.
//!
//! An [`Agent`] is a base model with one LoRA adapter, behind [`autoact_model::Backend`]. [`Agent::speak`] checks a trajectory, renders
//! the prompt with `autoact-prompt`, holds decoding to the role's grammar and gives a [`Speech`]: a stream of text as it is written,
//! then the whole reply with its costs. Dropping the speech stops the model. The services parse the reply into their own contract.

mod agent;
mod call;
mod check;
mod config;
mod error;
mod health;
mod load;
mod speech;
#[cfg(feature = "testing")]
pub mod testing;
mod usage;

pub use agent::{Agent, AgentOptions, Request};
pub use config::{EngineConfig, engine_flags, without_adapter};
pub use error::AgentError;
pub use health::watch_health;
pub use load::load;
pub use speech::{Reply, Speech, Spoken, Stream, stream};
pub use usage::usage;
