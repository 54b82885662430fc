//! The settings of tool-agent.

use std::path::PathBuf;

use autoact_agent::{BackendConfig, EngineConfig};
use autoact_config::{Check, Common, Section};
use serde::{Deserialize, Serialize};

/// The port of the gRPC server.
pub const PORT: u16 = 7402;
/// The port of `/metrics`, `/livez` and `/readyz`.
pub const METRICS_PORT: u16 = 7502;
/// The bundled base model.
pub const DEFAULT_MODEL: &str = "models/stem";
/// Its adapter for this agent.
pub const DEFAULT_ADAPTER: &str = "models/stem/adapters/tool";
/// The tool library of the atlas.
pub const DEFAULT_TOOLS: &str = "corpora/atlas/tools.toml";
/// The pages that the built-in tools read.
pub const DEFAULT_CORPUS: &str = "corpora/atlas/pages.jsonl";
/// Tools that run at once: they hold a thread each, and the built-in ones need milliseconds.
const DEFAULT_MAX_RUNS: usize = 16;
/// Outcomes of tools with an effect that are remembered: hours of work, and a few megabytes.
const DEFAULT_REMEMBERED: usize = 4096;

/// The section `[tool-agent]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolAgentConfig {
    /// The base model: a Hugging Face directory.
    pub model: PathBuf,
    /// The LoRA adapter: a PEFT directory; empty: the base speaks.
    pub adapter: PathBuf,
    /// The adapter registry whose current version speaks instead, and is followed; empty: none.
    pub adapter_registry: PathBuf,
    /// Listen on the bus for promotions, beside looking at the registry every second.
    pub adapter_announcements: bool,
    /// How the model runs.
    pub engine: EngineConfig,
    /// A server that runs it instead.
    pub backend: BackendConfig,
    /// The tool library: a `tools.toml`.
    pub tools: PathBuf,
    /// The pages the built-in tools read: JSON lines of `title` and `text`.
    pub corpus: PathBuf,
    /// Tools that may run at once.
    pub max_runs: usize,
    /// Steps with an effect whose outcome is remembered, so that none runs twice.
    pub remembered: usize,
}

impl Default for ToolAgentConfig {
    fn default() -> Self {
        ToolAgentConfig {
            model: DEFAULT_MODEL.into(),
            adapter: DEFAULT_ADAPTER.into(),
            adapter_registry: PathBuf::new(),
            adapter_announcements: false,
            engine: EngineConfig::default(),
            backend: BackendConfig::default(),
            tools: DEFAULT_TOOLS.into(),
            corpus: DEFAULT_CORPUS.into(),
            max_runs: DEFAULT_MAX_RUNS,
            remembered: DEFAULT_REMEMBERED,
        }
    }
}

impl Section for ToolAgentConfig {
    const NAME: &'static str = "tool-agent";

    fn common() -> Common {
        Common::on_ports(PORT, METRICS_PORT)
    }

    fn validate(&self, _: &Common, check: &mut Check<'_>) {
        self.engine.validate(check);
        self.backend.validate(&self.adapter, &self.adapter_registry, check);
        check.require(self.max_runs > 0 && self.max_runs <= 512, "max_runs", "between 1 and 512", self.max_runs);
        check.require(self.remembered > 0, "remembered", "at least 1", self.remembered);
    }
}
