use super::{Noise, assert_close, bits, encode};
use crate::simd::testing::{cases, converts_pairs, with_each_isa};
use crate::{Format, Inputs, LowRank, Matrix, Part, Team, linear};
use proptest::prelude::*;

const FORMATS: [Format; 3] = [Format::F32, Format::Bf16, Format::Q8_0];

fn exact(matrix: &Matrix<'_>) -> Vec<f32> {
    let mut all = vec![0.0; matrix.rows() * matrix.cols()];
    all.chunks_mut(matrix.cols()).enumerate().for_each(|(i, row)| matrix.row_to_f32(i, row));
    all
}

fn product(x: &[f32], w: &[f32], cols: usize) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    x.chunks(cols).flat_map(|x| w.chunks(cols).map(move |w| dot(x, w))).collect()
}

/// The error that rounding of inputs may cause, for inputs and weights between -1 and 1.
fn tolerance(format: Format, cols: usize) -> f64 {
    let n = (cols as f64).sqrt();
    match format {
        Format::F32 => 1e-6 * n,
        Format::Bf16 => 4e-3 * n,
        Format::Q8_0 => 6e-3 * n,
    }
}

#[test]
fn products_agree_with_plain_arithmetic() {
    let team = Team::new(2).unwrap();
    let shapes = [
        (1, 1, 1),
        (1, 5, 3),
        (2, 31, 18),
        (3, 64, 17),
        (5, 100, 33),
        (7, 96, 64),
        (8, 160, 66),
        (13, 577, 20),
        (70, 320, 130),
        (1, 1600, 300),
    ];
    for (n, cols, rows) in shapes {
        for format in FORMATS {
            if format.row_bytes(cols).is_none() || format == Format::Q8_0 && !converts_pairs() {
                continue;
            }
            let mut noise = Noise::new(7);
            let (x, w, bias) = (noise.vec(n * cols), noise.vec(rows * cols), noise.vec(rows));
            // an offset of one byte, so that the weights are not aligned
            let bytes = [vec![0], encode(format, &w, cols)].concat();
            let weight = Matrix::new(format, &bytes[1..], rows, cols).unwrap();
            let mut expected = product(&x, &exact(&weight), cols);
            expected.chunks_mut(rows).for_each(|y| y.iter_mut().zip(&bias).for_each(|(y, b)| *y += f64::from(*b)));
            with_each_isa(|isa| {
                let mut inputs = Inputs::new();
                inputs.set(format, &x, cols);
                let mut y = vec![f32::NAN; n * rows];
                linear(&team, &inputs, &[Part { weight, bias: Some(&bias), column: 0 }], &[], &mut y, rows);
                assert_close(&y, &expected, tolerance(format, cols), &format!("{isa} {format} {n} x {cols} x {rows}"));
            });
        }
    }
}

#[test]
fn parts_and_updates_go_to_their_columns_and_rows() {
    let team = Team::new(3).unwrap();
    let (n, cols, rows) = (9, 64, [40, 7, 30]);
    let width = 85;
    let columns = [3, 43, 52];
    let mut noise = Noise::new(3);
    let x = noise.vec(n * cols);
    let weights: Vec<Vec<f32>> = rows.iter().map(|r| noise.vec(r * cols)).collect();
    // one update spans two parts, two overlap, one has no rows, one has rank 0
    let updates = [(0..4, 10, 38, 3), (2..9, 3, 40, 17), (4..4, 3, 40, 2), (8..9, 60, 1, 20), (0..9, 52, 5, 0)];
    let factors = updates.clone().map(|(_, _, outputs, rank)| (noise.vec(rank * cols), noise.vec(outputs * rank)));
    let low = |((rows, column, _, rank), (a, b))| LowRank { rows, column, rank, a, b };
    let factors = factors.iter().map(|(a, b)| (&a[..], &b[..]));
    let low: Vec<LowRank<'_>> = updates.into_iter().zip(factors).map(low).collect();
    for format in FORMATS.into_iter().filter(|format| *format != Format::Q8_0 || converts_pairs()) {
        let bytes: Vec<Vec<u8>> = weights.iter().map(|w| encode(format, w, cols)).collect();
        let matrices: Vec<Matrix<'_>> = bytes.iter().zip(rows).map(|(b, r)| Matrix::new(format, b, r, cols).unwrap()).collect();
        let mut expected = vec![f64::from(-7.0f32); n * width];
        for (m, (c, r)) in matrices.iter().zip(columns.into_iter().zip(rows)) {
            for (y, p) in expected.chunks_mut(width).zip(product(&x, &exact(m), cols).chunks(r)) {
                y[c..c + r].copy_from_slice(p);
            }
        }
        for u in low.iter().filter(|u| u.rank > 0) {
            for i in u.rows.clone() {
                let inner: Vec<f32> = product(&x[i * cols..][..cols], u.a, cols).iter().map(|x| *x as f32).collect();
                let outputs = u.b.len() / u.rank;
                let b: Vec<f32> = (0..u.b.len()).map(|i| u.b[i % u.rank * outputs + i / u.rank]).collect();
                let outer = product(&inner, &b, u.rank);
                expected[i * width + u.column..].iter_mut().zip(outer).for_each(|(y, o)| *y += o);
            }
        }
        with_each_isa(|isa| {
            let mut inputs = Inputs::new();
            inputs.set(format, &x, cols);
            let mut y = vec![-7.0; n * width];
            let parts: Vec<Part<'_>> = matrices.iter().zip(columns).map(|(w, column)| Part { weight: *w, bias: None, column }).collect();
            linear(&team, &inputs, &parts, &low, &mut y, width);
            assert_close(&y, &expected, 8.0 * tolerance(format, cols), &format!("{isa} {format}"));
        });
    }
}

#[test]
fn odd_numbers_stay_in_their_rows() {
    let team = Team::new(2).unwrap();
    for format in FORMATS {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-42] {
            let (cols, rows) = (96, 20);
            let mut noise = Noise::new(5);
            let mut x = noise.vec(3 * cols);
            let mut w = noise.vec(rows * cols);
            x[cols + 50] = odd;
            let good = encode(format, &w, cols);
            w[7 * cols + 95] = odd;
            let bad = encode(format, &w, cols);
            with_each_isa(|isa| {
                let run = |bytes: &[u8], x: &[f32]| {
                    let mut inputs = Inputs::new();
                    inputs.set(format, x, cols);
                    let mut y = vec![0.0; x.len() / cols * rows];
                    let weight = Matrix::new(format, bytes, rows, cols).unwrap();
                    linear(&team, &inputs, &[Part { weight, bias: None, column: 0 }], &[], &mut y, rows);
                    y
                };
                let (with_bad, with_good) = (run(&bad, &x), run(&good, &x));
                for row in [0, 2] {
                    let alone = run(&good, &x[row * cols..][..cols]);
                    assert_eq!(bits(&with_good[row * rows..][..rows]), bits(&alone), "{isa} {format} {odd}");
                    let others = |y: &[f32]| [&y[..7], &y[8..]].concat();
                    assert_eq!(bits(&others(&with_bad[row * rows..][..rows])), bits(&others(&alone)), "{isa} {format} {odd}");
                }
            });
        }
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let team = Team::new(1).unwrap();
    let w = vec![0u8; 4 * 8 * 4];
    let weight = Matrix::new(Format::F32, &w, 4, 8).unwrap();
    let (a, b) = (vec![0.0; 16], vec![0.0; 8]);
    let refused = |cols: usize, format, parts: &[Part<'_>], updates: &[LowRank<'_>], len: usize, width: usize| {
        let mut inputs = Inputs::new();
        inputs.set(format, &vec![0.0; 2 * cols], cols);
        let mut y = vec![0.0; len];
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| linear(&team, &inputs, parts, updates, &mut y, width))).is_err()
    };
    let part = Part { weight, bias: None, column: 0 };
    let update = LowRank { rows: 0..2, column: 0, rank: 2, a: &a, b: &b };
    assert!(!refused(8, Format::F32, &[part], std::slice::from_ref(&update), 8, 4));
    assert!(refused(9, Format::F32, &[part], &[], 8, 4), "other columns");
    assert!(refused(8, Format::Bf16, &[part], &[], 8, 4), "another format");
    assert!(refused(8, Format::F32, &[part], &[], 7, 4), "too few outputs");
    assert!(refused(8, Format::F32, &[Part { column: 1, ..part }], &[], 8, 4), "beyond the row");
    assert!(refused(8, Format::F32, &[Part { column: usize::MAX, ..part }], &[], 8, 4), "far beyond the row");
    assert!(refused(8, Format::F32, &[part, Part { column: 3, ..part }], &[], 20, 10), "the same column twice");
    assert!(refused(8, Format::F32, &[Part { bias: Some(&a), ..part }], &[], 8, 4), "a long bias");
    let with = |update: LowRank<'_>| refused(8, Format::F32, &[part], &[update], 10, 5);
    assert!(!with(update.clone()));
    assert!(with(LowRank { rows: 0..3, ..update.clone() }), "a row too many");
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = 2..1;
    assert!(with(LowRank { rows: backwards, ..update.clone() }), "rows backwards");
    assert!(with(LowRank { column: 1, ..update.clone() }), "a column that nobody writes");
    assert!(with(LowRank { rank: 3, ..update.clone() }), "another rank");
    assert!(with(LowRank { column: usize::MAX, ..update }), "far beyond the row");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    /// The property on which batching, chunked prefill and prefix caching depend.
    #[test]
    fn a_row_has_the_same_bits_in_any_company(
        seed in any::<u64>(), format in prop::sample::select(&FORMATS[..]), n in 1usize..40, threads in 1usize..4,
        groups in 1usize..10, more in 0usize..32, rows in 1usize..400, rank in 1usize..20, at in any::<prop::sample::Index>(),
    ) {
        let cols = if format == Format::Q8_0 { 32 * groups } else { 32 * groups + more };
        let mut noise = Noise::new(seed);
        let (x, w, bias) = (noise.vec(n * cols), encode(format, &noise.vec(rows * cols), cols), noise.vec(rows));
        let (a, b) = (noise.vec(rank * cols), noise.vec(rows * rank));
        let weight = Matrix::new(format, &w, rows, cols).unwrap();
        let (i, cut) = (at.index(n), at.index(n) / 2);
        let width = rows + 5;
        with_each_isa(|isa| {
            let run = |threads: usize, from: usize, to: usize| {
                let team = Team::new(threads).unwrap();
                let mut inputs = Inputs::new();
                inputs.set(format, &x[from * cols..to * cols], cols);
                let mut y = vec![0.0; (to - from) * width];
                let update = LowRank { rows: from.max(cut) - from..to.max(cut) - from, column: 2, rank, a: &a, b: &b };
                linear(&team, &inputs, &[Part { weight, bias: Some(&bias), column: 2 }], &[update], &mut y, width);
                y
            };
            let all = run(threads, 0, n);
            let alone = run(1, i, i + 1);
            assert_eq!(bits(&all[i * width..][..width]), bits(&alone), "{isa}: alone");
            let rest = run(3, i, n);
            assert_eq!(bits(&all[i * width..]), bits(&rest), "{isa}: with those after it");
        });
    }
}
