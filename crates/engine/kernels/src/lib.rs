//! CPU kernels of a language model: matrix products over memory-mapped weights, attention over KV
//! blocks, and the elementwise operations between them.
//!
//! **A row's result does not depend on what else is computed.** It has the same bits for every
//! batch, every split of a prompt into chunks, and every number of threads. Each number results
//! from one sequence of operations in one order, which depends only on the shape of its own row.
//! The last bits may differ between instruction sets: see [`instruction_set`].

mod attention;
mod elementwise;
mod exp;
mod format;
mod gated;
mod inputs;
mod kv;
mod lanes;
mod line;
mod linear;
mod machine;
mod rows;
mod simd;
mod team;
#[cfg(test)]
mod tests;

pub use attention::{AttentionShape, Queries, attend};
pub use elementwise::{add, gelu, layer_norm, log_sum_exp, rms_norm, rotate, softmax, swiglu};
pub use format::{Format, Matrix, ShapeError, UnknownFormat, quantize_q8_0, to_bf16};
pub use gated::{GatedBuffers, gated};
pub use inputs::Inputs;
pub use kv::{BLOCK, KvFormat, UnknownKvFormat, store_kv};
pub use linear::{LowRank, Part, linear};
pub use machine::Machine;
#[cfg(target_arch = "x86_64")]
pub use simd::tile_instructions;
pub use team::Team;

/// The instruction set that the kernels use on this machine: `amx` (tile units), and below it
/// `avx512-bf16-vnni`, `avx512` (without these two extensions), `avx2` and `portable`.
///
/// The environment variable `AUTOACT_ISA`, read once, selects a lower one by its name, for tests
/// and benchmarks. The kernel is asked for the use of tiles unless it does.
pub fn instruction_set() -> &'static str {
    simd::Isa::get().name()
}
