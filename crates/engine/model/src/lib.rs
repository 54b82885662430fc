//! The model engine: a decoder-only model of the Llama family, with LoRA adapters chosen per request, grammar-constrained
//! decoding, and one interface ([`Backend`]) for everything that answers prompts.
//!
//! [`ModelDir`] reads a Hugging Face directory, [`Transformer`] computes logits over the mapped weights, [`Engine`] owns a
//! transformer on a thread of its own and serves requests from async code without ever blocking it. Requests run together:
//! they join and leave between two passes (`worker`), share what their prompts have in common (`radix`), are read ahead of
//! themselves where what comes next has come before (`draft`), and get the same bits alone or in a crowd.

mod backend;
mod control;
mod convert;
mod detokenize;
mod dir;
mod draft;
mod engine;
mod error;
mod grammar;
mod known;
mod kv;
mod linear;
mod map;
mod numbers;
mod options;
mod prompt;
mod radix;
mod rope;
mod sampler;
mod schedule;
mod sequence;
mod shared;
mod state;
mod stream;
mod template;
mod tokenizer;
mod transformer;
mod weights;
mod word_bias;
mod worker;

pub use autoact_checkpoint::{Family, Llama3Scaling, ModelConfig, RopeScaling};
pub use autoact_kernels::{Format, Team};
pub use backend::{AdapterVersion, Backend, BackendInfo, FinishReason, GenerateError, GenerateEvent, GenerateRequest, Generated};
pub use control::is_control_token;
pub use convert::{Conversion, convert};
pub use dir::ModelDir;
pub use engine::Engine;
pub use error::LoadError;
pub use grammar::Grammar;
pub use kv::KvCache;
pub use options::EngineOptions;
pub use prompt::{Prompt, PromptRef};
pub use sampler::Sampling;
pub use stream::{GenerateSender, GenerateStream};
pub use template::{ChatTemplate, Message};
pub use tokenizer::Tokenizer;
pub use transformer::{BoundAdapter, Item, Logits, Scratch, Transformer};
pub use word_bias::WordBias;
