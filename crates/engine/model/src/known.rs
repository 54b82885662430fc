//! The prefix caches: the radix tree of this process, and the shared cache of a machine's
//! processes.

use autoact_kernels::BLOCK;

use crate::KvCache;
use crate::radix::{Prefixes, Tree};
use crate::shared::SharedPrefixes;

/// Keys and values of earlier prompts, by adapter and owner. Only the base's are shared between
/// processes.
pub(crate) struct Known {
    pub(crate) own: Prefixes,
    pub(crate) shared: Option<SharedPrefixes>,
}

/// Whose tokens, and how many of them at the beginning all owners may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) name: String,
    pub(crate) common: usize,
}

impl Owned {
    /// The blocks that are common whole.
    pub(crate) fn common_blocks(&self) -> usize {
        self.common / BLOCK
    }
}

impl Known {
    /// A cache of the longest prefix of `tokens` that is known to this owner, without the last token.
    pub(crate) fn take(&mut self, adapter: Option<&str>, owner: Option<&Owned>, tokens: &[u32]) -> KvCache {
        let mut cache = self.own.take(Tree { adapter, owner: owner.map(|owner| owner.name.as_str()) }, tokens);
        if let Some(owner) = owner {
            let common = owner.common_blocks() * BLOCK;
            if cache.len() < common.min(tokens.len().saturating_sub(1)) {
                // one more token, since `take` leaves the last one out
                let found = self.own.take(Tree { adapter, owner: None }, &tokens[..tokens.len().min(common + 1)]);
                if found.len() > cache.len() {
                    cache = found;
                }
            }
        }
        if let Some(shared) = self.shared.as_ref().filter(|_| adapter.is_none()) {
            shared.take(owner, tokens, &mut cache);
        }
        cache
    }

    /// Stores the keys and values of `tokens` in `cache`. The first `blocks` blocks are already
    /// shared between processes; returns how many are afterwards.
    pub(crate) fn put(
        &mut self,
        adapter: Option<&str>,
        owner: Option<&Owned>,
        tokens: &[u32],
        blocks: usize,
        cache: &mut KvCache,
    ) -> usize {
        if let Some(owner) = owner {
            let common = (owner.common_blocks() * BLOCK).min(tokens.len() / BLOCK * BLOCK);
            if common > 0 {
                self.own.put(Tree { adapter, owner: None }, &tokens[..common], cache);
            }
        }
        self.own.put(Tree { adapter, owner: owner.map(|owner| owner.name.as_str()) }, tokens, cache);
        match self.shared.as_ref().filter(|_| adapter.is_none()) {
            Some(shared) => shared.put(owner, tokens, blocks, cache),
            None => blocks,
        }
    }
}
