//! The state shared by the engine's handle and its thread.

use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::{AdapterVersion, BoundAdapter, Tokenizer, Transformer};

/// An adapter bound to the engine's model.
#[derive(Debug)]
pub(crate) struct LoadedAdapter {
    pub(crate) version: AdapterVersion,
    pub(crate) bound: BoundAdapter,
}

/// The model, and the load of the engine.
pub(crate) struct EngineState {
    pub(crate) name: String,
    /// The digest of the base that adapters must name.
    pub(crate) base_digest: String,
    pub(crate) model: Transformer,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) context_length: usize,
    /// Number of waiting and running requests.
    pub(crate) waiting: AtomicUsize,
    /// Mean duration of a request in microseconds, as an exponential moving average.
    pub(crate) mean_micros: AtomicU64,
}
