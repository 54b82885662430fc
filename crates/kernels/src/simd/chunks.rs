//! A slice whose pieces are handed out to several threads.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pieces of equal length, each of which can be taken once, by any thread.
pub(crate) struct Chunks<'a> {
    start: *mut f32,
    len: usize,
    taken: Vec<AtomicBool>,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: it only hands out exclusive borrows of disjoint pieces.
unsafe impl Sync for Chunks<'_> {}

impl<'a> Chunks<'a> {
    /// The whole pieces of `len` numbers in `all`.
    pub(crate) fn new(all: &'a mut [f32], len: usize) -> Self {
        let taken = (0..all.len() / len).map(|_| AtomicBool::new(false)).collect();
        Self { start: all.as_mut_ptr(), len, taken, borrowed: PhantomData }
    }

    /// Piece `i`.
    ///
    /// # Panics
    /// If there is none, or it has been taken before.
    #[allow(clippy::mut_from_ref)] // each piece is handed out once
    pub(crate) fn take(&self, i: usize) -> &'a mut [f32] {
        assert!(!self.taken[i].swap(true, Ordering::Relaxed), "piece {i} was taken before");
        // SAFETY: the piece lies inside the slice that is borrowed for `'a`, pieces are disjoint, and the flag says that
        // this is the only borrow of it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(i * self.len), self.len) }
    }
}
