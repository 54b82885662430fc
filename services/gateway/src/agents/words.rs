//! The agents' words as they are written, told to whoever watches.

use std::time::Duration;

use autoact_bus::Bus;
use autoact_planning::Call;
use autoact_trajectory::{CallId, TaskKey};
use autoact_wire::v1;
use bytes::Bytes;
use prost::Message;
use tokio::time::Instant;

/// Words that come faster than anybody reads are told together. Those of a reply that is whole
/// within this time are not told at all: the event that follows has them.
const PERIOD: Duration = Duration::from_millis(25);

/// Tells the words of one attempt at a call.
pub(crate) struct Words<'a> {
    bus: &'a Bus,
    task: &'a TaskKey,
    call: CallId,
    epoch: u64,
    attempt: u32,
    /// Bytes told so far.
    offset: usize,
    unsent: String,
    /// When the next words may be told.
    next: Instant,
}

impl<'a> Words<'a> {
    pub(crate) fn new(bus: &'a Bus, call: &Call<'a>, attempt: u32) -> Words<'a> {
        let next = Instant::now() + PERIOD;
        Words { bus, task: call.task, call: call.id, epoch: call.epoch, attempt, offset: 0, unsent: String::new(), next }
    }

    /// When words have to be told that are there and untold; `None`: there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.unsent.is_empty()).then_some(self.next)
    }

    /// Takes in the next words. They are told a few times a second; the last may go untold, because
    /// the event that follows has the whole reply.
    pub(crate) async fn add(&mut self, text: &str) {
        self.unsent.push_str(text);
        if Instant::now() >= self.next {
            self.tell().await;
        }
    }

    /// Tells the words that are untold.
    pub(crate) async fn tell(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.unsent);
        let told = text.len();
        let offset = u32::try_from(self.offset).unwrap_or(u32::MAX);
        let delta = v1::TaskDelta { call_id: self.call.to_string(), epoch: self.epoch, attempt: self.attempt, offset, text };
        self.offset += told;
        self.next = Instant::now() + PERIOD;
        self.bus.tell_words(self.task, Bytes::from(delta.encode_to_vec())).await;
    }
}
