//! Files of a Hugging Face checkpoint: `config.json` and safetensors.
//!
//! [`ModelConfig`] is the one reader of `config.json`: the engine and the trainer both use it.
//! Files are written whole or not at all, and the same content gives the same bytes.

mod config;
mod error;
mod tensors;

pub use config::{CONFIG_FILE, Family, Llama3Scaling, ModelConfig, RopeScaling, TokenIds};
pub use error::{ConfigError, FileError};
pub use tensors::{SaveDtype, Tensor, decode, encode, make_dir, parse, read, write_tensors, write_whole};
