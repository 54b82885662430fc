//! The KV cache, in blocks of tokens that sequences share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use autoact_kernels::{BLOCK, KvFormat, store_kv};

use crate::ModelConfig;
use crate::words::Words;

/// The format and size of a model's KV blocks, and how many exist.
#[derive(Debug)]
pub(crate) struct BlockShape {
    format: KvFormat,
    kv_heads: usize,
    head_dim: usize,
    layers: usize,
    live: AtomicUsize,
}

impl BlockShape {
    pub(crate) fn new(config: &ModelConfig, format: KvFormat) -> Arc<Self> {
        let &ModelConfig { kv_heads, head_dim, layers, .. } = config;
        Arc::new(Self { format, kv_heads, head_dim, layers, live: AtomicUsize::new(0) })
    }

    /// The number format of keys and values.
    pub(crate) fn format(&self) -> KvFormat {
        self.format
    }

    /// Words of one layer's keys and values in a block.
    fn layer(&self) -> usize {
        self.format.block_len(self.kv_heads, self.head_dim)
    }

    /// Bytes of one block.
    pub(crate) fn bytes(&self) -> usize {
        self.layers * self.layer() * size_of::<u32>()
    }

    /// Number of blocks that exist.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}

/// Keys and values of up to [`BLOCK`] consecutive tokens in every layer. A shared block is never
/// written.
pub(crate) struct Block {
    /// `[layers][keys, then values]`, as [`KvFormat`] lays them out.
    data: Words,
    shape: Arc<BlockShape>,
}

impl Block {
    fn new(shape: &Arc<BlockShape>) -> Self {
        shape.live.fetch_add(1, Ordering::Relaxed);
        Self { data: Words::zeros(shape.layers * shape.layer()), shape: shape.clone() }
    }
}

impl Block {
    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.bytes()
    }

    /// Its words, little-endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.data.len() * size_of::<u32>()];
        for (to, from) in bytes.as_chunks_mut().0.iter_mut().zip(self.data.iter()) {
            *to = from.to_le_bytes();
        }
        bytes
    }

    /// The inverse of [`Block::to_bytes`]; `None` if the size differs.
    pub(crate) fn from_bytes(shape: &Arc<BlockShape>, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != shape.bytes() {
            return None;
        }
        let mut block = Self::new(shape);
        for (to, from) in block.data.iter_mut().zip(bytes.as_chunks().0) {
            *to = u32::from_le_bytes(*from);
        }
        Some(block)
    }
}

impl Clone for Block {
    fn clone(&self) -> Self {
        self.shape.live.fetch_add(1, Ordering::Relaxed);
        Self { data: self.data.clone(), shape: self.shape.clone() }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.shape.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keys and values of one sequence's tokens under one adapter. Blocks of a common prefix are shared
/// with other sequences; a shared block is copied before it is written.
#[derive(Clone)]
pub struct KvCache {
    shape: Arc<BlockShape>,
    blocks: Vec<Arc<Block>>,
    len: usize,
}

impl std::fmt::Debug for KvCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KvCache({} tokens in {} blocks)", self.len, self.blocks.len())
    }
}

impl KvCache {
    pub(crate) fn new(shape: &Arc<BlockShape>) -> Self {
        Self { shape: shape.clone(), blocks: Vec::new(), len: 0 }
    }

    /// A cache with the first `len` tokens of `blocks`.
    pub(crate) fn from_blocks(shape: &Arc<BlockShape>, blocks: Vec<Arc<Block>>, len: usize) -> Self {
        debug_assert!(len.div_ceil(BLOCK) == blocks.len());
        Self { shape: shape.clone(), blocks, len }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its blocks, including shared ones.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * self.shape.bytes()
    }

    /// Removes all tokens after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.blocks.truncate(self.len.div_ceil(BLOCK));
    }

    /// Removes all tokens after the first `len`, but keeps their blocks for the next tokens.
    pub(crate) fn rewind(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Puts `blocks` after the first `known` blocks.
    pub(crate) fn extend_from(&mut self, known: usize, blocks: Vec<Arc<Block>>) {
        self.blocks.truncate(known);
        self.blocks.extend(blocks);
        self.len = self.blocks.len() * BLOCK;
    }

    pub(crate) fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// Replaces block `i` by an equal block that others hold too.
    pub(crate) fn share(&mut self, i: usize, block: &Arc<Block>) {
        if let Some(mine) = self.blocks.get_mut(i) {
            *mine = block.clone();
        }
    }

    /// Allocates blocks for `n` more tokens.
    pub(crate) fn reserve(&mut self, n: usize) {
        while self.blocks.len() * BLOCK < self.len + n {
            self.blocks.push(Arc::new(Block::new(&self.shape)));
        }
    }

    /// Writes key and value (`[kv_heads * head_dim]` each) of the token at `position` in `layer`.
    /// The block must have been reserved.
    pub(crate) fn store(&mut self, layer: usize, position: usize, k: &[f32], v: &[f32]) {
        let block = Arc::make_mut(&mut self.blocks[position / BLOCK]);
        let size = self.shape.layer();
        let data = &mut block.data[layer * size..][..size];
        store_kv(self.shape.format, data, position % BLOCK, self.shape.kv_heads, self.shape.head_dim, k, v);
    }

    /// One layer's part of every block.
    pub(crate) fn layer(&self, layer: usize) -> impl Iterator<Item = &[u32]> {
        let size = self.shape.layer();
        self.blocks.iter().map(move |block| &block.data[layer * size..][..size])
    }

    /// Adds `n` tokens to the length, after every layer has stored them.
    pub(crate) fn advance(&mut self, n: usize) {
        self.len += n;
    }
}
