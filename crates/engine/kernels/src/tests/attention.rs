use super::{Noise, assert_close, bits};
use crate::format::round_bf16;
use crate::simd::testing::{with_each_isa, with_tiles};
use crate::simd::{Isa, Words};
use crate::{AttentionShape, BLOCK, KvFormat, Queries, Team, attend, store_kv};
use proptest::prelude::*;

/// A sequence with keys and values for all positions, in blocks and as plain vectors.
struct Sequence {
    blocks: Vec<Vec<u32>>,
    k: Vec<f32>,
    v: Vec<f32>,
    q: Vec<f32>,
}

/// The number that bf16 holds.
fn rounded(x: f32) -> f32 {
    f32::from_bits(u32::from(round_bf16(x)) << 16)
}

impl Sequence {
    fn new(shape: &AttentionShape, len: usize, noise: &mut Noise) -> Self {
        let width = shape.kv_heads * shape.dim;
        let (k, v, q) = (noise.vec(len * width), noise.vec(len * width), noise.vec(len * shape.heads * shape.dim));
        // slots that were never written must have no influence
        let mut blocks = vec![vec![u32::MAX; shape.block_len()]; len.div_ceil(BLOCK)];
        for t in 0..len {
            let (k, v) = (&k[t * width..][..width], &v[t * width..][..width]);
            store_kv(shape.format, &mut blocks[t / BLOCK], t % BLOCK, shape.kv_heads, shape.dim, k, v);
        }
        Self { blocks, k, v, q }
    }

    fn blocks(&self) -> Vec<&[u32]> {
        self.blocks.iter().map(|b| &b[..]).collect()
    }

    /// The attention of the query at a position, in f64, over keys and values as they are stored,
    /// and over scaled queries rounded to bf16 if the kernels multiply pairs of them.
    fn expected(&self, shape: &AttentionShape, pairs: bool, position: usize) -> Vec<f64> {
        let (dim, group) = (shape.dim, shape.heads / shape.kv_heads);
        let mut out = vec![];
        for h in 0..shape.heads {
            let scale = 1.0 / (dim as f32).sqrt();
            let q = self.q[(position * shape.heads + h) * dim..][..dim].iter().map(|q| q * scale);
            let q: Vec<f32> = q.map(|q| if pairs { rounded(q) } else { q }).collect();
            let stored = |x: &f32| if shape.format == KvFormat::F32 { *x } else { rounded(*x) };
            let at = |data: &'_ [f32], t: usize, d: usize| f64::from(stored(&data[(t * shape.kv_heads + h / group) * dim + d]));
            let seen = (position + 1).saturating_sub(shape.window)..position + 1;
            let scores = seen.clone().map(|t| q.iter().enumerate().map(|(d, q)| f64::from(*q) * at(&self.k, t, d)).sum::<f64>());
            let weights: Vec<f64> = scores.map(f64::exp).collect();
            let sum: f64 = weights.iter().sum();
            out.extend((0..dim).map(|d| seen.clone().zip(&weights).map(|(t, w)| w / sum * at(&self.v, t, d)).sum::<f64>()));
        }
        out
    }
}

const FORMATS: [KvFormat; 2] = [KvFormat::F32, KvFormat::Bf16];

impl Sequence {
    /// Asserts that all queries have the attention of plain arithmetic.
    fn check(&self, team: &Team, shape: &AttentionShape, isa: &str) {
        let pairs = matches!(Words::of(Isa::get(), shape.format), Words::Pairs | Words::Tiles);
        let len = self.q.len() / (shape.heads * shape.dim);
        let expected: Vec<f64> = (0..len).flat_map(|t| self.expected(shape, pairs, t)).collect();
        // A weight in bf16 is wrong by 1/512 at most, and so is their sum; values are at most 1.
        let tolerance = if pairs { 1.0 / 256.0 } else { 2e-6 };
        assert_close(&some(team, shape, self, 0, len), &expected, tolerance, &format!("{isa} {shape:?}"));
    }
}

/// The attention of the queries `from..to` of a sequence alone.
fn some(team: &Team, shape: &AttentionShape, sequence: &Sequence, from: usize, to: usize) -> Vec<f32> {
    let width = shape.heads * shape.dim;
    let blocks = sequence.blocks();
    let mut out = vec![f32::NAN; (to - from) * width];
    let queries = Queries { row: 0, rows: to - from, first: from, blocks: &blocks[..to.div_ceil(BLOCK)] };
    attend(team, shape, &sequence.q[from * width..to * width], width, &[queries], &mut out);
    out
}

#[test]
fn attention_agrees_with_plain_arithmetic() {
    let team = Team::new(2).unwrap();
    for (heads, kv_heads, dim, window, len) in [
        (1, 1, 1, usize::MAX, 3),
        (3, 1, 8, usize::MAX, 40),
        (9, 3, 64, usize::MAX, 300),
        (14, 2, 64, 100, 290),
        (4, 4, 80, 7, 150),
        (2, 1, 37, usize::MAX, 130),
        (8, 2, 128, 130, 400),
    ] {
        for format in FORMATS {
            let shape = AttentionShape { heads, kv_heads, dim, window, format };
            let sequence = Sequence::new(&shape, len, &mut Noise::new(11));
            with_each_isa(|isa| sequence.check(&team, &shape, isa));
        }
    }
}

#[test]
fn sequences_together_are_as_alone() {
    for format in FORMATS {
        together(AttentionShape { heads: 6, kv_heads: 2, dim: 32, window: usize::MAX, format });
    }
}

fn together(shape: AttentionShape) {
    let (width, stride) = (192, 200);
    let lens = [(500, 1), (20, 20), (290, 17), (1, 1)];
    let mut noise = Noise::new(1);
    let sequences: Vec<Sequence> = lens.iter().map(|(len, _)| Sequence::new(&shape, *len, &mut noise)).collect();
    let team = Team::new(3).unwrap();
    with_each_isa(|isa| {
        let blocks: Vec<Vec<&[u32]>> = sequences.iter().map(|s| s.blocks()).collect();
        let (mut row, mut q, mut queries) = (2, vec![0.0; 2 * stride], vec![]);
        for ((s, (len, rows)), blocks) in sequences.iter().zip(lens).zip(&blocks) {
            queries.push(Queries { row, rows, first: len - rows, blocks });
            for t in len - rows..len {
                q.extend_from_slice(&s.q[t * width..][..width]);
                q.extend([f32::NAN; 8]);
            }
            row += rows;
        }
        let mut out = vec![0.0; row * width];
        attend(&team, &shape, &q, stride, &queries, &mut out);
        for ((s, (len, rows)), queries) in sequences.iter().zip(lens).zip(&queries) {
            let alone = some(&team, &shape, s, len - rows, len);
            assert_eq!(bits(&out[queries.row * width..][..rows * width]), bits(&alone), "{isa}");
        }
        assert!(out[..2 * width].iter().all(|x| *x == 0.0), "rows of nobody stay as they are");
    });
}

/// Values that are not finite, and keys, of a position that a query does not see.
#[test]
fn what_a_query_does_not_see_has_no_influence() {
    let team = Team::new(2).unwrap();
    let one = |x: &[f32]| -> Vec<u32> { x.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect() };
    for (heads, kv_heads, dim, window) in [(6, 2, 24, usize::MAX), (6, 2, 64, 20), (3, 1, 33, 45), (20, 1, 16, usize::MAX)] {
        for format in FORMATS {
            let shape = AttentionShape { heads, kv_heads, dim, window, format };
            let (len, width, kv) = (300, heads * dim, kv_heads * dim);
            let mut sequence = Sequence::new(&shape, len, &mut Noise::new(3));
            for (t, key, value) in [(50, 0.5, f32::INFINITY), (137, f32::NAN, f32::NAN), (280, f32::INFINITY, 1.0)] {
                store_kv(format, &mut sequence.blocks[t / BLOCK], t % BLOCK, kv_heads, dim, &vec![key; kv], &vec![value; kv]);
            }
            with_each_isa(|isa| {
                let whole = some(&team, &shape, &sequence, 0, len);
                assert!(whole[..50 * width].iter().all(|x| x.is_finite()), "{isa} {shape:?}");
                assert!(whole[50 * width..51 * width].iter().all(|x| !x.is_finite()), "{isa} {shape:?}");
                for t in (30..160).chain(270..len) {
                    let alone = some(&team, &shape, &sequence, t, t + 1);
                    assert_eq!(one(&alone), one(&whole[t * width..][..width]), "{isa} {shape:?} {t}");
                    let strange = [50, 137, 280].iter().any(|at| t >= *at && t - at < window);
                    assert!(strange || alone.iter().all(|x| x.is_finite()), "{isa} {shape:?} {t}");
                }
            });
        }
    }
}

/// Needs a tile unit; elsewhere there is the model alone.
#[test]
fn attention_on_the_machines_tiles_is_that_on_modelled_ones() {
    let team = Team::new(2).unwrap();
    for (heads, kv_heads, dim, window, len) in [
        (9, 3, 64, usize::MAX, 530),
        (14, 2, 37, 100, 300),
        (5, 1, 80, usize::MAX, 70),
        (60, 1, 16, usize::MAX, 40),
        (2, 2, 128, 300, 600),
        (1, 1, 1, 5, 40),
    ] {
        let shape = AttentionShape { heads, kv_heads, dim, window, format: KvFormat::Bf16 };
        let sequence = Sequence::new(&shape, len, &mut Noise::new(21));
        let mut found = vec![];
        with_tiles(|_| {
            let whole = some(&team, &shape, &sequence, 0, len);
            let last = some(&team, &shape, &sequence, len - 1, len);
            assert_eq!(bits(&last), bits(&whole[whole.len() - last.len()..]));
            found.push(bits(&whole));
        });
        assert!(found.iter().all(|x| *x == found[0]), "{shape:?}");
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let team = Team::new(2).unwrap();
    let shape = AttentionShape { heads: 4, kv_heads: 2, dim: 8, window: usize::MAX, format: KvFormat::F32 };
    let block = vec![0; shape.block_len()];
    let blocks: Vec<&[u32]> = vec![&block; 2];
    let short: Vec<&[u32]> = vec![&block, &block[1..]];
    let queries = Queries { row: 0, rows: 2, first: 20, blocks: &blocks };
    let refused = |shape: AttentionShape, sequences: &[Queries<'_>], q: usize, stride: usize, out: usize| {
        let (q, mut out) = (vec![0.0; q], vec![0.0; out]);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attend(&team, &shape, &q, stride, sequences, &mut out))).is_err()
    };
    assert!(!refused(shape, &[queries], 64, 32, 64));
    assert!(!refused(shape, &[Queries { rows: 0, row: 99, ..queries }], 64, 32, 64), "no rows");
    assert!(refused(shape, &[queries], 63, 32, 64), "few queries");
    assert!(refused(shape, &[queries], 64, 32, 63), "few outputs");
    assert!(refused(shape, &[queries], 64, 31, 64), "narrow rows");
    assert!(refused(shape, &[queries, queries], 64, 32, 64), "a row twice");
    assert!(refused(shape, &[Queries { first: 31, ..queries }], 64, 32, 64), "few blocks");
    assert!(refused(shape, &[Queries { first: usize::MAX, ..queries }], 64, 32, 64), "far too few blocks");
    assert!(refused(shape, &[Queries { blocks: &short, ..queries }], 64, 32, 64), "a short block");
    assert!(refused(AttentionShape { kv_heads: 3, ..shape }, &[queries], 64, 32, 64), "uneven heads");
    assert!(refused(AttentionShape { format: KvFormat::Bf16, ..shape }, &[queries], 64, 32, 64), "blocks of the other format");
    assert!(refused(AttentionShape { window: 0, ..shape }, &[queries], 64, 32, 64), "no window");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// The property on which batching, chunked prefill and prefix caching depend.
    #[test]
    fn a_query_has_the_same_bits_in_any_company(
        seed in any::<u64>(), kv_heads in 1usize..3, group in 1usize..8, dim in prop::sample::select(&[7usize, 16, 24, 64, 96][..]),
        len in 1usize..420, window in prop::sample::select(&[1usize, 30, 128, 200, usize::MAX][..]), threads in 1usize..4,
        format in prop::sample::select(&FORMATS[..]), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let shape = AttentionShape { heads: kv_heads * group, kv_heads, dim, window, format };
        let sequence = Sequence::new(&shape, len, &mut Noise::new(seed));
        let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(len)).chain([0, len]).collect();
        cuts.sort_unstable();
        with_each_isa(|isa| {
            let whole = some(&Team::new(1).unwrap(), &shape, &sequence, 0, len);
            let team = Team::new(threads).unwrap();
            let pieces: Vec<f32> = cuts.windows(2).flat_map(|c| some(&team, &shape, &sequence, c[0], c[1])).collect();
            assert_eq!(bits(&pieces), bits(&whole), "{isa}");
            let last = some(&Team::new(3).unwrap(), &shape, &sequence, len - 1, len);
            assert_eq!(bits(&last), bits(&whole[whole.len() - last.len()..]), "{isa}");
        });
    }

    /// Compares with the reference, whatever the shape and the window.
    #[test]
    fn any_shape_agrees_with_plain_arithmetic(
        seed in any::<u64>(), kv_heads in 1usize..3, group in 1usize..8, dim in 1usize..100, len in 1usize..200,
        window in prop_oneof![1usize..200, Just(usize::MAX)], format in prop::sample::select(&FORMATS[..]),
    ) {
        let shape = AttentionShape { heads: kv_heads * group, kv_heads, dim, window, format };
        let sequence = Sequence::new(&shape, len, &mut Noise::new(seed));
        let team = Team::new(2).unwrap();
        with_each_isa(|isa| sequence.check(&team, &shape, isa));
    }
}
