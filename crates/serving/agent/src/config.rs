//! The settings of an agent's model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use autoact_config::Check;
use autoact_model::{Digests, EngineOptions, Format, KvFormat};
use autoact_service::Flag;
use serde::{Deserialize, Serialize};

/// Calls that wait beyond this many are refused: each would wait for seconds.
const DEFAULT_QUEUE: usize = 64;
/// Keys and values kept of earlier prompts. Three agents of the bundled model share a machine, each
/// with dozens of trajectories in this much.
const DEFAULT_CACHE_BYTES: usize = 256 * 1024 * 1024;
/// Longer replies would be documents.
const MOST_REPLY_TOKENS: usize = 8192;
/// A health check asks the model for a token when no call has worked for this long.
const DEFAULT_HEALTH_INTERVAL: Duration = Duration::from_secs(10);
/// Long enough for the first pass over large weights that a slow disk has yet to read.
const DEFAULT_STUCK_AFTER: Duration = Duration::from_secs(300);

/// How the engine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// Calls that may wait for the model; more are refused with a retry delay.
    pub queue: usize,
    /// Bytes of keys and values kept for prompts that begin like an earlier one; 0 keeps none.
    pub cache_bytes: usize,
    /// A directory in memory (tmpfs) through which agents on one machine share keys and values of
    /// what the base has read: the history, under activated adapters. Empty: each keeps its own.
    pub shared_prefixes: PathBuf,
    /// A directory in which digests of weights are remembered, so that only the first start reads
    /// all weights. Empty: the user's cache, `$XDG_CACHE_HOME/autoact/digests` or
    /// `$HOME/.cache/autoact/digests`.
    pub digests: PathBuf,
    /// Most tokens that a pass reads on the chance that they come next (drafts, speculative
    /// decoding), at most 16; 0: none. Replies are the same, to the bit.
    pub draft: usize,
    /// Calls that run at once: one pass over the weights serves them all.
    pub batch: usize,
    /// What the weights are computed in: `f32`, `bf16`, `q8_0`; empty: as in the files, which
    /// agents on one machine then share.
    pub weights: String,
    /// What keys and values are kept in: `bf16` or `f32`; empty: `bf16`, but `f32` if the weights
    /// are in `f32`. In `bf16`, `cache_bytes` and `shared_prefixes` hold twice as many tokens.
    pub kv: String,
    /// Threads that compute; 0: one for a small model and another while a core is idle, as many as
    /// there are cores for others.
    pub threads: usize,
    /// Most tokens of prompt and reply together; 0: the model's own limit.
    pub context_length: usize,
    /// Most tokens of a reply, for models that have more to say than a line: at most 8192; 0: 256,
    /// and 512 for arguments in JSON.
    pub reply_tokens: usize,
    /// Without a call that worked for this long, the model is asked for one token to see that it
    /// works.
    #[serde(with = "autoact_config::duration")]
    pub health_interval: Duration,
    /// A forward pass that takes longer than this never ends: `/livez` fails, so that the process is
    /// replaced.
    #[serde(with = "autoact_config::duration")]
    pub stuck_after: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            queue: DEFAULT_QUEUE,
            cache_bytes: DEFAULT_CACHE_BYTES,
            shared_prefixes: PathBuf::new(),
            digests: PathBuf::new(),
            draft: EngineOptions::default().draft,
            batch: EngineOptions::default().batch,
            weights: String::new(),
            kv: String::new(),
            threads: 0,
            context_length: 0,
            reply_tokens: 0,
            health_interval: DEFAULT_HEALTH_INTERVAL,
            stuck_after: DEFAULT_STUCK_AFTER,
        }
    }
}

impl EngineConfig {
    /// The engine's own options.
    pub(crate) fn options(&self) -> EngineOptions {
        let options = EngineOptions { queue: self.queue, cache_bytes: self.cache_bytes, ..EngineOptions::default() };
        EngineOptions {
            threads: self.threads,
            draft: self.draft,
            batch: self.batch,
            shared_prefixes: Some(self.shared_prefixes.clone()).filter(|dir| !dir.as_os_str().is_empty()),
            weights: self.weights.parse().ok(),
            kv: self.kv.parse().ok(),
            context_length: (self.context_length > 0).then_some(self.context_length),
            ..options
        }
    }

    /// Where digests of weights are remembered.
    pub(crate) fn digests(&self) -> Digests {
        if self.digests.as_os_str().is_empty() { Digests::of_user(|name| std::env::var_os(name)) } else { Digests::in_dir(&self.digests) }
    }

    /// What is wrong with it.
    pub fn validate(&self, check: &mut Check<'_>) {
        check.require(self.queue > 0, "engine.queue", "at least 1", self.queue);
        check.require(self.draft <= EngineOptions::MOST_DRAFTED, "engine.draft", "at most 16", self.draft);
        check.require(self.batch > 0, "engine.batch", "at least 1", self.batch);
        check.require(self.reply_tokens <= MOST_REPLY_TOKENS, "engine.reply_tokens", "at most 8192", self.reply_tokens);
        let known = self.weights.is_empty() || self.weights.parse::<Format>().is_ok();
        check.require(known, "engine.weights", "`f32`, `bf16`, `q8_0`, or nothing for what the files hold", &self.weights);
        let known = self.kv.is_empty() || self.kv.parse::<KvFormat>().is_ok();
        check.require(known, "engine.kv", "`bf16`, `f32`, or nothing for what fits the weights", &self.kv);
        let interval = autoact_config::duration::format(self.health_interval);
        check.require(self.health_interval >= Duration::from_secs(1), "engine.health_interval", "at least 1s", interval);
        let stuck = autoact_config::duration::format(self.stuck_after);
        check.require(self.stuck_after >= Duration::from_secs(1), "engine.stuck_after", "at least 1s", stuck);
    }
}

/// The flags every agent has.
pub(crate) fn engine_flags() -> Vec<Flag> {
    vec![
        Flag { name: "model", key: "model", value: "DIR", help: "Base model: a Hugging Face directory" },
        Flag { name: "adapter", key: "adapter", value: "DIR", help: "LoRA adapter: a PEFT directory; empty: the base speaks" },
        Flag {
            name: "adapter-registry",
            key: "adapter_registry",
            value: "DIR",
            help: "Speak with this registry's current version, and switch with it",
        },
        Flag {
            name: "backend",
            key: "backend.url",
            value: "URL",
            help: "Let an OpenAI-compatible server run the model: http://vllm:8000/v1",
        },
        Flag { name: "backend-api", key: "backend.api", value: "NAME", help: "How it is asked: completions or chat; default: found out" },
        Flag { name: "backend-model", key: "backend.model", value: "NAME", help: "The name it is served by; default: the agent's own" },
        Flag {
            name: "backend-dialect",
            key: "backend.dialect",
            value: "NAME",
            help: "How grammars are told: vllm, vllm_guided or openai; default: found out",
        },
        Flag { name: "backend-key-file", key: "backend.api_key_file", value: "FILE", help: "The file with the server's API key" },
        Flag { name: "weights", key: "engine.weights", value: "FORMAT", help: "Compute in f32, bf16 or q8_0; default: as in the files" },
        Flag { name: "queue", key: "engine.queue", value: "N", help: "Calls that may wait for the model" },
    ]
}

/// Whether an `adapter` setting means the base.
pub fn without_adapter(adapter: &Path) -> bool {
    adapter.as_os_str().is_empty()
}
