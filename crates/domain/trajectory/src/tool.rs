//! Tools as the agents see them: {m, d, u} of AutoAct section 2.1, and what a tool does to the
//! world.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control::MAX_INPUT_BYTES;
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

/// The tool that asks the person who asked the question. It is not run: its parameters are the
/// question, and the reply is the observation.
pub const ASK_USER: &str = "AskUser";

/// What a tool needs a person for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Asks {
    /// Each call waits for a person's approval.
    Approval,
    /// Nothing is run: a person answers, as with [`ASK_USER`].
    Answer,
}

impl Asks {
    /// What the two flags of a message say.
    pub fn from_flags(approval: bool, answer: bool) -> Option<Asks> {
        match (approval, answer) {
            (_, true) => Some(Asks::Answer),
            (true, false) => Some(Asks::Approval),
            (false, false) => None,
        }
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
    /// What it needs a person for; `None`: for nothing.
    pub asks: Option<Asks>,
}

impl ToolSpec {
    /// A tool of which only the name is known, to be filled in: it says nothing of itself, takes one
    /// line, reads only, and has 5 s and 1024 bytes. [`FINISH`] and [`NOT_FOUND`] end the task.
    pub fn new(name: impl Into<String>) -> ToolSpec {
        let name = name.into();
        let terminal = match name.as_str() {
            FINISH => Some(Terminal::Answer),
            NOT_FOUND => Some(Terminal::NoAnswer),
            _ => None,
        };
        ToolSpec {
            definition: String::new(),
            usage: format!("{name}[input]"),
            name,
            effect: Effect::ReadOnly,
            timeout: Duration::from_secs(5),
            max_observation_bytes: 1024,
            terminal,
            schema: None,
            examples: Vec::new(),
            multiline: false,
            asks: None,
        }
    }

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

    /// The tool that asks the person who asked the question.
    pub fn ask_user() -> ToolSpec {
        ToolSpec {
            definition: "Asks the user for something that only the user knows, and returns the reply.".to_owned(),
            usage: format!("{ASK_USER}[question]"),
            timeout: Duration::from_secs(1),
            max_observation_bytes: MAX_INPUT_BYTES,
            examples: vec!["Which of the two offices do you mean, Lyon or Nantes?".to_owned()],
            asks: Some(Asks::Answer),
            ..ToolSpec::new(ASK_USER)
        }
    }

    /// Whether each of its calls waits for a person's approval.
    pub fn needs_approval(&self) -> bool {
        self.asks == Some(Asks::Approval)
    }

    /// Whether a person is asked instead of running it.
    pub fn asks_user(&self) -> bool {
        self.asks == Some(Asks::Answer)
    }

    /// The schema of a tool whose arguments are written as a JSON object; `None` for one that takes
    /// a plain line.
    pub fn object_schema(&self) -> Option<&ParameterSchema> {
        self.schema.as_ref().filter(|schema| schema.line_property().is_none())
    }
}
