//! The command line's words: the options of every command and the list of commands here, those of
//! each family in a module of its own.

mod ask;
mod certs;
mod corpus;
mod eval;
mod group;
mod memory;
mod nats;
mod tasks;
mod tools;
mod values;

use std::path::PathBuf;

use autoact_trajectory::Tenant;
use clap::{Args as ClapArgs, Parser, Subcommand};

pub(crate) use self::ask::{Approvals, AskOptions, ContextOptions, WatchOptions, next_attempt};
pub(crate) use self::certs::{CertsCommand, CertsOptions};
pub(crate) use self::corpus::{CorpusCommand, ImportOptions, StoreOptions};
pub(crate) use self::eval::{EvalOptions, Protocol};
pub(crate) use self::group::{DEFAULT_STATE_DIR, DownOptions, GroupOptions, UpOptions};
pub(crate) use self::memory::{MemoryCommand, MemoryKind, MemoryOptions};
pub(crate) use self::nats::{ConfigOptions, LoginOptions, NatsCommand};
pub(crate) use self::tasks::{ListedState, TasksCommand};
pub(crate) use self::tools::{AddCommand, CallOptions, CommonOptions, FilesOptions, ToolsCommand, ToolsOptions};
use crate::adapters::AdaptersOptions;
use crate::audit::AuditOptions;
use crate::backup::{BackupOptions, RestoreOptions};
use crate::learn::LearnArgs;
use crate::load::LoadOptions;
use crate::migrate::MigrateOptions;
use crate::model::ModelCommand;
use crate::purge::PurgeOptions;
use crate::token::TokenCommand;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_command_line_are_consistent() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }
}
