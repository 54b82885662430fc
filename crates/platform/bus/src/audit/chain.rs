//! One task's events, as they come.

use std::time::SystemTime;

use autoact_trajectory::{Artifact, Digest, Event, EventBody, TaskKey};
use autoact_wire::store;

use crate::audit::Message;
use crate::audit::finding::{Finding, Kind};

/// What is known of the events of a task so far.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// The index of the last event in order.
    pub(super) index: u64,
    /// The digests that the next event may name: that of the bytes, and the one that the message
    /// was stored with, if they differ. `None`: the event before cannot be judged.
    last: Option<(Digest, Digest)>,
    /// The greatest so far.
    epoch: u64,
    /// The end was stored.
    pub(super) finished: bool,
    /// When the last event was written.
    pub(super) time: SystemTime,
    /// Where the last event is.
    pub(super) sequence: u64,
}

/// A place in a task that something else than its events knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) hash: Option<Digest>,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { index: 0, last: None, epoch: 0, finished: false, time: SystemTime::UNIX_EPOCH, sequence: 0 }
    }
}

impl Chain {
    /// SHA-256 of the last event's bytes; `None` if it cannot be judged.
    pub(super) fn hash(&self) -> Option<Digest> {
        self.last.map(|(hash, _)| hash)
    }

    /// The next message of the task, and the artifacts that it names. `headless`: its first events may
    /// have been dropped before that was recorded. `places`: what the index and the backup know.
    pub(super) fn add(
        &mut self,
        task: &TaskKey,
        message: &Message<'_>,
        headless: bool,
        places: [Option<Place>; 2],
    ) -> (Vec<Finding>, Vec<Artifact>) {
        let mut findings = Vec::new();
        let hash = store::digest(message.payload);
        let stored = message.event_id(task);
        let expected = self.index + 1;
        let mut find = |kind, index, detail: String| {
            findings.push(Finding { task: Some(task.clone()), kind, index: Some(index), sequence: Some(message.sequence), detail });
        };
        let decoded = store::decode_without_tools(&task.tenant, message.payload, message.sequence);
        let changed = stored.as_ref().is_some_and(|(_, digest)| *digest != hash);
        if changed {
            let at = stored.as_ref().map_or(expected, |(index, _)| *index);
            find(Kind::Changed, at, "its bytes have another SHA-256 than it was stored with".to_owned());
        }
        let event = match decoded {
            Ok(event) => event,
            Err(error) => {
                let at = stored.as_ref().map_or(expected, |(index, _)| *index);
                if !changed {
                    find(Kind::Unreadable, at, error.to_string());
                }
                // the one after it is judged by its index alone
                self.index = self.index.max(at);
                (self.last, self.sequence) = (stored.map(|(_, digest)| (digest, digest)), message.sequence);
                return (findings, Vec::new());
            }
        };
        if event.key() != *task {
            if !changed {
                find(Kind::Foreign, event.index, format!("it is an event of task `{}`", event.key()));
            }
            return (findings, Vec::new());
        }
        let index = match &stored {
            Some((index, _)) if changed => *index,
            _ => event.index,
        };
        if index < expected {
            find(Kind::Misplaced, index, format!("event {expected} was expected here"));
            return (findings, Vec::new());
        }
        if index > expected && !(headless && self.index == 0) {
            let missing = if index == expected + 1 {
                "it is not there".to_owned()
            } else {
                format!("events {expected} to {} are not there", index - 1)
            };
            find(Kind::Missing, expected, missing);
        }
        if index == expected && !changed {
            self.check_previous(&event, message.payload, &mut find);
        }
        if self.finished {
            find(Kind::AfterEnd, index, format!("the task ended with event {}", self.index));
        }
        if !changed {
            if event.epoch != 0 && event.epoch < self.epoch {
                find(Kind::Epoch, index, format!("epoch {} after epoch {}", event.epoch, self.epoch));
            }
            if let EventBody::Unknown(unknown) = &event.body
                && unknown.needed
            {
                find(Kind::Newer, index, format!("written by schema version {}; audit with a newer autoact", unknown.version));
            }
            for place in places.into_iter().flatten() {
                if place.index == index && place.hash.is_some_and(|known| known != hash) {
                    find(Kind::Changed, index, "its bytes have another SHA-256 than the index or the backup knows".to_owned());
                    break;
                }
            }
            self.epoch = self.epoch.max(event.epoch);
        }
        self.index = index;
        self.last = Some((hash, stored.map_or(hash, |(_, digest)| digest)));
        self.finished |= matches!(event.body, EventBody::Finished(_));
        (self.time, self.sequence) = (event.time, message.sequence);
        // what a changed event names is not what was stored
        (findings, if changed { Vec::new() } else { event.artifacts })
    }

    /// Whether an event names the one before it.
    fn check_previous(&self, event: &Event, payload: &[u8], find: &mut impl FnMut(Kind, u64, String)) {
        // version 1 of the schema had no hashes
        if store::version(payload) == 1 {
            return;
        }
        match (self.index, event.previous, self.last) {
            (0, None, _) => {}
            (0, Some(_), _) => find(Kind::Misplaced, 1, "it is the first, and names an event before it".to_owned()),
            (_, _, None) => {}
            (_, Some(previous), Some((hash, stored))) if previous == hash || previous == stored => {}
            (before, _, Some(_)) => {
                find(Kind::Changed, before, format!("event {} names another SHA-256 as the one before it", event.index));
            }
        }
    }
}
