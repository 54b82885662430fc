//! What the engine's handle and its thread both use.

use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::{AdapterVersion, BoundAdapter, Tokenizer, Transformer};

/// An adapter bound to the engine's model.
#[derive(Debug)]
pub(crate) struct LoadedAdapter {
    pub(crate) version: AdapterVersion,
    pub(crate) bound: BoundAdapter,
}

/// The model, and how busy the thread is.
pub(crate) struct EngineState {
    pub(crate) name: String,
    /// What adapters must have been trained on.
    pub(crate) base_digest: String,
    pub(crate) model: Transformer,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) context_length: usize,
    /// Requests waiting or running.
    pub(crate) waiting: AtomicUsize,
    /// Mean time of a request, in microseconds, recent ones weighing more.
    pub(crate) mean_micros: AtomicU64,
}
