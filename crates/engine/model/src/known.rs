//! The prefix caches: the radix tree of this process, and the shared cache of a machine's
//! processes.

use crate::KvCache;
use crate::radix::Prefixes;
use crate::shared::SharedPrefixes;

/// Keys and values of earlier prompts by adapter; `None` is the base. Only the base's are shared
/// between processes.
pub(crate) struct Known {
    pub(crate) own: Prefixes,
    pub(crate) shared: Option<SharedPrefixes>,
}

impl Known {
    /// A cache of the longest known prefix of `tokens`, without the last token.
    pub(crate) fn take(&mut self, adapter: Option<&str>, tokens: &[u32]) -> KvCache {
        let mut cache = self.own.take(adapter, tokens);
        if let Some(shared) = self.shared.as_ref().filter(|_| adapter.is_none()) {
            shared.take(tokens, &mut cache);
        }
        cache
    }

    /// Stores the keys and values of `tokens` in `cache`. The first `blocks` blocks are already
    /// shared; returns how many are shared afterwards.
    pub(crate) fn put(&mut self, adapter: Option<&str>, tokens: &[u32], blocks: usize, cache: &mut KvCache) -> usize {
        self.own.put(adapter, tokens, cache);
        match self.shared.as_ref().filter(|_| adapter.is_none()) {
            Some(shared) => shared.put(tokens, blocks, cache),
            None => blocks,
        }
    }
}
