//! What a tool is.

use std::time::{Duration, Instant};

use autoact_sandbox::Sandbox;
use autoact_trajectory::{Arguments, NewArtifact, Source, ToolSpec, Trajectory};

/// Who calls a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// Whose task it is; empty where tasks have no tenants.
    pub tenant: &'a str,
    /// Names the call: the same for its repetitions and for no other call. Empty where calls have
    /// no names.
    pub key: &'a str,
    /// When nobody waits for its outcome any more; `None`: only the tool's own deadline counts.
    pub deadline: Option<Instant>,
}

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Whose task it is; empty where tasks have no tenants.
    pub tenant: &'a str,
    /// Names the call ([`Caller::key`]).
    pub key: &'a str,
    /// When nobody waits for its outcome any more ([`Caller::deadline`]).
    pub deadline: Option<Instant>,
    /// α^p: what stands between the brackets; a JSON object in canonical form for a tool with
    /// several or typed arguments.
    pub params: &'a str,
    /// What a tool with a schema was given, by name: it satisfies the schema. A plain line is there
    /// as well.
    pub arguments: Option<&'a Arguments>,
    /// Everything so far; `Lookup` looks into the page that was retrieved last.
    pub trajectory: &'a Trajectory,
}

/// A tool. Synchronous: it is run on a blocking thread, under the deadline of its spec.
pub trait Tool: Send + Sync {
    /// What the agents know about it.
    fn spec(&self) -> &ToolSpec;
    /// Runs it. The text is the observation; its line breaks and its length are seen to by
    /// [`crate::ToolLibrary::execute`].
    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError>;
    /// What confines the program that it runs. Who uses a library tries it at the start, so that a
    /// tool whose sandbox is not to be had is refused there and not in the middle of a task.
    fn sandbox(&self) -> Option<&Sandbox> {
        None
    }
    /// Whether it runs a program, or parses a page, without a sandbox because its entry trusts it.
    fn is_trusted(&self) -> bool {
        false
    }
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// The observation, for the group.
    pub text: String,
    /// What comes with it for people.
    pub artifacts: Vec<NewArtifact>,
    /// The documents that the text shows.
    pub sources: Vec<Source>,
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        ToolOutput { text, ..ToolOutput::default() }
    }
}

/// A tool that ran and failed. The message becomes the observation, so it is written for the group
/// to read.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The parameters make no sense.
    #[error("{0}")]
    Params(String),
    /// The program could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The program ended with an error.
    #[error("{status}: {message}")]
    Failed {
        /// `exit code 2`, `killed by signal 11`
        status: String,
        /// The first line it wrote to its standard error.
        message: String,
    },
    /// It took too long and was ended.
    #[error("no answer within {}{}", autoact_base::duration::format(*after), so_far(written))]
    Timeout {
        /// The tool's deadline.
        after: Duration,
        /// What it wrote to its standard output until then, as one line; may be empty.
        written: String,
    },
    /// Something of ours failed.
    #[error("{0}")]
    Internal(String),
}

fn so_far(written: &str) -> String {
    if written.is_empty() { String::new() } else { format!("; until then it wrote: {written}") }
}
