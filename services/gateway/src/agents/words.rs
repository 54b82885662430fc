//! The agents' words as they are written, told to whoever watches.

use std::time::Duration;

use autoact_bus::Bus;
use autoact_planning::Call;
use autoact_trajectory::TaskKey;
use autoact_wire::v1;
use bytes::Bytes;
use prost::Message;
use tokio::time::Instant;

/// Words that come faster than anybody reads are told together.
const PERIOD: Duration = Duration::from_millis(25);

/// Tells the words of one attempt at a call.
pub(crate) struct Words<'a> {
    bus: &'a Bus,
    task: &'a TaskKey,
    head: v1::TaskDelta,
    unsent: String,
    sent_at: Option<Instant>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(bus: &'a Bus, call: &Call<'a>, attempt: u32) -> Words<'a> {
        let head = v1::TaskDelta { call_id: call.id.to_string(), epoch: call.epoch, attempt, offset: 0, text: String::new() };
        Words { bus, task: call.task, head, unsent: String::new(), sent_at: None }
    }

    /// Takes in the next words. The first are told at once, later ones a few times a second; the
    /// last may go untold, because the event that follows has the whole reply.
    pub(crate) async fn add(&mut self, text: &str) {
        self.unsent.push_str(text);
        if self.unsent.is_empty() || self.sent_at.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        let text = std::mem::take(&mut self.unsent);
        let delta = v1::TaskDelta { text, ..self.head.clone() };
        self.head.offset = self.head.offset.saturating_add(u32::try_from(delta.text.len()).unwrap_or(u32::MAX));
        self.sent_at = Some(Instant::now());
        self.bus.tell_words(self.task, Bytes::from(delta.encode_to_vec())).await;
    }
}
