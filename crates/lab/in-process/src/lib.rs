//! The group in one process: the driver of [`autoact_planning`] over a model and tools, without
//! services and without a bus. Learning, evaluation and the planners use it. The gateway runs the
//! same driver over gRPC, and the agents' services use the same [`autoact_speaker`].

mod engines;
mod failure;
mod group;
mod guide;
mod members;
mod voices;

pub use engines::engines;
pub use group::{LocalError, LocalGroup, RunOptions};
pub use guide::Guide;
pub use voices::Voices;
