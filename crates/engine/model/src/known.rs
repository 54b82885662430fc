//! What is known of prompts that begin like an earlier one: this process's own tree, and behind it what processes on a machine share.

use crate::KvCache;
use crate::radix::Prefixes;
use crate::shared::SharedPrefixes;

/// Keys and values of earlier prompts, by the adapter that read them; `None` = the base, which alone is shared between processes.
pub(crate) struct Known {
    pub(crate) own: Prefixes,
    pub(crate) shared: Option<SharedPrefixes>,
}

impl Known {
    /// A cache that holds the longest known beginning of `tokens`, never all of them.
    pub(crate) fn take(&mut self, adapter: Option<&str>, tokens: &[u32]) -> KvCache {
        let mut cache = self.own.take(adapter, tokens);
        if let Some(shared) = self.shared.as_ref().filter(|_| adapter.is_none()) {
            shared.take(tokens, &mut cache);
        }
        cache
    }

    /// Keeps what `cache` holds of `tokens`; `blocks` of them others have already, and as many have them afterwards as it gives.
    pub(crate) fn put(&mut self, adapter: Option<&str>, tokens: &[u32], blocks: usize, cache: &mut KvCache) -> usize {
        self.own.put(adapter, tokens, cache);
        match self.shared.as_ref().filter(|_| adapter.is_none()) {
            Some(shared) => shared.put(tokens, blocks, cache),
            None => blocks,
        }
    }
}
