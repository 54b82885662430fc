//! Where a task's events are stored.

use std::convert::Infallible;

use async_trait::async_trait;
use autoact_trajectory::{Digest, Event};

/// What is known of an event once it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its position on the bus; 0 for a log without positions.
    pub sequence: u64,
    /// SHA-256 of its stored bytes; `None` for a log without bytes.
    pub digest: Option<Digest>,
}

/// Stores events, each once, and only if the task's last event is still the one that the writer knows.
#[async_trait]
pub trait EventLog: Send {
    /// Why an event was not stored.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Stores an event after the one at sequence `after` (0: the first).
    async fn append(&mut self, event: &Event, after: u64) -> Result<Appended, Self::Error>;
}

/// The error of a log that has none.
pub type NeverFails = Infallible;

/// Keeps events in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryLog {
    /// The events, in order.
    pub events: Vec<Event>,
}

#[async_trait]
impl EventLog for MemoryLog {
    type Error = NeverFails;

    async fn append(&mut self, event: &Event, _: u64) -> Result<Appended, NeverFails> {
        self.events.push(event.clone());
        Ok(Appended { sequence: 0, digest: None })
    }
}
