//! LoRA adapters in PEFT's format: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! This crate reads and checks them; it knows nothing of tensors on devices. The engine (`autoact-model`) turns
//! a [`LoraPair`] into two small matrices beside the base's own, and never merges it: the base stays shared.
//!
//! An adapter either loads completely or not at all: an unknown tensor, a missing half, a rank that contradicts
//! the configuration, or an option that would change the result without our computing it, are errors.
//!
//! Format: <https://github.com/huggingface/peft/blob/main/docs/source/developer_guides/checkpoint.md>

mod adapter;
mod config;
mod error;

pub use adapter::{Adapter, BASE_DIGEST_KEY, BaseLayout, CONFIG_FILE, LoraPair, Matrix, WEIGHTS_FILE};
pub use config::{AdapterConfig, Layers, TargetModules};
pub use error::AdapterError;
