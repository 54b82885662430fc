//! The prefix cache: a radix tree of KV blocks, because prompts often begin like an earlier one.
//!
//! Each adapter has its own tree, because keys and values differ by adapter; and so has each owner,
//! because nobody may learn what others ask. An edge is the tokens
//! of one block; only a leaf may have fewer tokens than a block. A block lives as long as the tree
//! or a sequence holds it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use autoact_kernels::BLOCK;

use crate::KvCache;
use crate::kv::{Block, BlockShape};

type Key = Box<[u32]>;
type NodeId = usize;

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tree<'a> {
    /// The adapter's digest; `None` is the base.
    pub(crate) adapter: Option<&'a str>,
    /// Whose prompts; `None`: those that all may share.
    pub(crate) owner: Option<&'a str>,
}

type Root = (Option<String>, Option<String>);

impl Tree<'_> {
    fn root(self) -> Root {
        (self.adapter.map(str::to_owned), self.owner.map(str::to_owned))
    }
}

struct Node {
    key: Key,
    /// `None` for the root of a tree.
    block: Option<Arc<Block>>,
    parent: NodeId,
    /// Sorted, so that the child with the longest common prefix is a neighbour.
    children: BTreeMap<Key, NodeId>,
    used: u64,
}

/// The trees of one model, with a maximum size. The least recently used leaves are evicted first.
pub(crate) struct Prefixes {
    shape: Arc<BlockShape>,
    roots: HashMap<Root, NodeId>,
    nodes: Vec<Option<Node>>,
    free: Vec<NodeId>,
    leaves: BTreeSet<(u64, NodeId)>,
    clock: u64,
    blocks: usize,
    limit: usize,
}

impl Prefixes {
    /// An empty cache of at most `limit` bytes of keys and values; 0 stores nothing.
    pub(crate) fn new(shape: &Arc<BlockShape>, limit: usize) -> Self {
        Self {
            shape: shape.clone(),
            roots: HashMap::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            leaves: BTreeSet::new(),
            clock: 0,
            blocks: 0,
            limit: limit / shape.bytes().max(1),
        }
    }

    /// A cache of the longest known prefix of `tokens`, without the last token, whose logits have
    /// to be computed. Whole blocks are shared. A block that is common in part is copied when it is
    /// written.
    pub(crate) fn take(&mut self, tree: Tree<'_>, tokens: &[u32]) -> KvCache {
        let mut left = &tokens[..tokens.len().saturating_sub(1)];
        let mut blocks = Vec::new();
        let mut len = 0;
        self.clock += 1;
        // Keys of the map are owned: two short strings per request.
        let mut at = self.roots.get(&tree.root()).copied();
        while let Some((child, common)) = at.and_then(|at| self.closest(at, left)) {
            self.touch(child);
            blocks.extend(self.block(child));
            len += common;
            left = &left[common..];
            at = (common == BLOCK).then_some(child);
        }
        KvCache::from_blocks(&self.shape, blocks, len)
    }

    /// Stores the blocks of a sequence with these tokens, and evicts the least recently used ones
    /// beyond the limit. If the tree has an equal block, the sequence takes that one and frees its
    /// own.
    pub(crate) fn put(&mut self, tree: Tree<'_>, tokens: &[u32], cache: &mut KvCache) {
        if self.limit == 0 || cache.is_empty() {
            return;
        }
        self.clock += 1;
        let mut at = self.root(tree);
        for (i, key) in tokens[..cache.len().min(tokens.len())].chunks(BLOCK).enumerate() {
            let known = self.node(at).and_then(|node| node.children.get(key)).copied();
            at = match known {
                Some(child) => {
                    self.touch(child);
                    if let Some(block) = self.block(child) {
                        cache.share(i, &block);
                    }
                    child
                }
                None => {
                    if self.closest(at, key).is_some_and(|(_, common)| common == key.len()) {
                        // This leaf has fewer tokens than an existing one.
                        break;
                    }
                    let Some(block) = cache.blocks().get(i).cloned() else { break };
                    self.drop_shorter(at, key);
                    self.add(at, key, block)
                }
            };
        }
        while self.blocks > self.limit {
            let Some((_, oldest)) = self.leaves.pop_first() else { break };
            self.remove(oldest);
        }
    }

    /// Removes everything: after a failure, a block may be incomplete.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(&self.shape, self.limit * self.shape.bytes().max(1));
    }

    /// Number of blocks.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// The child of `at` with the longest common prefix with `tokens`, and its length, at least 1.
    fn closest(&self, at: NodeId, tokens: &[u32]) -> Option<(NodeId, usize)> {
        let children = &self.node(at)?.children;
        let tokens = &tokens[..tokens.len().min(BLOCK)];
        if let Some(child) = children.get(tokens) {
            return Some((*child, tokens.len())).filter(|(_, common)| *common > 0);
        }
        // In sorted order, one of the neighbours has the longest common prefix.
        let before = children.range::<[u32], _>((Bound::Unbounded, Bound::Excluded(tokens))).next_back();
        let after = children.range::<[u32], _>((Bound::Included(tokens), Bound::Unbounded)).next();
        let common = |(key, child): (&Key, &NodeId)| (common(key, tokens), *child);
        let (common, child) = before.into_iter().chain(after).map(common).max()?;
        (common > 0).then_some((child, common))
    }

    fn root(&mut self, tree: Tree<'_>) -> NodeId {
        let key = tree.root();
        if let Some(root) = self.roots.get(&key) {
            return *root;
        }
        let root = self.place(Node { key: Key::default(), block: None, parent: 0, children: BTreeMap::new(), used: 0 });
        self.roots.insert(key, root);
        root
    }

    fn place(&mut self, node: Node) -> NodeId {
        match self.free.pop() {
            Some(id) => {
                self.nodes[id] = Some(node);
                id
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() - 1
            }
        }
    }

    fn add(&mut self, parent: NodeId, key: &[u32], block: Arc<Block>) -> NodeId {
        let used = self.clock;
        let id = self.place(Node { key: key.into(), block: Some(block), parent, children: BTreeMap::new(), used });
        if let Some(parent_node) = self.nodes[parent].as_mut() {
            self.leaves.remove(&(parent_node.used, parent));
            parent_node.children.insert(key.into(), id);
        }
        self.leaves.insert((used, id));
        self.blocks += 1;
        id
    }

    /// Removes leaves of `at` whose tokens are a proper prefix of `key`.
    fn drop_shorter(&mut self, at: NodeId, key: &[u32]) {
        for n in 1..key.len() {
            let shorter = self.node(at).and_then(|node| node.children.get(&key[..n])).copied();
            if let Some((used, id)) = shorter.and_then(|id| self.node(id).map(|node| (node.used, id))) {
                self.leaves.remove(&(used, id));
                self.remove(id);
            }
        }
    }

    /// Removes a leaf that is no longer in `leaves`.
    fn remove(&mut self, id: NodeId) {
        let Some(node) = self.nodes[id].take() else { return };
        self.free.push(id);
        self.blocks -= 1;
        if let Some(parent) = self.nodes[node.parent].as_mut() {
            parent.children.remove(&node.key);
            if parent.children.is_empty() && parent.block.is_some() {
                self.leaves.insert((parent.used, node.parent));
            }
        }
    }

    fn touch(&mut self, id: NodeId) {
        let now = self.clock;
        if let Some(node) = self.nodes[id].as_mut() {
            if self.leaves.remove(&(node.used, id)) {
                self.leaves.insert((now, id));
            }
            node.used = now;
        }
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id).and_then(Option::as_ref)
    }

    fn block(&self, id: NodeId) -> Option<Arc<Block>> {
        self.node(id).and_then(|node| node.block.clone())
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: Tree<'_> = Tree { adapter: None, owner: None };
    const OTHER: Tree<'_> = Tree { adapter: Some("other"), owner: None };

    fn of(adapter: Option<&str>) -> Tree<'_> {
        Tree { adapter, owner: None }
    }
    use crate::{KvFormat, ModelConfig, ModelDir};

    fn shape() -> Arc<BlockShape> {
        BlockShape::new(&config(), KvFormat::Bf16)
    }

    fn config() -> ModelConfig {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/fixtures/llama2");
        ModelDir::open(dir).unwrap().config().clone()
    }

    /// A cache whose keys all contain their token, so that results can be identified.
    fn filled(shape: &Arc<BlockShape>, tokens: &[u32]) -> KvCache {
        let mut cache = KvCache::new(shape);
        append(&mut cache, tokens);
        cache
    }

    fn append(cache: &mut KvCache, tokens: &[u32]) {
        let config = config();
        let width = config.kv_heads * config.head_dim;
        cache.reserve(tokens.len());
        for (position, token) in (cache.len()..).zip(tokens) {
            let values = vec![*token as f32; width];
            cache.store(0, position, &values, &values);
        }
        cache.advance(tokens.len());
    }

    /// The tokens in a cache's first layer: the first dimension of the first head's keys, which are
    /// the lower halves of the first words.
    fn held(cache: &KvCache) -> Vec<u32> {
        let all = cache.layer(0).flat_map(|block| block[..BLOCK].iter().map(|word| f32::from_bits(word << 16) as u32));
        all.take(cache.len()).collect()
    }

    #[test]
    fn a_beginning_is_found_to_the_token() {
        let shape = shape();
        let mut tree = Prefixes::new(&shape, 1 << 30);
        let tokens: Vec<u32> = (0..40).collect();
        tree.put(BASE, &tokens, &mut filled(&shape, &tokens));
        assert_eq!(tree.blocks(), 3);
        // All but the last token, whose logits are needed.
        assert_eq!(held(&tree.take(BASE, &tokens)), tokens[..39]);
        let branched: Vec<u32> = (0..21).chain(100..130).collect();
        assert_eq!(held(&tree.take(BASE, &branched)), tokens[..21]);
        assert!(tree.take(OTHER, &tokens).is_empty());
        assert!(tree.take(BASE, &[7, 8]).is_empty());
    }

    /// A block that is known in part, up to the middle of a pair of values, is copied when it is
    /// written.
    #[test]
    fn what_follows_a_known_part_of_a_block_changes_only_the_copy() {
        for format in [KvFormat::F32, KvFormat::Bf16] {
            let shape = BlockShape::new(&config(), format);
            let mut tree = Prefixes::new(&shape, 1 << 30);
            let tokens: Vec<u32> = (0..30).collect();
            tree.put(BASE, &tokens, &mut filled(&shape, &tokens));
            let words = |cache: &KvCache| -> Vec<Vec<u32>> { cache.layer(0).map(<[u32]>::to_vec).collect() };
            let stored = words(&tree.take(BASE, &(0..31).collect::<Vec<_>>()));
            let branched: Vec<u32> = (0..21).chain(100..120).collect();
            let mut cache = tree.take(BASE, &branched);
            assert_eq!((cache.len(), shape.live()), (21, 2));
            append(&mut cache, &branched[21..]);
            assert_eq!(shape.live(), 4, "a copy and a new one");
            // as if nothing had been known; what is beyond the tokens may be anything
            let mut fresh = filled(&shape, &branched);
            for cache in [&mut cache, &mut fresh] {
                append(cache, &[7; 7]);
            }
            assert_eq!(words(&cache), words(&fresh), "{format}");
            assert_eq!(words(&tree.take(BASE, &(0..31).collect::<Vec<_>>())), stored, "{format}: the shared one stays");
        }
    }

    #[test]
    fn a_longer_leaf_replaces_a_shorter_one() {
        let shape = shape();
        let mut tree = Prefixes::new(&shape, 1 << 30);
        let tokens: Vec<u32> = (0..40).collect();
        for n in [20, 18, 25, 40, 33] {
            tree.put(BASE, &tokens[..n], &mut filled(&shape, &tokens[..n]));
        }
        assert_eq!((tree.blocks(), shape.live()), (3, 3));
        assert_eq!(tree.take(BASE, &tokens).len(), 39);
    }

    #[test]
    fn equal_blocks_are_kept_once() {
        let shape = shape();
        let mut tree = Prefixes::new(&shape, 1 << 30);
        let tokens: Vec<u32> = (0..32).collect();
        let (mut one, mut two) = (filled(&shape, &tokens), filled(&shape, &tokens));
        assert_eq!(shape.live(), 4);
        tree.put(BASE, &tokens, &mut one);
        tree.put(BASE, &tokens, &mut two);
        assert_eq!((shape.live(), held(&two)), (2, tokens));
    }

    proptest! {
        /// Compares with a list of all stored sequences. Without eviction, the result is the
        /// longest common prefix with the stored content. With a limit, the limit holds and results
        /// are still correct.
        #[test]
        fn agrees_with_a_list(
            sequences in prop::collection::vec((0..2usize, prop::collection::vec(0..3u32, 1..70)), 1..40),
            limit in prop::option::of(0..8usize),
        ) {
            let shape = shape();
            let mut tree = Prefixes::new(&shape, limit.unwrap_or(1_000) * shape.bytes());
            let mut all: Vec<(usize, Vec<u32>)> = Vec::new();
            for (adapter, tokens) in sequences {
                let name = [None, Some("plan")][adapter];
                let found = tree.take(of(name), &tokens);
                let best = all.iter().filter(|(a, _)| *a == adapter).map(|(_, t)| common(t, &tokens)).max();
                let best = best.unwrap_or(0).min(tokens.len() - 1);
                prop_assert_eq!(held(&found), &tokens[..found.len()]);
                prop_assert!(found.len() <= best);
                if limit.is_none() {
                    prop_assert_eq!(found.len(), best);
                }
                drop(found);
                tree.put(of(name), &tokens, &mut filled(&shape, &tokens));
                prop_assert!(tree.blocks() <= limit.unwrap_or(1_000));
                prop_assert_eq!(tree.blocks(), shape.live());
                all.push((adapter, tokens));
            }
            tree.clear();
            prop_assert_eq!(shape.live(), 0);
        }
    }
}
