//! `autoact tools`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::group::{DEFAULT_STATE_DIR, DEFAULT_TOOLS};
use super::values::timestamp;

/// `autoact tools`
#[derive(Debug, ClapArgs)]
pub(crate) struct ToolsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
    /// JSON for programs, with the whole schemas.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What is done with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// The tools of a running group (also without a subcommand).
    List,
    /// One tool of a running group.
    Show {
        /// Its name.
        name: String,
    },
    /// The tools that a question would be given from a large library, with their scores.
    Choose {
        /// The question.
        question: String,
    },
    /// Run a tool of a running group, and print its observation.
    Call(CallOptions),
    /// The ready-made tools that `add kind` adds.
    Kinds,
    /// Read the library as tool-agent does: mistakes, sets out of service, what was left out.
    Check(FilesOptions),
    /// Add a tool or a set of tools to your own library; a running group takes it at once.
    #[command(subcommand)]
    Add(Box<AddCommand>),
    /// Accept the definitions of a set as they are now.
    Accept {
        /// The set's name.
        name: String,
        #[command(flatten)]
        files: FilesOptions,
    },
    /// Take a tool or a set out of your own library.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        files: FilesOptions,
    },
}

/// `autoact tools call`
#[derive(Debug, ClapArgs)]
pub(crate) struct CallOptions {
    /// The tool's name.
    pub(crate) name: String,
    /// Its input: a line, or a JSON object for a tool with several or typed arguments.
    #[arg(default_value = "")]
    pub(crate) input: String,
    /// Where tool-agent listens.
    #[arg(long, default_value = "127.0.0.1:7402")]
    pub(crate) tool_agent: String,
    /// Whose call it is.
    #[arg(long, default_value = "default")]
    pub(crate) tenant: autoact_trajectory::Tenant,
    /// What `now` and `today` are: RFC 3339, such as `2026-11-22T07:30:00Z`. Without it, the time of
    /// this machine.
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub(crate) now: Option<prost_types::Timestamp>,
    /// Your time zone: a name of the IANA database, such as `Europe/Paris`. Without it, UTC.
    #[arg(long, value_name = "ZONE", default_value = "")]
    pub(crate) time_zone: String,
}

/// The files of a library.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct FilesOptions {
    /// The tool library. Without it, that of the group in the state directory; where there is none,
    /// `corpora/atlas/tools.toml`.
    #[arg(long)]
    pub(crate) tools: Option<PathBuf>,
    /// Your own library, whose entries are added. Without it, `tools.toml` in the state directory.
    #[arg(long)]
    pub(crate) own_tools: Option<PathBuf>,
    /// The state directory given to `up`.
    #[arg(long, env = "AUTOACT_STATE_DIR", default_value = DEFAULT_STATE_DIR)]
    pub(crate) state_dir: PathBuf,
}

impl FilesOptions {
    /// The library where nothing says which.
    pub(crate) const LIBRARY: &str = DEFAULT_TOOLS;
}

/// What can be added.
#[derive(Debug, Subcommand)]
pub(crate) enum AddCommand {
    /// The tools of an MCP server: a program, or a URL.
    Mcp {
        /// The set's name. Without it, the program's or the host's.
        #[arg(long)]
        name: Option<String>,
        /// The program with its arguments, in quotes.
        #[arg(long, conflicts_with = "url", required_unless_present = "url")]
        command: Option<String>,
        /// The server's URL (streamable HTTP).
        #[arg(long)]
        url: Option<String>,
        /// A variable of the program's environment.
        #[arg(long = "env", value_name = "NAME=VALUE", conflicts_with = "url")]
        env: Vec<String>,
        /// A variable of the program that is a secret: kept in tool-agent's variable, or in a file.
        #[arg(long = "secret", value_name = "NAME=env:VARIABLE|file:PATH", conflicts_with = "url")]
        secrets: Vec<String>,
        /// Take the server's word on what its tools do to the world.
        #[arg(long)]
        trusted: bool,
        /// Trust the program: do not confine it. It then has tool-agent's files and network.
        #[arg(long, conflicts_with = "url")]
        unconfined: bool,
        #[command(flatten)]
        set: SetOptions,
        #[command(flatten)]
        common: CommonOptions,
    },
    /// The operations of an OpenAPI document (2.0, 3.0 or 3.1).
    Openapi {
        /// A file or a URL.
        source: String,
        /// The set's name. Without it, the file's.
        #[arg(long)]
        name: Option<String>,
        /// Where the operations are, instead of the document's servers.
        #[arg(long, value_name = "URL")]
        server: Option<String>,
        /// A secret of the document's security schemes.
        #[arg(long = "secret", value_name = "SCHEME=env:VARIABLE|file:PATH")]
        secrets: Vec<String>,
        #[command(flatten)]
        set: SetOptions,
        #[command(flatten)]
        common: CommonOptions,
    },
    /// One HTTP request.
    Http {
        /// The tool's name.
        name: String,
        /// What it does, one sentence for the model.
        #[arg(long)]
        definition: String,
        /// The method.
        #[arg(long, default_value = "GET")]
        method: String,
        /// The URL; `{name}` in its path is an argument.
        #[arg(long)]
        url: String,
        /// The arguments as a JSON schema. Without it, the places of the URL, all strings.
        #[arg(long)]
        schema: Option<String>,
        #[command(flatten)]
        request: RequestOptions,
        #[command(flatten)]
        common: CommonOptions,
    },
    /// A ready-made tool: `autoact tools kinds` lists them.
    Kind {
        /// Its kind.
        kind: String,
        /// The tool's name. Without it, the kind's usual one.
        #[arg(long)]
        name: Option<String>,
        /// A key of its entry; a key that comes again makes a list.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        common: CommonOptions,
    },
    /// A program.
    Command {
        /// The tool's name.
        name: String,
        /// What it does, one sentence for the model.
        #[arg(long)]
        definition: String,
        /// What it does to the world: `read_only`, `idempotent` or `side_effect`.
        #[arg(long)]
        effect: String,
        /// How it is called, such as `Weather[city]`. Without it, `Name[input]`.
        #[arg(long, conflicts_with = "schema")]
        usage: Option<String>,
        /// The arguments as a JSON schema.
        #[arg(long)]
        schema: Option<String>,
        /// Trust it: do not confine it. It then has tool-agent's files and network.
        #[arg(long)]
        unconfined: bool,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        program: Vec<String>,
        #[command(flatten)]
        common: CommonOptions,
    },
}

/// Options of sets.
#[derive(Debug, ClapArgs)]
pub(crate) struct SetOptions {
    /// Stands before the name of each tool.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Only these tools (comma-separated names).
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) request: RequestOptions,
}

/// Options of everything that makes requests.
#[derive(Debug, ClapArgs)]
pub(crate) struct RequestOptions {
    /// A secret in each request: `env:VARIABLE` or `file:PATH`, sent as a bearer token.
    #[arg(long, value_name = "SECRET")]
    pub(crate) bearer: Option<String>,
    /// Allow addresses of your own networks.
    #[arg(long)]
    pub(crate) allow_private: bool,
}

/// Options of everything that is added.
#[derive(Debug, ClapArgs)]
pub(crate) struct CommonOptions {
    /// The time limit of a call, such as `10s`.
    #[arg(long)]
    pub(crate) timeout: Option<String>,
    #[command(flatten)]
    pub(crate) files: FilesOptions,
}
