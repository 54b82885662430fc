//! The settings of plan-agent.

use std::path::PathBuf;

use autoact_agent::{BackendConfig, EngineConfig};
use autoact_config::{Check, Common, Section};
use serde::{Deserialize, Serialize};

/// The port of the gRPC server.
pub const PORT: u16 = 7401;
/// The port of `/metrics`, `/livez` and `/readyz`.
pub const METRICS_PORT: u16 = 7501;
/// The bundled base model.
pub const DEFAULT_MODEL: &str = "models/stem";
/// Its adapter for this agent.
pub const DEFAULT_ADAPTER: &str = "models/stem/adapters/plan";

/// The section `[plan-agent]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlanAgentConfig {
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
}

impl Default for PlanAgentConfig {
    fn default() -> Self {
        PlanAgentConfig {
            model: DEFAULT_MODEL.into(),
            adapter: DEFAULT_ADAPTER.into(),
            adapter_registry: PathBuf::new(),
            adapter_announcements: false,
            engine: EngineConfig::default(),
            backend: BackendConfig::default(),
        }
    }
}

impl Section for PlanAgentConfig {
    const NAME: &'static str = "plan-agent";

    fn common() -> Common {
        Common::on_ports(PORT, METRICS_PORT)
    }

    fn validate(&self, _: &Common, check: &mut Check<'_>) {
        self.engine.validate(check);
        self.backend.validate(&self.adapter, &self.adapter_registry, check);
    }
}
