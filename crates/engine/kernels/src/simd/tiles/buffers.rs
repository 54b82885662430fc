//! Buffers of products, which a thread keeps: an allocation of this size costs page faults.

use std::cell::Cell;

use crate::line::Line;

thread_local! {
    static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
}

/// At least so many lines, with any content.
pub(super) fn take(lines: usize) -> Vec<Line> {
    let mut buffer = KEPT.take();
    if buffer.len() < lines {
        buffer.resize(lines, Line::default());
    }
    buffer
}

/// Keeps a buffer for the next product of this thread.
pub(super) fn give_back(buffer: Vec<Line>) {
    KEPT.set(buffer);
}
