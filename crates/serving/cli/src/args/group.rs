//! `autoact up` and `autoact down`: their words, and those of everything that runs a local group.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::values::time;
use crate::up::model::ModelOptions;

/// Where a local group keeps its files.
pub(crate) const DEFAULT_STATE_DIR: &str = ".quickstart/run";
/// The library that comes with the atlas.
pub(super) const DEFAULT_TOOLS: &str = "corpora/atlas/tools.toml";

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
