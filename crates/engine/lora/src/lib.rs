//! LoRA adapters in PEFT's format: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! This crate reads, checks and writes adapters; it does not compute with them. The engine
//! (`autoact-model`) turns a [`LoraPair`] into two small matrices beside the base model's weights.
//! It never merges them, so the base stays shared.
//!
//! An adapter is loaded completely or not at all. These are errors: an unknown tensor, a missing A
//! or B, a rank that contradicts the configuration, or an option that would change the result and
//! is not implemented.
//!
//! Format:
//! <https://github.com/huggingface/peft/blob/main/docs/source/developer_guides/checkpoint.md>

mod adapter;
mod config;
mod error;

pub use adapter::{Adapter, BASE_DIGEST_KEY, BaseLayout, CONFIG_FILE, Factor, LoraPair, Matrix, WEIGHTS_FILE, save, tensor_name};
pub use config::{AdapterConfig, Layers, TargetModules};
pub use error::AdapterError;
