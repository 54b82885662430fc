//! The whole group in one process: the planning loop of `autoact_trajectory` over a model and tools at hand, without services or bus.
//! It is what learning synthesises trajectories with, and what quick evaluations run; the gateway runs the same decisions over gRPC.

mod engines;
mod group;
mod speak;

pub use engines::engines;
pub use group::{LocalError, LocalGroup, RunOptions};
pub use speak::{Voices, say};
