//! The model engine: a decoder-only model of the Llama family on candle, with LoRA adapters chosen per request,
//! grammar-constrained decoding, and one interface ([`Backend`]) for everything that answers prompts.
//!
//! [`ModelDir`] reads a Hugging Face directory, [`Transformer`] computes logits, [`Engine`] owns a transformer on a
//! thread of its own and serves requests from async code without ever blocking it.

mod backend;
mod cache;
mod config;
mod detokenize;
mod dir;
mod engine;
mod error;
mod grammar;
mod kernels;
mod linear;
mod map;
mod prefix;
mod rope;
mod sampler;
mod sequence;
mod stream;
mod template;
mod tokenizer;
mod transformer;
mod weights;
mod worker;

pub use backend::{AdapterVersion, Backend, BackendInfo, FinishReason, GenerateError, GenerateEvent, GenerateRequest, Generated};
pub use cache::KvCache;
pub use config::{Family, Llama3Scaling, ModelConfig, RopeScaling};
pub use dir::ModelDir;
pub use engine::{Engine, EngineOptions};
pub use error::LoadError;
pub use grammar::Grammar;
pub use sampler::Sampling;
pub use stream::{GenerateSender, GenerateStream};
pub use template::{ChatTemplate, Message};
pub use tokenizer::Tokenizer;
pub use transformer::{BoundAdapter, Logits, Transformer};
