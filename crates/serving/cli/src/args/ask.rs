//! `autoact ask` and `autoact watch`: their words.

use std::path::PathBuf;
use std::time::Duration;

use autoact_trajectory::NextAttempt;
use clap::{Args as ClapArgs, ValueEnum};

use super::values::{patience, time, timestamp};

/// `autoact ask`
#[derive(Debug, ClapArgs)]
pub(crate) struct AskOptions {
    /// The question.
    pub(crate) question: String,
    /// The task's id, chosen by you: asking again with the same id and question is the same task.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The conversation that the question belongs to: what was asked and answered in it before is
    /// recalled. Up to 64 letters, digits, `_` and `-`.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Let the group use these tools only (comma-separated); `Finish` is always there.
    #[arg(long, value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Planning loops at most.
    #[arg(long)]
    pub(crate) max_steps: Option<u32>,
    /// How long the group may take: seconds, or a time such as `90s` or `2m`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// The answer may have several lines: for models that follow instructions, which the bundled
    /// one does not.
    #[arg(long)]
    pub(crate) multiline: bool,
    /// The confidence that an approval needs, 0 to 1 [default: what the adapters' calibration says].
    #[arg(long, value_name = "SHARE")]
    pub(crate) min_confidence: Option<f64>,
    /// The group may ask you: on a terminal you are asked here, elsewhere the task waits for
    /// `autoact tasks answer`.
    #[arg(long)]
    pub(crate) may_ask: bool,
    /// Which actions wait for a person's approval, beyond what the tenant's policy asks for.
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) approval: Option<Approvals>,
    /// What the agents are given after a judgement "wrong" [default: what the adapters'
    /// calibration says].
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) next_attempt: Option<Attempt>,
    /// Sampling temperature; 0 always takes the likeliest token.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Seed of the sampling.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// One JSON object a line for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// With `--json`, also the agents' words while they are written.
    #[arg(long, requires = "json", conflicts_with = "quiet")]
    pub(crate) deltas: bool,
    /// Only the answer.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// How long to look for a gateway when the connection is lost; `0s` gives up at once.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub(crate) reconnect: Duration,
    // the last one: its heading would stand over what follows
    #[command(flatten)]
    pub(crate) context: ContextOptions,
}

/// What the group is told beside the question. Only what is given enters its prompts.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "What the group is told beside the question")]
pub(crate) struct ContextOptions {
    /// The name of the kind of task.
    #[arg(long, value_name = "NAME")]
    pub(crate) task_name: Option<String>,
    /// What the kind of task is.
    #[arg(long, value_name = "TEXT")]
    pub(crate) task_description: Option<String>,
    /// What an answer looks like, such as `one word`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer_format: Option<String>,
    /// Who the group speaks as and for whom: a TOML file with `name`, `bio`, `audience` and
    /// `instructions`.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// A rule for the group; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Vec<String>,
    /// The collections that the group looks into instead of its own pages (comma-separated names, the
    /// first goes before the others). The own pages have a name too: `atlas`.
    #[arg(long = "corpus", alias = "knowledge", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) knowledge: Vec<String>,
    /// The point in time that the question is asked at: RFC 3339, such as `2026-11-22T07:30:00Z`.
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub(crate) now: Option<prost_types::Timestamp>,
    /// Your time zone: a name of the IANA database, such as `Europe/Paris`.
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
}

/// `autoact watch`
#[derive(Debug, ClapArgs)]
pub(crate) struct WatchOptions {
    /// The task's id.
    pub(crate) id: String,
    /// Go on after this sequence.
    #[arg(long, default_value_t = 0)]
    pub(crate) after: u64,
    /// One JSON object a line for programs.
    #[arg(long)]
    pub(crate) json: bool,
    /// With `--json`, also the agents' words while they are written.
    #[arg(long, requires = "json")]
    pub(crate) deltas: bool,
    /// How long to look for a gateway when the connection is lost; `0s` gives up at once.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub(crate) reconnect: Duration,
}

/// What the agents are given in the attempt that follows a judgement "wrong".
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attempt {
    /// The whole history, with what was wrong, as in AutoAct.
    Continues,
    /// The question alone; they sample then, and the surest of all answers comes back.
    Anew,
}

impl From<Attempt> for NextAttempt {
    fn from(attempt: Attempt) -> Self {
        match attempt {
            Attempt::Continues => NextAttempt::Continues,
            Attempt::Anew => NextAttempt::Anew,
        }
    }
}

/// A choice, or that there is none, as requests have it.
pub(crate) fn next_attempt(chosen: Option<Attempt>) -> i32 {
    autoact_wire::next_attempt_to_proto(chosen.map(Into::into))
}

/// Which actions of a task wait for a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approvals {
    /// Those of tools that say so.
    Tools,
    /// Also those with an effect, once the group has read what a tool returned.
    Untrusted,
    /// All that are not read-only.
    Effects,
}
