//! Training of Llama-shaped language models on the CPU, without autograd.
//!
//! - [`Trainer`] trains all weights from scratch, or LoRA adapters on frozen ones ([`LoraConfig`]).
//! - Documents come from a [`DocumentSource`]. Several are packed into a micro-batch without
//!   padding; attention is limited to each document.
//! - [`Weights`] load from and save to a Hugging Face directory, [`LoraWeights`] to PEFT's format.
//!
//! # Design
//! The forward and backward pass are hand-written over buffers that are allocated once
//! (`workspace.rs`). Work is split by data only. The micro-batches of a step belong to a fixed
//! number of *shards*, each with its own gradient vector. Worker threads take shards, and the
//! shards are summed in order. So the result depends on the seed and the number of shards, never on
//! the number of threads. Between CPUs with different instruction sets the last bits may differ.
//!
//! All parameters are one flat vector ([`Layout`]). Matrix products (`product.rs`) have factors of
//! one number format ([`Precision`]), which is also that of stored activations (`element.rs`), and
//! f32 sums in an order that no vector width changes (tiles have another). Right factors are packed in
//! panels: frozen weights once, adapters once a step. An adapter's `B A x` is a further segment of
//! the sum of its base's product. The residual stream, norms, softmax, loss, master weights and
//! optimiser are f32. What lies between two attentions is computed a block of tokens at a time, so
//! that it stays in the cache.
//!
//! `simd/portable.rs` defines the products; `simd/tile/` computes the same bits with AVX2 (f32
//! alone) and AVX-512 (`vdpbf16ps` for bf16). `simd/tiles.rs` computes those of bf16 on tile units
//! (AMX), which sum in an order of their own. The elementwise kernels are plain loops compiled for
//! AVX-512, AVX2 and the baseline. The choice is made at run time (`simd.rs` and `simd/`, the only
//! `unsafe` code of this crate). The loss computes logits only for target tokens.
//!
//! A checkpoint holds weights, moments, step and data position: a resumed run gives the same bits
//! as an uninterrupted one.

mod aligned;
mod attention;
mod checkpoint;
mod config;
mod data;
mod deepen;
mod dense;
mod element;
mod error;
mod histories;
mod layout;
mod lora;
mod lora_panels;
mod lora_pass;
mod loss;
mod mlp;
mod model;
mod model_config;
mod norm;
mod optim;
mod packed;
mod packing;
mod panels;
mod passes;
mod pool;
mod product;
mod progress;
mod rope;
mod simd;
mod softmax;
mod tensors;
mod timing;
mod trainer;
mod vecmath;
mod weights;
mod workspace;

pub use autoact_checkpoint::SaveDtype;
pub use config::{Decay, Length, Optimizer, Precision, TrainConfig};
pub use data::{Cycle, Document, DocumentSource};
pub use error::{Result, TrainError};
pub use layout::{Layout, TensorKind, TensorSpec};
pub use lora::{Linear, LoraConfig, LoraWeights};
pub use model_config::ModelConfig;
pub use packing::{DataPosition, PackStats};
pub use progress::{Progress, Report};
pub use timing::{Phase, Timings};
pub use trainer::{NamedGradients, Trainer};
pub use weights::{INIT_STD, Weights};

/// The instruction set that the trainer uses on this machine: `amx` (tile units for bf16 products),
/// and below it `avx512-bf16`, `avx512`, `avx2` and `portable`. `AUTOACT_ISA` turns tiles off as in
/// the engine's kernels.
pub fn instruction_set() -> &'static str {
    simd::name()
}
