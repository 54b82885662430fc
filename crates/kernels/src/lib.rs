//! The arithmetic of a language model on a CPU: products with weights that stay where they are
//! mapped, attention over blocks of cached keys and values, and what lies between them.
//!
//! **Every row has the same bits whatever is computed with it.** A token's results do not depend on
//! the other rows of a batch, on how a prompt is cut into pieces or on the number of threads: each
//! number is made by one chain of operations in one order, which depends on nothing but the shape of
//! its own row. (They do depend, in the last bits, on the instruction set: see [`instruction_set`].)

mod attention;
mod elementwise;
mod exp;
mod format;
mod inputs;
mod lanes;
mod linear;
mod simd;
mod team;
#[cfg(test)]
mod tests;

pub use attention::{AttentionShape, BLOCK, Queries, attend, store_kv};
pub use elementwise::{add, rms_norm, rotate, swiglu};
pub use format::{Format, Matrix, ShapeError, UnknownFormat, quantize_q8_0, to_bf16};
pub use inputs::Inputs;
pub use linear::{LowRank, Part, linear};
pub use team::Team;

/// The instructions that the kernels use on this machine: `avx512-bf16-vnni`, `avx512`, `avx2` or `portable`.
///
/// The environment variable `AUTOACT_ISA`, read once, chooses a lesser one by the same names, for tests and benchmarks.
pub fn instruction_set() -> &'static str {
    simd::Isa::get().name()
}
