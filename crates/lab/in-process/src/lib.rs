//! The whole group in one process: the driver of [`autoact_planning`] over a model and tools at hand, without services
//! and without a bus. Learning synthesises trajectories with it, evaluation and the planners ask it questions. The
//! gateway runs the same driver over gRPC, and the agents' services speak through the same [`autoact_speaker`].

mod engines;
mod failure;
mod group;
mod members;
mod voices;

pub use engines::engines;
pub use group::{LocalError, LocalGroup, RunOptions};
pub use voices::Voices;
