//! Options of the engine.

use std::path::PathBuf;

use autoact_kernels::{Format, KvFormat};

use crate::draft::MOST_DRAFTED;

/// Options of an [`Engine`](crate::Engine).
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The name that it reports; `None`: the directory's name.
    pub name: Option<String>,
    /// Maximum number of waiting requests; further ones are refused as overloaded.
    pub queue: usize,
    /// Number of compute threads, including the engine's own. 0: one for a small model, and a second
    /// while the machine has a core to spare; else one per core.
    pub threads: usize,
    /// Maximum number of sequences in a batch. A pass reads the weights once for the whole batch.
    pub batch: usize,
    /// The number format of the weights. `None`: as in the files, which are used memory-mapped.
    pub weights: Option<Format>,
    /// The number format of keys and values. `None`: bf16, but f32 if the weights are in f32.
    pub kv: Option<KvFormat>,
    /// Maximum size of the prefix cache in bytes; 0: no prefix cache.
    pub cache_bytes: usize,
    /// Maximum number of drafted tokens in a pass, at most 16; 0: no drafts. It does not change
    /// outputs.
    pub draft: usize,
    /// Directory on tmpfs for the shared prefix cache, which holds keys and values of the base.
    pub shared_prefixes: Option<PathBuf>,
    /// Maximum number of tokens per sequence, if it is to be lower than the model's limit.
    pub context_length: Option<usize>,
}

/// At one second per request, the last one waits for the longest acceptable time.
const DEFAULT_QUEUE: usize = 32;
/// More rows in a pass hardly reduce the cost of a row.
const DEFAULT_BATCH: usize = 16;
/// With the token before them, drafts fill the rows of the kernels' widest tile; one more row would
/// need a second tile.
const DEFAULT_DRAFT: usize = 5;
/// Dozens of trajectories of a small model, or two of a 7B model at 1,000 tokens.
const DEFAULT_CACHE_BYTES: usize = 1 << 30;

impl EngineOptions {
    /// Maximum value of `draft`.
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
            kv: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            draft: DEFAULT_DRAFT,
            shared_prefixes: None,
            context_length: None,
        }
    }
}
