//! The settings that only tool-agent has.

use std::path::PathBuf;

use autoact_agent::OwnSettings;
use autoact_config::Check;
use serde::{Deserialize, Serialize};

/// The tool library of the atlas.
const DEFAULT_TOOLS: &str = "corpora/atlas/tools.toml";
/// The pages that the built-in tools read.
const DEFAULT_CORPUS: &str = "corpora/atlas/pages.jsonl";
/// The memory service's default address.
const DEFAULT_MEMORY: &str = "http://127.0.0.1:7404";
/// Tools that run at once: they hold a thread each, and the built-in ones need milliseconds.
const DEFAULT_MAX_RUNS: usize = 16;
/// Outcomes of tools with an effect that are remembered: hours of work, and a few megabytes.
const DEFAULT_REMEMBERED: usize = 4096;

/// What the section `[tool-agent]` has beside [`autoact_agent::AgentConfig`]'s keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSettings {
    /// The tool library: a `tools.toml`.
    pub tools: PathBuf,
    /// A second library whose entries are added; it need not exist. Empty: none.
    pub own_tools: PathBuf,
    /// The pages the built-in tools read: JSON lines of `title` and `text`. Empty: none, and only
    /// tasks that name collections have pages.
    pub corpus: PathBuf,
    /// Where the memory service is, which keeps the collections that tasks name; empty: tasks that
    /// name one are told that there is none.
    pub memory: String,
    /// Tools that may run at once.
    pub max_runs: usize,
    /// Steps with an effect whose outcome is remembered in this process.
    pub remembered: usize,
    /// Keep receipts of effects on the bus, so that no step runs twice whatever crashes. Without
    /// them only the memory of this process knows what ran.
    pub receipts: bool,
}

impl Default for ToolSettings {
    fn default() -> Self {
        ToolSettings {
            tools: DEFAULT_TOOLS.into(),
            own_tools: PathBuf::new(),
            corpus: DEFAULT_CORPUS.into(),
            memory: DEFAULT_MEMORY.to_owned(),
            max_runs: DEFAULT_MAX_RUNS,
            remembered: DEFAULT_REMEMBERED,
            receipts: true,
        }
    }
}

impl OwnSettings for ToolSettings {
    fn validate(&self, check: &mut Check<'_>) {
        check.require(self.max_runs > 0 && self.max_runs <= 512, "max_runs", "between 1 and 512", self.max_runs);
        let address = autoact_wire::client::is_address(&self.memory);
        check.require(self.memory.is_empty() || address, "memory", "an address such as `http://127.0.0.1:7404`", &self.memory);
        check.require(self.remembered > 0, "remembered", "at least 1", self.remembered);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use autoact_config::{ConfigErrors, Loaded, Sources, load};

    use super::*;
    use crate::ToolAgentConfig;

    fn loaded(flags: &[(&str, &str)], env: &[(&str, &str)]) -> Result<Loaded<ToolAgentConfig>, ConfigErrors> {
        let flags = flags.iter().map(|(key, value)| ((*key).to_owned(), (*key).to_owned(), (*value).to_owned())).collect();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
        load(&Sources { file: None, env, flags })
    }

    #[test]
    fn its_own_keys_stand_beside_those_of_all_agents() {
        let env = [("AUTOACT_CORPUS", "pages.jsonl"), ("AUTOACT_TOOL_AGENT__MAX_RUNS", "3")];
        let config = loaded(&[("adapter", ""), ("engine.queue", "5")], &env).unwrap().service;
        assert_eq!((config.own.corpus, config.own.max_runs), ("pages.jsonl".into(), 3));
        assert_eq!((config.adapter, config.engine.queue), (PathBuf::new(), 5));
        assert_eq!((config.model, config.own.remembered), ("models/stem".into(), DEFAULT_REMEMBERED));
    }

    #[test]
    fn what_is_no_key_and_what_is_out_of_range_is_refused() {
        let mistakes = |flags: &[(&str, &str)]| loaded(flags, &[]).unwrap_err().mistakes;
        let [unknown] = &mistakes(&[("corpora", "x")])[..] else { panic!("one mistake") };
        assert!(unknown.message.contains("`corpus`") && unknown.message.contains("`model`"), "{unknown}");
        assert_eq!(mistakes(&[("max_runs", "0"), ("remembered", "many"), ("engine.queue", "0")]).len(), 3);
    }

    #[test]
    fn the_documentation_names_every_key() {
        let docs = include_str!("../../../docs/operations.md");
        let config = serde_json::to_value(ToolAgentConfig::default()).unwrap();
        let named = |key: &String| docs.contains(&format!("| `{key}")) || docs.contains(&format!("| `{key}.*`"));
        let missing: Vec<&String> = config.as_object().unwrap().keys().filter(|key| !named(key)).collect();
        assert_eq!(missing, [""; 0], "not in docs/operations.md");
    }
}
