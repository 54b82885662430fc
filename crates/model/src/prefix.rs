//! Caches of finished sequences, kept because the next prompt often begins with the last one.

use candle_core::Result;

use crate::KvCache;

/// Common prefixes shorter than this are not worth a copy.
const WORTH: usize = 16;

struct Entry {
    /// The adapter's digest; `None` = the base. Keys and values differ by adapter, so nothing is shared across.
    adapter: Option<String>,
    /// The tokens in `cache`.
    tokens: Vec<u32>,
    cache: KvCache,
}

/// Least recently used first, bounded by memory.
pub(crate) struct Prefixes {
    entries: Vec<Entry>,
    limit: usize,
}

impl Prefixes {
    /// Holds at most `limit` bytes of keys and values; 0 keeps nothing.
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit }
    }

    /// A cache that holds a beginning of `tokens`, never all of them: the last one's logits are still to be computed.
    /// A sequence that only grew gets its own cache back; one that branched off gets a copy of what is common.
    pub(crate) fn take(&mut self, adapter: Option<&str>, tokens: &[u32]) -> Result<Option<KvCache>> {
        let most = tokens.len().saturating_sub(1);
        let candidates = self.entries.iter().enumerate().filter(|(_, e)| e.adapter.as_deref() == adapter);
        let best = candidates.map(|(i, e)| (common(&e.tokens, tokens).min(most), i)).max();
        let Some((shared, i)) = best.filter(|(shared, _)| *shared >= WORTH) else { return Ok(None) };
        if shared + 1 >= self.entries[i].tokens.len() {
            let mut cache = self.entries.remove(i).cache;
            cache.truncate(shared);
            return Ok(Some(cache));
        }
        let used = self.entries.remove(i);
        let copy = used.cache.copy_prefix(shared)?;
        self.entries.push(used);
        Ok(Some(copy))
    }

    /// Keeps a sequence's cache, forgetting the least recently used ones beyond the limit.
    pub(crate) fn put(&mut self, adapter: Option<String>, mut tokens: Vec<u32>, cache: KvCache) {
        tokens.truncate(cache.len());
        if tokens.len() < WORTH {
            return;
        }
        self.entries.retain(|e| e.adapter != adapter || common(&e.tokens, &tokens) < e.tokens.len());
        self.entries.push(Entry { adapter, tokens, cache });
        while self.entries.iter().map(|e| e.cache.bytes()).sum::<usize>() > self.limit {
            self.entries.remove(0);
        }
    }

    /// Forgets everything: after a failure, when a cache may be half written.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
