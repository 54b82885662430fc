//! A slice split into disjoint pieces for several threads.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pieces of equal length (the last may be shorter). Any thread can take each piece once.
pub(crate) struct Chunks<'a, T> {
    start: *mut T,
    all: usize,
    len: usize,
    taken: Vec<AtomicBool>,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it only hands out exclusive borrows of disjoint pieces, to whatever thread asks.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    /// Splits `all` into pieces of `len` elements.
    ///
    /// # Panics
    /// If `len` is 0.
    pub(crate) fn new(all: &'a mut [T], len: usize) -> Self {
        let taken = (0..all.len().div_ceil(len)).map(|_| AtomicBool::new(false)).collect();
        Self { start: all.as_mut_ptr(), all: all.len(), len, taken, borrowed: PhantomData }
    }

    /// Number of pieces.
    pub(crate) fn count(&self) -> usize {
        self.taken.len()
    }

    /// Takes piece `i`.
    ///
    /// # Panics
    /// If there is no such piece, or it was taken before.
    #[allow(clippy::mut_from_ref)] // each piece is handed out once
    pub(crate) fn take(&self, i: usize) -> &'a mut [T] {
        assert!(!self.taken[i].swap(true, Ordering::Relaxed), "piece {i} was taken before");
        let from = i * self.len;
        // SAFETY: the piece lies inside the slice that is borrowed for `'a` (there is an `i`th
        // piece), pieces are disjoint, and the flag guarantees that this is the only borrow of it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), self.len.min(self.all - from)) }
    }
}
