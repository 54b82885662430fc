//! The keys and values of histories, kept from epoch to epoch.
//!
//! What precedes the invocation of an activated adapter is read by the base alone, and the base does
//! not change. So a history's keys and values are the same in every epoch, to the bit: they are
//! computed once. Nothing else of a history is needed, because no gradient passes through it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Keys and values by the tokens that they are of, shared by the workers.
pub(crate) struct Histories<E> {
    kept: RwLock<Kept<E>>,
    /// Maximum of `Kept::bytes`.
    limit: usize,
}

struct Kept<E> {
    /// Keys and values `[layers, tokens, 2 kv]`.
    entries: HashMap<Box<[u32]>, Arc<[E]>>,
    bytes: usize,
}

impl<E: Copy> Histories<E> {
    /// Keeps up to `limit` bytes of keys and values; none at 0.
    pub(crate) fn new(limit: usize) -> Self {
        Self { kept: RwLock::new(Kept { entries: HashMap::new(), bytes: 0 }), limit }
    }

    /// The keys and values of these tokens, if they are kept.
    pub(crate) fn find(&self, tokens: &[u32]) -> Option<Arc<[E]>> {
        // a panic under the lock leaves a whole map
        self.kept.read().unwrap_or_else(PoisonError::into_inner).entries.get(tokens).cloned()
    }

    /// Keeps `len` keys and values that `collect` appends, if there is room. Those that came first
    /// stay: every document comes once in an epoch, so none is more worth than another.
    pub(crate) fn keep(&self, tokens: &[u32], len: usize, collect: impl FnOnce(&mut Vec<E>)) {
        let bytes = len * size_of::<E>() + size_of_val(tokens);
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes > self.limit || kept.entries.contains_key(tokens) {
            return;
        }
        let mut values = Vec::with_capacity(len);
        collect(&mut values);
        kept.bytes += bytes;
        kept.entries.insert(tokens.into(), values.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fit_are_kept() {
        let histories = Histories::<f32>::new(100);
        let keep = |tokens: &[u32], value: f32| histories.keep(tokens, 8, |to| to.extend([value; 8]));
        keep(&[1, 2], 1.0);
        keep(&[1, 2], 2.0);
        keep(&[1, 2, 3], 3.0);
        // 40 and 44 bytes are taken
        keep(&[4], 4.0);
        assert_eq!(histories.find(&[1, 2]).as_deref(), Some(&[1.0; 8][..]));
        assert_eq!(histories.find(&[1, 2, 3]).as_deref(), Some(&[3.0; 8][..]));
        assert_eq!((histories.find(&[1]), histories.find(&[4])), (None, None));
        let none = Histories::<f32>::new(0);
        none.keep(&[1], 1, |to| to.push(1.0));
        assert_eq!(none.find(&[1]), None);
    }
}
