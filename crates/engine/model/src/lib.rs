//! The model engine: decoder-only models of the Llama family, with one LoRA adapter per request,
//! constrained decoding, and one interface ([`Backend`]) for everything that completes prompts.
//!
//! [`ModelDir`] reads a Hugging Face directory; [`Digests`] remembers what its weights hash to. [`Transformer`] computes logits over memory-mapped
//! weights. [`Engine`] runs a transformer on its own thread and serves requests from async code
//! without blocking it. It batches requests continuously (`worker`), shares the KV blocks of common
//! prefixes (`radix`), and uses speculative decoding by prompt lookup (`draft`). A request gets the
//! same bits alone and in a batch.

mod backend;
mod bpe;
mod control;
mod convert;
mod detokenize;
mod digests;
mod dir;
mod draft;
mod engine;
mod error;
mod fairness;
mod grammar;
mod known;
mod kv;
mod linear;
mod map;
mod narrowed;
mod options;
mod places;
mod prompt;
mod radix;
mod rope;
mod run_delay;
mod sampler;
mod schedule;
mod scores;
mod sequence;
mod shared;
mod state;
mod stream;
mod template;
mod tokenizer;
mod transformer;
mod weights;
mod word_bias;
mod word_limit;
mod words;
mod worker;

pub use autoact_checkpoint::{Family, Llama3Scaling, ModelConfig, RopeScaling};
pub use autoact_kernels::{Format, KvFormat, Team};
pub use backend::{
    AdapterVersion, Backend, BackendInfo, FinishReason, GenerateError, GenerateEvent, GenerateRequest, Generated, Owner,
    estimated_prompt_tokens, estimated_tokens,
};
pub use control::is_control_token;
pub use convert::{Conversion, convert};
pub use digests::Digests;
pub use dir::ModelDir;
pub use engine::Engine;
pub use error::LoadError;
pub use fairness::{Fairness, OwnerId};
pub use grammar::Grammar;
pub use kv::KvCache;
pub use options::EngineOptions;
pub use places::Places;
pub use prompt::{Prompt, PromptRef};
pub use sampler::Sampling;
pub use scores::{Odds, Scored, Scores, TokenScore};
pub use stream::{GenerateSender, GenerateStream};
pub use template::{ChatTemplate, Message};
pub use tokenizer::Tokenizer;
pub use transformer::{BoundAdapter, Item, Logits, Scratch, Transformer};
pub use word_bias::WordBias;
pub use word_limit::WordLimit;
