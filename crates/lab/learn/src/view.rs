//! Progress reports.

use crate::stage::Stage;

/// Receives the progress of the stages. It is called by one thread at a time.
pub trait View: Send + Sync {
    /// A part of a stage begins. `done` of its `total` items exist from an earlier start.
    fn begin(&self, stage: Stage, part: &str, done: u64, total: u64);
    /// `done` items are complete; `note` is a short text for people, with counts and rates.
    fn advance(&self, done: u64, note: &str);
    /// The part has ended.
    fn end(&self, summary: &str);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoView;

impl View for NoView {
    fn begin(&self, _: Stage, _: &str, _: u64, _: u64) {}
    fn advance(&self, _: u64, _: &str) {}
    fn end(&self, _: &str) {}
}
