//! Buffers that begin at a cache line, so that no vector of a packed factor crosses two.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A zeroed buffer of fixed length whose first element is at the start of a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    pub(crate) fn new(len: usize) -> Self {
        let data = vec![T::default(); len + LINE / size_of::<T>().max(1)];
        let start = data.as_ptr().align_offset(LINE).min(data.len() - len);
        Self { data, start, len }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}
