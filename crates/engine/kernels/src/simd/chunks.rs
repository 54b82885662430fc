//! A slice that is split into disjoint parts for several threads.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pieces of equal length (the last may be shorter), each of which can be taken once, by any thread.
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
    /// Pieces of `len` in `all`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub(crate) fn new(all: &'a mut [T], len: usize) -> Self {
        let taken = (0..all.len().div_ceil(len)).map(|_| AtomicBool::new(false)).collect();
        Self { start: all.as_mut_ptr(), all: all.len(), len, taken, borrowed: PhantomData }
    }

    /// The number of pieces.
    pub(crate) fn count(&self) -> usize {
        self.taken.len()
    }

    /// Piece `i`.
    ///
    /// # Panics
    /// If there is none, or it has been taken before.
    #[allow(clippy::mut_from_ref)] // each piece is handed out once
    pub(crate) fn take(&self, i: usize) -> &'a mut [T] {
        assert!(!self.taken[i].swap(true, Ordering::Relaxed), "piece {i} was taken before");
        let from = i * self.len;
        // SAFETY: the piece lies inside the slice that is borrowed for `'a` (there is an `i`th piece), pieces are
        // disjoint, and the flag says that this is the only borrow of it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), self.len.min(self.all - from)) }
    }
}
