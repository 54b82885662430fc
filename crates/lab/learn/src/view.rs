//! What a watcher of the learning sees.

use crate::stage::Stage;

/// Where the stages tell how far they are. Called from one thread at a time.
pub trait View: Send + Sync {
    /// A part of a stage begins, `done` of `total` of it being there already from an earlier start.
    fn begin(&self, stage: Stage, part: &str, done: u64, total: u64);
    /// So far; `note` is short, for people: counts and rates.
    fn advance(&self, done: u64, note: &str);
    /// The part is over.
    fn end(&self, summary: &str);
}

/// Sees nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoView;

impl View for NoView {
    fn begin(&self, _: Stage, _: &str, _: u64, _: u64) {}
    fn advance(&self, _: u64, _: &str) {}
    fn end(&self, _: &str) {}
}
