//! The progress as JSON lines on standard error.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use autoact_learn::{Stage, View};
use serde_json::{Value, json};

/// Between two lines about one part.
const EVERY: Duration = Duration::from_secs(10);

/// Writes a line.
pub(crate) fn line(level: &str, mut fields: Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("level".to_owned(), json!(level));
        fields.insert("seconds".to_owned(), json!(now.as_secs_f64()));
    }
    // a log reader that has gone away must not end the learning
    let _ = writeln!(std::io::stderr().lock(), "{fields}");
}

/// A view that logs.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    part: Mutex<Part>,
}

/// The part in hand.
#[derive(Debug, Default)]
struct Part {
    stage: Option<Stage>,
    name: String,
    total: u64,
    told: Option<Instant>,
}

impl View for Logs {
    fn begin(&self, stage: Stage, part: &str, done: u64, total: u64) {
        line("info", json!({ "stage": stage, "part": part, "done": done, "total": total, "message": "begins" }));
        let mut held = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Part { stage: Some(stage), name: part.to_owned(), total, told: Some(Instant::now()) };
    }

    fn advance(&self, done: u64, note: &str) {
        let mut held = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        if held.told.is_some_and(|told| told.elapsed() < EVERY) {
            return;
        }
        held.told = Some(Instant::now());
        line("info", json!({ "stage": held.stage, "part": held.name, "done": done, "total": held.total, "message": note }));
    }

    fn end(&self, summary: &str) {
        let held = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        line("info", json!({ "stage": held.stage, "part": held.name, "message": summary }));
    }
}
