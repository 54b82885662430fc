//! The settings of an agent: one set of keys for all three, and what only one of them has.

use std::path::PathBuf;

use autoact_config::{Check, Common, Section};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::config::EngineConfig;
use crate::load::Sources;
use crate::remote::BackendConfig;
use crate::role::{AgentRole, OwnSettings as _};

/// The bundled base model.
const DEFAULT_MODEL: &str = "models/stem";
/// From an agent's gRPC port to that of `/metrics`, `/livez` and `/readyz`.
const METRICS_OFFSET: u16 = 100;

/// The section of an agent in a configuration file, such as `[plan-agent]`.
#[derive(Debug, Clone, Serialize)]
#[serde(bound = "")]
pub struct AgentConfig<R: AgentRole> {
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
    /// What only this agent has, beside the others in the file.
    #[serde(flatten)]
    pub own: R::Settings,
}

impl<R: AgentRole> Default for AgentConfig<R> {
    fn default() -> Self {
        AgentConfig {
            model: DEFAULT_MODEL.into(),
            adapter: R::DEFAULT_ADAPTER.into(),
            adapter_registry: PathBuf::new(),
            adapter_announcements: false,
            engine: EngineConfig::default(),
            backend: BackendConfig::default(),
            own: R::Settings::default(),
        }
    }
}

/// By hand, because serde cannot both flatten and refuse unknown keys.
impl<'de, R: AgentRole> Deserialize<'de> for AgentConfig<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Given {
            model: Option<PathBuf>,
            adapter: Option<PathBuf>,
            adapter_registry: PathBuf,
            adapter_announcements: bool,
            engine: EngineConfig,
            backend: BackendConfig,
            #[serde(flatten)]
            own: Map<String, Value>,
        }
        let given = Given::deserialize(deserializer)?;
        let defaults = AgentConfig::<R>::default();
        let keys = serde_json::to_value(&defaults).map_err(D::Error::custom)?;
        let known: Vec<&str> = keys.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        if let Some(unknown) = given.own.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(D::Error::custom(format!("unknown field `{unknown}`, expected one of `{}`", known.join("`, `"))));
        }
        Ok(AgentConfig {
            model: given.model.unwrap_or(defaults.model),
            adapter: given.adapter.unwrap_or(defaults.adapter),
            adapter_registry: given.adapter_registry,
            adapter_announcements: given.adapter_announcements,
            engine: given.engine,
            backend: given.backend,
            own: R::Settings::deserialize(Value::Object(given.own)).map_err(D::Error::custom)?,
        })
    }
}

impl<R: AgentRole> Section for AgentConfig<R> {
    const NAME: &'static str = R::NAME;

    fn common() -> Common {
        Common::on_ports(R::PORT, R::PORT + METRICS_OFFSET)
    }

    fn validate(&self, _: &Common, check: &mut Check<'_>) {
        self.engine.validate(check);
        self.backend.validate(&self.adapter, &self.adapter_registry, check);
        self.own.validate(check);
    }
}

impl<R: AgentRole> AgentConfig<R> {
    /// Where the model comes from.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources {
            model: &self.model,
            adapter: &self.adapter,
            registry: &self.adapter_registry,
            announcements: self.adapter_announcements,
            backend: &self.backend,
        }
    }
}
