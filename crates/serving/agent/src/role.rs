//! What makes one of the three agents.

use std::fmt::Debug;
use std::sync::Arc;

use autoact_config::Check;
use autoact_model::Generated;
use autoact_service::{Flag, Setup, StartError};
use autoact_speaker::ParseError;
use autoact_trajectory::{Calibration, Role, ToolSpec};
use autoact_wire::{agents_v1, v1};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;

/// A finished reply, parsed by its service.
pub type Reply<T> = Result<T, ParseError>;

/// What makes one of the three agents: its name, its rpc, and how its reply is read.
pub trait AgentRole: Debug + Clone + Send + Sync + 'static {
    /// Whose part it speaks.
    const ROLE: Role;
    /// Its name in files, variables and logs: `plan-agent`.
    const NAME: &'static str;
    /// One or two sentences for `--help`.
    const ABOUT: &'static str;
    /// The port of the gRPC server; metrics are 100 above.
    const PORT: u16;
    /// The bundled model's adapter for it.
    const DEFAULT_ADAPTER: &'static str;

    /// Settings that only it has.
    type Settings: OwnSettings;
    /// What it opens beside its model.
    type Resources: Send;
    /// The request of the rpc that lets it speak.
    type Request;
    /// A message of that rpc's stream.
    type Response: Send + 'static;

    /// The flags of its own settings.
    fn flags() -> Vec<Flag> {
        Vec::new()
    }

    /// Opens what it needs beside its model. `setup` makes its connections.
    fn open(settings: &Self::Settings, setup: &Setup) -> impl Future<Output = Result<Self::Resources, StartError>> + Send;

    /// Registers its gRPC service.
    fn serve(agent: Arc<Agent>, resources: Self::Resources, settings: &Self::Settings, setup: &mut Setup);

    /// The history of a request, how to decode, and whose task it is.
    fn asked(request: Self::Request) -> (Option<v1::Trajectory>, Option<v1::SamplingParams>, String);

    /// The message that carries a piece of text.
    fn delta(delta: agents_v1::Delta) -> Self::Response;

    /// The last message: the whole reply, read.
    ///
    /// # Errors
    /// The reply has not the form of this role.
    fn result(whole: Whole<'_>, usage: v1::Usage) -> Reply<Self::Response>;
}

/// A whole reply, and what it takes to read it.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// What the model wrote.
    pub reply: &'a Generated,
    /// The task's tools.
    pub tools: &'a [ToolSpec],
    /// The one of them that the last step chose.
    pub chosen: Option<&'a ToolSpec>,
    /// What the adapter's judgements are worth.
    pub calibration: Option<&'a Calibration>,
}

/// Settings that only one of the agents has. Derive serde with
/// `#[serde(default, deny_unknown_fields)]`.
pub trait OwnSettings: Debug + Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Says what is wrong beyond types.
    fn validate(&self, check: &mut Check<'_>) {
        let _ = check;
    }
}

/// None: an agent that has only a model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

impl OwnSettings for NoSettings {}
