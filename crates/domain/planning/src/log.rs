//! Where a task's events are stored.

use std::convert::Infallible;

use async_trait::async_trait;
use autoact_trajectory::{Artifact, Digest, Event, NewArtifact, TaskKey};

use crate::failure::Failure;

/// What is known of an event once it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its position on the bus; 0 for a log without positions.
    pub sequence: u64,
    /// SHA-256 of its stored bytes; `None` for a log without bytes.
    pub digest: Option<Digest>,
}

/// Stores events, each once, and only if the task's last event is still the one that the writer
/// knows.
#[async_trait]
pub trait EventLog: Send {
    /// Why an event was not stored.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Stores an event after the one at sequence `after` (0: the first).
    async fn append(&mut self, event: &Event, after: u64) -> Result<Appended, Self::Error>;

    /// Stores an artifact of the task, once however often it is called, and returns the reference
    /// for the event that follows. A failure that passes makes the task wait.
    async fn keep(&mut self, task: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, Failure>;
}

/// The error of a log that has none.
pub type NeverFails = Infallible;

/// Keeps events and artifacts in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryLog {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The artifacts, in order. An artifact's `object` is its place, from 0.
    pub artifacts: Vec<NewArtifact>,
}

#[async_trait]
impl EventLog for MemoryLog {
    type Error = NeverFails;

    async fn append(&mut self, event: &Event, _: u64) -> Result<Appended, NeverFails> {
        self.events.push(event.clone());
        Ok(Appended { sequence: 0, digest: None })
    }

    async fn keep(&mut self, _: &TaskKey, artifact: &NewArtifact) -> Result<Artifact, Failure> {
        let place = self.artifacts.iter().position(|kept| kept == artifact).unwrap_or(self.artifacts.len());
        if place == self.artifacts.len() {
            self.artifacts.push(artifact.clone());
        }
        let NewArtifact { kind, media_type, name, text, data } = artifact.clone();
        Ok(Artifact { kind, media_type, name, object: place.to_string(), bytes: data.len() as u64, sha256: None, text })
    }
}
