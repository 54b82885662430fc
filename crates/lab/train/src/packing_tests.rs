#![allow(clippy::single_range_in_vec_init)] // one invocation

use super::*;
use autoact_base::random::SplitMix64;
use proptest::prelude::*;

/// Documents of random length. The first token of document `i` is `i`, which identifies it.
struct Random {
    at: u64,
    seed: u64,
    low: usize,
    high: usize,
}

impl DocumentSource for Random {
    fn next(&mut self) -> Document {
        let mut rng = SplitMix64::stream(self.seed, self.at);
        let n = self.low + rng.below(self.high - self.low + 1);
        let mut tokens = vec![self.at as u32];
        tokens.extend((1..n).map(|_| rng.below(1000) as u32));
        let mut loss: Vec<bool> = (0..n).map(|_| rng.below(3) > 0).collect();
        loss[n - 1] = true;
        self.at += 1;
        Document { tokens, loss, ..Document::default() }
    }
    fn seek(&mut self, index: u64) {
        self.at = index;
    }
}

fn config(rows: usize, micro_rows: usize, seq_len: usize) -> TrainConfig {
    TrainConfig { rows, micro_rows, seq_len, ..TrainConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn no_token_is_lost_and_none_crosses(seed in 0u64..1000, micro_rows in 1usize..5, high in 3usize..90) {
        let cfg = config(8, micro_rows, 64);
        let mut source = Random { at: 0, seed, low: 2, high };
        let mut reference = Random { at: 0, seed, low: 2, high };
        let mut packer = Packer::new(&mut source, &cfg, 100_000, &DataPosition::default(), PackStats::default()).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut position = DataPosition::default();
        for _ in 0..5 {
            let batch = packer.batch().unwrap();
            position = batch.position.clone();
            prop_assert_eq!(batch.micros.len(), cfg.micro_batches());
            for m in &batch.micros {
                prop_assert!(m.tokens.len() <= cfg.micro_capacity());
                prop_assert_eq!(m.sequences.iter().map(|one| one.rows.len()).sum::<usize>(), m.tokens.len());
                prop_assert_eq!(m.base, 0);
                let mut loss = m.loss_rows.iter().zip(&m.targets);
                for Sequence { rows, .. } in &m.sequences {
                    let (start, len) = (&rows.start, &rows.len());
                    let index = u64::from(m.tokens[*start]);
                    prop_assert!(seen.insert(index), "document {} twice", index);
                    reference.seek(index);
                    let doc = prepare(index, reference.next(), &Limits::new(&cfg, 100_000)).unwrap().0.unwrap();
                    prop_assert_eq!(&m.tokens[*start..start + len], &doc.tokens[..*len]);
                    prop_assert!((0..*len).all(|i| m.positions[start + i] == i as u32));
                    for i in (1..=*len).filter(|i| doc.loss[*i]) {
                        let (row, target) = loss.next().unwrap();
                        prop_assert_eq!(*row as usize, start + i - 1);
                        prop_assert_eq!(*target, doc.tokens[i]);
                    }
                }
                prop_assert!(loss.next().is_none());
            }
        }
        // every document was used, is pending, was never drawn, or has no target
        let waiting: std::collections::BTreeSet<u64> = position.pending.iter().copied().collect();
        let mut missing = 0;
        for i in 0..position.next {
            missing += u64::from(!seen.contains(&i) && !waiting.contains(&i));
        }
        prop_assert!(missing <= packer.stats.without_target);
    }
}

#[test]
fn padding_is_small() {
    let cfg = config(16, 2, 320);
    let mut source = Random { at: 0, seed: 1, low: 150, high: 320 };
    let start = DataPosition::default();
    let mut packer = Packer::new(&mut source, &cfg, 100_000, &start, PackStats::default()).unwrap();
    let mut stats = PackStats::default();
    for _ in 0..50 {
        stats = packer.batch().unwrap().stats;
    }
    let filled = stats.positions as f64 / stats.capacity as f64;
    assert!(filled > 0.95, "only {filled:.3} filled");
}

#[test]
fn position_continues_exactly() {
    let cfg = config(4, 2, 64);
    let mut a = Random { at: 0, seed: 9, low: 2, high: 90 };
    let start = DataPosition::default();
    let mut one = Packer::new(&mut a, &cfg, 100_000, &start, PackStats::default()).unwrap();
    let third = (0..3).map(|_| one.batch().unwrap()).last().unwrap();
    let mut b = Random { at: 0, seed: 9, low: 2, high: 90 };
    let mut two = Packer::new(&mut b, &cfg, 100_000, &third.position, third.stats).unwrap();
    for _ in 0..3 {
        let (x, y) = (one.batch().unwrap(), two.batch().unwrap());
        assert_eq!(x.micros, y.micros);
        assert_eq!(x.position, y.position);
        assert_eq!(x.stats, y.stats);
    }
}

fn limits(seq_len: usize, capacity: usize) -> Limits {
    Limits { seq_len, capacity, vocab: 10, adapters: true }
}

#[test]
fn bad_documents_are_errors() {
    let doc = Document { tokens: vec![1, 2], loss: vec![true], ..Document::default() };
    assert!(matches!(prepare(3, doc, &limits(8, 8)), Err(TrainError::Document { index: 3, .. })));
    let doc = Document { tokens: vec![1, 10], loss: vec![true; 2], ..Document::default() };
    assert!(matches!(prepare(4, doc, &limits(8, 8)), Err(TrainError::Document { index: 4, .. })));
    for invocations in [vec![0..3, 2..4], vec![3..9], vec![Range { start: 4, end: 2 }]] {
        let doc = Document { tokens: vec![1; 8], loss: vec![true; 8], invocations };
        assert!(matches!(prepare(6, doc, &limits(8, 8)), Err(TrainError::Document { index: 6, .. })));
    }
    let doc = Document { tokens: vec![1; 20], loss: vec![true; 20], ..Document::default() };
    let (cut, was_cut) = prepare(5, doc, &limits(8, 8)).unwrap();
    assert!(was_cut);
    assert_eq!(cut.unwrap().tokens.len(), 9);
}

/// The history of all invocations is read once, each invocation after its own part of it.
#[test]
fn invocations_share_their_history() {
    let tokens: Vec<u32> = (0..10).collect();
    let mut loss = vec![false; 10];
    for target in [1, 4, 7, 8] {
        loss[target] = true;
    }
    let doc = Document { tokens, loss, invocations: vec![3..5, 6..10] };
    assert_eq!(doc.positions(), 6 + 1 + 3);
    let plain = Document { tokens: vec![9, 8, 7], loss: vec![true; 3], ..Document::default() };
    let docs = [plain, prepare(0, doc.clone(), &limits(16, 16)).unwrap().0.unwrap()];
    let micro = MicroBatch::new(&docs);
    assert_eq!(micro.base, 6);
    assert_eq!(micro.tokens, [0, 1, 2, 3, 4, 5, 9, 8, 3, 6, 7]);
    assert_eq!(micro.positions, [0, 1, 2, 3, 4, 5, 0, 1, 3, 6, 7]);
    let sequence = |rows, context| Sequence { rows, context };
    assert_eq!(micro.sequences, [sequence(0..6, 0..0), sequence(6..8, 0..0), sequence(8..9, 0..3), sequence(9..11, 0..6)]);
    // the target outside of the invocations does not count
    assert_eq!((&micro.loss_rows[..], &micro.targets[..]), (&[6, 7, 8, 9, 10][..], &[8, 7, 4, 7, 8][..]));
    // without adapters, and with too little room
    let whole = prepare(0, doc.clone(), &Limits { adapters: false, ..limits(16, 16) }).unwrap().0.unwrap();
    assert!(whole.invocations.is_empty());
    let (first, was_cut) = prepare(0, doc.clone(), &limits(16, 8)).unwrap();
    assert_eq!((first.unwrap().invocations, was_cut), (vec![3..5], true));
    assert_eq!(prepare(0, Document { invocations: vec![5..7], ..doc }, &limits(16, 8)).unwrap(), (None, false));
}
