//! The command line's words.

mod certs;
mod corpus;
mod memory;
mod nats;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

use autoact_trajectory::Tenant;
use clap::{Args as ClapArgs, Parser, Subcommand};

pub(crate) use self::certs::{CertsCommand, CertsOptions};
pub(crate) use self::corpus::{CorpusCommand, ImportOptions, StoreOptions};
pub(crate) use self::memory::{MemoryCommand, MemoryKind, MemoryOptions};
pub(crate) use self::nats::{ConfigOptions, LoginOptions, NatsCommand};
pub(crate) use self::tools::{AddCommand, CallOptions, CommonOptions, FilesOptions, ToolsCommand, ToolsOptions};
use crate::adapters::AdaptersOptions;
use crate::audit::AuditOptions;
use crate::backup::{BackupOptions, RestoreOptions};
use crate::eval::calibrate::CalibrateOptions;
use crate::eval::compare::options::CompareOptions;
use crate::learn::LearnArgs;
use crate::load::LoadOptions;
use crate::migrate::MigrateOptions;
use crate::model::ModelCommand;
use crate::purge::PurgeOptions;
use crate::token::TokenCommand;
use crate::up::model::ModelOptions;

/// autoact: three cooperating agents over one small model.
#[derive(Debug, Parser)]
#[command(
    name = "autoact",
    version,
    about = "Start the group, ask it, watch it work, measure it, train its bundled model",
    after_help = "Examples:\n  autoact up                                        start nats-server and the five services here\n  autoact ask \"What is the capital of Italy?\"         ask and watch the group work\n  autoact ask --json \"…\" | jq .                      the same, one JSON event a line\n  autoact tasks list                                what was asked lately\n  autoact eval --set held-out                       exact match and F1 over the held-out questions\n\nExit codes: 0 done (an approved answer), 1 failed, 3 answered but not approved, 4 the group found no answer, 5 an audit found something, 64 bad arguments or configuration, 69 a service cannot be reached or cannot serve now, 130 stopped by Ctrl-C, 141 nobody reads the output any more."
)]
pub(crate) struct Args {
    /// Where the gateway listens.
    #[arg(long, global = true, env = "AUTOACT_GATEWAY", default_value = "http://127.0.0.1:7400")]
    pub(crate) gateway: String,
    #[command(flatten)]
    pub(crate) tls: TlsOptions,
    #[command(flatten)]
    pub(crate) login: LoginOptions,
    /// The file with the token that the gateway and memory ask for; otherwise the variable
    /// `AUTOACT_TOKEN`, or the file that `AUTOACT_TOKEN_FILE` names.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// For admins: act for this tenant.
    #[arg(long, global = true, value_name = "TENANT")]
    pub(crate) for_tenant: Option<Tenant>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start nats-server and the five services on this machine, and stay until Ctrl-C.
    Up(UpOptions),
    /// Stop what `up` started in a state directory.
    Down(DownOptions),
    /// Ask the group a question and watch it work.
    Ask(AskOptions),
    /// Watch a task, from its beginning or from a sequence on.
    Watch(WatchOptions),
    /// List, show and control tasks: pause, answer, cancel, retry, delete.
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// List the tools that the group can use, with their arguments.
    Tools(ToolsOptions),
    /// What is remembered: recall, list, show and forget it.
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Run the whole group over a set of questions and print exact match and F1.
    Eval(EvalOptions),
    /// Learn a task from a handful of examples: three adapters and a report.
    Learn(LearnArgs),
    /// Put load on a running group, and see where the time goes; compare two such reports.
    Load(LoadOptions),
    /// The versions of the three adapters: list, promote, roll back, verify.
    Adapters(AdaptersOptions),
    /// The bundled model: look at it, try it, train it.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Knowledge bases: import files of your own, make the bundled one.
    #[command(subcommand)]
    Corpus(CorpusCommand),
    /// Move what the release before stored on the bus; once, while no gateway runs.
    Migrate(MigrateOptions),
    /// Check that everything on the bus is there, as it was stored.
    Audit(AuditOptions),
    /// Copy what is new on the bus into a directory.
    Backup(BackupOptions),
    /// Bring a backup back into an empty bus.
    Restore(RestoreOptions),
    /// Remove tasks that ended long ago, and record that.
    Purge(PurgeOptions),
    /// Certificates for development: make an authority, show and renew what it made.
    #[command(subcommand)]
    Certs(CertsCommand),
    /// The users of nats-server: make their keys, print its configuration, show who may do what.
    #[command(subcommand)]
    Nats(NatsCommand),
    /// Tokens for users: make one, list them, check them.
    #[command(subcommand)]
    Token(TokenCommand),
}

/// How `https://` addresses are called. Without these, with the operator's certificate of the group
/// in the state directory.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct TlsOptions {
    /// Whom to believe behind `https://` addresses: a PEM file of certificate authorities.
    #[arg(long, global = true, env = "AUTOACT_TLS_CA", value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Our certificate: a PEM file.
    #[arg(long, global = true, env = "AUTOACT_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key: a PEM file.
    #[arg(long, global = true, env = "AUTOACT_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
}

/// Where a local group keeps its files.
pub(crate) const DEFAULT_STATE_DIR: &str = ".quickstart/run";
/// The library that comes with the atlas.
const DEFAULT_TOOLS: &str = "corpora/atlas/tools.toml";

/// Options of everything that runs a local group.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct GroupOptions {
    /// Where logs, the bus and the memory keep their files.
    #[arg(long, env = "AUTOACT_STATE_DIR", default_value = DEFAULT_STATE_DIR)]
    pub(crate) state_dir: PathBuf,
    /// The first port: services at +0 to +4, their metrics at +100 to +104, NATS at +22, its monitoring
    /// at +23. Second replicas are at +30 to +33 (metrics at +130 to +133), third ones at +40 to +43,
    /// and so on.
    #[arg(long, default_value_t = 7400, value_parser = clap::value_parser!(u16).range(1024..=65431))]
    pub(crate) base_port: u16,
    /// How many gateways, and how many of each agent.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=8))]
    pub(crate) replicas: u16,
    /// How long everything may take to start, from the last progress of agents that read weights.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(crate) start_timeout: Duration,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    /// Speak with this adapter registry's current version instead, and switch with it.
    #[arg(long, value_name = "DIR")]
    pub(crate) adapter_registry: Option<PathBuf>,
    /// The knowledge base's pages, one JSON object with `title` and `text` a line.
    #[arg(long, default_value = "corpora/atlas/pages.jsonl")]
    pub(crate) corpus: PathBuf,
    /// The tool library.
    #[arg(long, default_value = DEFAULT_TOOLS)]
    pub(crate) tools: PathBuf,
}

/// `autoact up`
#[derive(Debug, ClapArgs)]
pub(crate) struct UpOptions {
    #[command(flatten)]
    pub(crate) group: GroupOptions,
    /// Ask a question once everything runs, and say what else can be done.
    #[arg(long)]
    pub(crate) demo: bool,
    /// Stop after the demonstration.
    #[arg(long, requires = "demo")]
    pub(crate) once: bool,
    /// The demonstration's question.
    #[arg(requires = "demo")]
    pub(crate) question: Option<String>,
}

/// `autoact down`
#[derive(Debug, ClapArgs)]
pub(crate) struct DownOptions {
    /// The state directory given to `up`.
    #[arg(long, env = "AUTOACT_STATE_DIR", default_value = DEFAULT_STATE_DIR)]
    pub(crate) state_dir: PathBuf,
}

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

/// What is waited for at most; longer is a mistyped unit.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A point in time.
fn timestamp(text: &str) -> Result<prost_types::Timestamp, String> {
    text.trim().parse().map_err(|_| "expected RFC 3339, such as `2026-11-22T07:30:00Z` or `2026-11-22T08:30:00+01:00`".to_owned())
}

/// A time, or a plain number of seconds.
fn patience(text: &str) -> Result<Duration, String> {
    let seconds = || text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = autoact_config::duration::parse(text).ok().or_else(seconds).filter(|time| *time <= LONGEST);
    time.ok_or_else(|| "expected seconds, or a time such as `500ms`, `30s` or `5m`, at most a week".to_owned())
}

/// The same, and not nothing.
fn time(text: &str) -> Result<Duration, String> {
    patience(text).and_then(|time| if time.is_zero() { Err("expected more than nothing".to_owned()) } else { Ok(time) })
}

/// `autoact tasks`
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// The latest tasks, newest first.
    List {
        /// The earliest tasks that are still there, oldest first.
        #[arg(long)]
        oldest_first: bool,
        /// Only tasks in this state.
        #[arg(long, value_enum)]
        state: Option<ListedState>,
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// One task with its whole trajectory.
    Show {
        /// The task's id.
        id: String,
        /// A JSON object for programs.
        #[arg(long)]
        json: bool,
    },
    /// What a task's tools returned for people: tables, images, files.
    Artifacts {
        /// The task's id.
        id: String,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
    /// The bytes of one artifact.
    Artifact {
        /// The task's id.
        id: String,
        /// The artifact's name.
        name: String,
        /// The step it belongs to, where several have one of this name; the last one otherwise.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        step: Option<u32>,
        /// Where to; `-` for standard output. Without it, a file of the artifact's name here.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// End a task; its best answer so far stays, unapproved.
    Cancel {
        /// The task's id.
        id: String,
    },
    /// Stop a task for a while: nothing is begun until it is resumed, and the time does not count.
    Pause {
        /// The task's id.
        id: String,
        /// Why, for those who look at it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
    /// Let a paused task go on.
    Resume {
        /// The task's id.
        id: String,
    },
    /// Answer the question of a task that waits for you.
    Answer {
        /// The task's id.
        id: String,
        /// The answer.
        text: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
    },
    /// Let a task run the action that waits for approval. Needs the role `operate`.
    Approve {
        /// The task's id.
        id: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
        /// Approve all later calls of the tool in this task too.
        #[arg(long)]
        for_task: bool,
    },
    /// Do not let a task run the action that waits for approval. Needs the role `operate`.
    Refuse {
        /// The task's id.
        id: String,
        /// Why: the group reads it.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// The step that asks; without it, the one that asks now.
        #[arg(long)]
        step: Option<u32>,
    },
    /// A new task that shares the history of another up to a step, and makes that step anew.
    Retry {
        /// The task's id.
        id: String,
        /// The first step that is made anew.
        #[arg(long, value_name = "STEP", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        from_step: u32,
        /// The new task's id, chosen by you.
        #[arg(long, value_name = "ID")]
        new_id: Option<String>,
        /// Planning loops at most, the shared ones included.
        #[arg(long)]
        max_steps: Option<u32>,
        /// How long the group may take: seconds, or a time such as `90s` or `2m`.
        #[arg(long, value_name = "TIME", value_parser = time)]
        timeout: Option<Duration>,
        /// Another seed of the sampling than the first task's.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Remove an ended task for good, and what memory knows of it. Needs the role `operate`.
    Delete {
        /// The task's id.
        id: String,
    },
}

/// Where the tasks of a list stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ListedState {
    /// Not taken up yet.
    Submitted,
    /// A gateway works at it.
    Running,
    /// A client has stopped it for a while.
    Paused,
    /// It waits for an answer or an approval.
    InputRequired,
    /// It has ended.
    Finished,
}

/// Which actions of a task wait for a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Approvals {
    /// Those of tools that say so.
    Tools,
    /// Also those with an effect, once the group has read what a tool returned.
    Untrusted,
    /// All that are not read-only.
    Effects,
}

/// `autoact eval`
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct EvalOptions {
    #[command(flatten)]
    pub(crate) group: GroupOptions,
    /// `held-out`, `dev`, `phrasings`, `plain`, `typed`, or a JSONL file with `question`, `answer` and `kind`.
    #[arg(long, default_value = "held-out")]
    pub(crate) set: String,
    /// Swap the facts of the atlas first: the group has to follow the corpus, not its memory.
    #[arg(long)]
    pub(crate) counterfactual: bool,
    /// Ask a running group at `--gateway` instead of starting one.
    #[arg(long, conflicts_with = "counterfactual")]
    pub(crate) running: bool,
    /// Only the first so many questions.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// Questions in flight at once.
    #[arg(long, default_value_t = 4)]
    pub(crate) concurrency: usize,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Seed of the sampling and of the counterfactual.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write every question with its answer and trajectory to this JSONL file.
    #[arg(long)]
    pub(crate) output: Option<PathBuf>,
    /// A JSON report for programs.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) calibrate: CalibrateOptions,
    #[command(flatten)]
    pub(crate) compare: CompareOptions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_units() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(patience("0s"), Ok(Duration::ZERO));
        for wrong in ["", "-1", "nan", "inf", "1e300", "soon", "1000h", "5 fortnights"] {
            assert!(patience(wrong).is_err(), "{wrong}");
        }
        assert!(time("0").is_err() && time("0s").is_err());
    }

    #[test]
    fn points_in_time_have_an_offset() {
        assert_eq!(timestamp("2026-11-22T08:30:00+01:00"), timestamp("2026-11-22T07:30:00Z"));
        for wrong in ["", "now", "tomorrow at nine", "2026-13-01T00:00:00Z"] {
            assert!(timestamp(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_words_of_the_command_line_are_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
