//! What the three agents have in common: a model that speaks in one role.
//!
//! An [`Agent`] is a base model with one LoRA adapter, behind [`autoact_model::Backend`].
//! [`Agent::speak`] checks a trajectory, lets [`autoact_speaker`] speak and gives a [`Speech`]: a
//! stream of text as it is written, then the whole reply with its costs. Dropping the speech stops
//! the model.
//!
//! [`AgentService`] is the service of all three agents. What makes one of them is an [`AgentRole`]:
//! its name and port, its rpc, how its reply is read, and for tool-agent what runs the tools.
//! [`AgentConfig`] is the one set of settings.
//!
//! The model is an engine of this process, or a server's elsewhere ([`BackendConfig`]).
//!
//! With an adapter registry the agent follows it: a promoted version is loaded beside the one that
//! speaks and tried with one token; then new replies speak with it, those that have begun end with
//! the old one, and the last of them unloads it.

mod agent;
mod call;
mod check;
mod config;
mod count;
mod error;
mod follow;
mod health;
mod host;
mod load;
mod news;
mod registry;
mod remote;
mod role;
mod service;
mod settings;
mod speech;
mod template;
#[cfg(feature = "testing")]
pub mod testing;
mod voice;
mod watch;

pub use agent::{Agent, AgentOptions};
pub use autoact_model::Generated;
pub use config::{EngineConfig, without_adapter};
pub use error::AgentError;
pub use load::{Sources, load, open};
pub use registry::Refusal;
pub use remote::BackendConfig;
pub use role::{AgentRole, NoSettings, OwnSettings, Reply, Whole};
pub use service::{AgentService, Stream, answer, install};
pub use settings::AgentConfig;
pub use speech::{Request, Speech};
