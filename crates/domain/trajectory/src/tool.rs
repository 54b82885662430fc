//! Tools as the agents see them: {m, d, u} of AutoAct section 2.1, and what a tool does to the
//! world.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::parameters::ParameterSchema;

/// The terminal tool: its parameters are the answer, nothing is run, and the history goes to
/// Reflect-Agent.
pub const FINISH: &str = "Finish";

/// The terminal tool that says that there is no answer: its parameters are what is missing. Nothing
/// is run, and the history goes to Reflect-Agent as with [`FINISH`].
pub const NOT_FOUND: &str = "NotFound";

/// Tools of a task at most: each stands in every prompt.
pub const MAX_TOOLS: usize = 256;

/// Tools of a library at most. A task is given those that fit its question.
pub const MAX_LIBRARY_TOOLS: usize = 2048;

/// What a tool does to the world; decides what may be run again after a crash in mid-call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads only: run again freely.
    ReadOnly,
    /// The same call twice is the same as once: run again freely.
    Idempotent,
    /// Changes the world: never run again when the outcome is unknown.
    SideEffect,
}

impl Effect {
    /// The effect's name in libraries and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::ReadOnly => "read_only",
            Effect::Idempotent => "idempotent",
            Effect::SideEffect => "side_effect",
        }
    }
}

/// What the parameters of a terminal tool are. Nothing is run; the history goes to Reflect-Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// The answer, as with [`FINISH`].
    Answer,
    /// What is missing: there is no answer, as with [`NOT_FOUND`].
    NoAnswer,
}

impl Terminal {
    /// What the two flags of a message say: whether the tool ends the task, and whether without an
    /// answer. The second alone says nothing.
    pub fn from_flags(terminal: bool, no_answer: bool) -> Option<Terminal> {
        terminal.then_some(if no_answer { Terminal::NoAnswer } else { Terminal::Answer })
    }
}

/// One tool of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// m: the name that Plan-Agent writes.
    pub name: String,
    /// d: what it does, one sentence.
    pub definition: String,
    /// u: how it is called, e.g. `Retrieve[title]`.
    pub usage: String,
    /// What it does to the world.
    pub effect: Effect,
    /// How long one call may take.
    pub timeout: Duration,
    /// Longer observations are cut at this many bytes.
    pub max_observation_bytes: usize,
    /// What its parameters say of the answer, for a tool that ends the task; `None` for one that is
    /// run.
    pub terminal: Option<Terminal>,
    /// What its arguments are; `None`: one line of text.
    pub schema: Option<ParameterSchema>,
    /// Parameters of calls that make sense, as a model writes them: lines.
    pub examples: Vec<String>,
    /// Its observations keep their line breaks; those of other tools are one line.
    pub multiline: bool,
}

impl ToolSpec {
    /// Whether it ends the task: its parameters go to Reflect-Agent, and nothing is run.
    pub fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Whether its parameters are the answer.
    pub fn is_answer(&self) -> bool {
        self.terminal == Some(Terminal::Answer)
    }

    /// Whether its parameters say why there is no answer.
    pub fn is_no_answer(&self) -> bool {
        self.terminal == Some(Terminal::NoAnswer)
    }

    /// The schema of a tool whose arguments are written as a JSON object; `None` for one that takes
    /// a plain line.
    pub fn object_schema(&self) -> Option<&ParameterSchema> {
        self.schema.as_ref().filter(|schema| schema.line_property().is_none())
    }
}
