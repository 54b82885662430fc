//! How an engine runs.

use std::path::PathBuf;

use autoact_kernels::Format;

use crate::draft::MOST_DRAFTED;

/// How an [`Engine`](crate::Engine) runs.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The name it reports; `None` = the directory's.
    pub name: Option<String>,
    /// Requests that may wait; one more is refused as overloaded.
    pub queue: usize,
    /// Threads that compute, the engine's own included; 0: one for a small model, as many as there are cores for others.
    pub threads: usize,
    /// Requests that run at once; each of their tokens' passes reads the weights once for all.
    pub batch: usize,
    /// What the weights are computed in; `None` = as in the files, which costs no memory: they are read where they are mapped.
    pub weights: Option<Format>,
    /// Bytes of keys and values kept for prompts that begin like an earlier one; 0 keeps none.
    pub cache_bytes: usize,
    /// Most tokens that a pass reads on the chance that they come next, at most 16; 0: none. Changes no output.
    pub draft: usize,
    /// A directory in memory through which processes share keys and values of what the base has read.
    pub shared_prefixes: Option<PathBuf>,
    /// Most tokens per sequence, where that should be less than the model's own limit.
    pub context_length: Option<usize>,
}

/// Requests that may wait: at a second each, the last one has waited as long as anyone should.
const DEFAULT_QUEUE: usize = 32;
/// More rows than this cost about as much one by one.
const DEFAULT_BATCH: usize = 16;
/// Tokens drafted: with the token before them as many rows as the kernels' widest tile takes, and the next one costs the most.
const DEFAULT_DRAFT: usize = 5;
/// Dozens of trajectories of a small model, or two of a 7B model at 1,000 tokens.
const DEFAULT_CACHE_BYTES: usize = 1 << 30;

impl EngineOptions {
    /// The most that `draft` is taken for.
    pub const MOST_DRAFTED: usize = MOST_DRAFTED;
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            name: None,
            queue: DEFAULT_QUEUE,
            threads: 0,
            batch: DEFAULT_BATCH,
            weights: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            draft: DEFAULT_DRAFT,
            shared_prefixes: None,
            context_length: None,
        }
    }
}
