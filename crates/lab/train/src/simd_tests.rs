use autoact_base::random::SplitMix64;

use super::*;
use crate::config::Precision;
use crate::dense::{Mat, gemm};
use crate::element::Bf16;
use crate::product::{Left, Right};

/// Maximum error of an f32 product of numbers around 1, per `sqrt(k)`.
const F32_TOLERANCE: f64 = 2e-5;
/// The same for bf16 factors, which have 8 bits of precision.
const BF16_TOLERANCE: f64 = 3e-2;

/// Every code path that this CPU supports.
#[test]
fn products_agree_with_the_definition() {
    let best = detect();
    for forced in BASE..=best {
        FORCED.set(forced);
        check_products();
    }
    FORCED.set(UNKNOWN);
}

/// All shapes around the block sizes and all four storage orders, compared with f64 sums.
fn check_products() {
    let mut rng = SplitMix64::stream(1, 0);
    let shapes = [
        (1, 1, 1),
        (12, 32, 16),
        (13, 33, 17),
        (5, 8, 300),
        (121, 47, 31),
        (64, 65, 32),
        (7, 520, 5),
        (250, 16, 515),
        (3, 49, 1030),
        (30, 17, 2),
    ];
    for (m, n, k) in shapes {
        for order in 0..4 {
            let (ta, tb) = (order & 1 == 1, order & 2 == 2);
            let pad = order + 1;
            let mut matrix = |rows: usize, cols: usize| -> (Vec<f32>, usize) {
                let ld = cols + pad;
                ((0..rows * ld).map(|_| rng.normal() as f32).collect(), ld)
            };
            let (a, lda) = if ta { matrix(k, m) } else { matrix(m, k) };
            let (b, ldb) = if tb { matrix(n, k) } else { matrix(k, n) };
            let (start, ldc) = matrix(m, n);
            let at = |i: usize, p: usize| f64::from(if ta { a[p * lda + i] } else { a[i * lda + p] });
            let bt = |p: usize, j: usize| f64::from(if tb { b[j * ldb + p] } else { b[p * ldb + j] });
            let (ma, mb) = (Mat::rows(&a, lda), Mat::rows(&b, ldb));
            let (ma, mb) = (if ta { ma.t() } else { ma }, if tb { mb.t() } else { mb });
            for (precision, tolerance) in [(Precision::F32, F32_TOLERANCE), (Precision::Bf16, BF16_TOLERANCE)] {
                for accumulate in [false, true] {
                    let mut c = start.clone();
                    gemm(precision, (m, n, k), &mut c, ldc, ma, mb, 0.5, accumulate);
                    for i in 0..m {
                        for j in 0..ldc {
                            let before = f64::from(start[i * ldc + j]);
                            let got = f64::from(c[i * ldc + j]);
                            if j >= n {
                                assert_eq!(got, before, "wrote beyond the row");
                                continue;
                            }
                            let sum: f64 = (0..k).map(|p| at(i, p) * bt(p, j)).sum();
                            let want = 0.5 * sum + if accumulate { before } else { 0.0 };
                            let error = (got - want).abs() / (k as f64).sqrt();
                            assert!(error < tolerance, "{m}x{n}x{k} order {order} {precision:?} ({i}, {j}): {got}, want {want}");
                        }
                    }
                }
            }
        }
    }
}

/// Words of random bits: factors and sums of all magnitudes, subnormal ones too, no infinities.
fn words(rng: &mut SplitMix64, count: usize) -> Vec<u32> {
    let half = |rng: &mut SplitMix64| (rng.below(2) << 15 | rng.below(255) << 7 | rng.below(128)) as u32;
    (0..count).map(|_| half(rng) | half(rng) << 16).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}

/// What products are, in plain Rust.
type Definition<E> = fn(usize, usize, f32, &[Segment<'_, E>], Target<'_, E>);

/// A kernel, of instructions that this CPU has.
type Product<E> = unsafe fn(usize, usize, f32, &[Segment<'_, E>], Target<'_, E>);

/// A kernel computes what is defined in plain Rust, to the bit: all tile sizes, both kinds of left
/// factor, several segments, every target.
fn check_bits<E: Element>(extreme: bool, defined: Definition<E>, product: Product<E>) {
    let mut rng = SplitMix64::stream(2, 0);
    for m in (1..=13).chain([25, 61, 250]) {
        for (n, deep) in [(1, 1), (8, 6), (15, 3), (16, 7), (17, 4), (32, 20), (33, 5), (70, 2), (16, 60), (40, 280)] {
            let word = |rng: &mut SplitMix64| {
                let (x, y) = (E::round(rng.normal() as f32), E::round(rng.normal() as f32));
                E::word(x, y)
            };
            let mut make = |count: usize| match extreme {
                true => words(&mut rng, count),
                false => (0..count).map(|_| word(&mut rng)).collect(),
            };
            let (left, short) = (make(deep * m), make(2 * m));
            let (right, shorter) = (make(deep * n), make(2 * n));
            let start: Vec<f32> = (0..m * n).map(|i| i as f32 * 0.37 - 9.0).collect();
            let segments = [
                Segment::<E> { left: Left::Columns { words: &left, ld: m }, right: Right::rows(&right, n), depth: deep },
                Segment::<E> { left: Left::Columns { words: &short, ld: m }, right: Right::rows(&shorter, n), depth: 2 },
            ];
            // the same left factors, as rows
            let rows = |words: &[u32], deep: usize| -> Vec<E> {
                let half = |word: u32, high: bool| match E::PER_WORD {
                    1 => E::round(f32::from_bits(word)),
                    _ => E::round(f32::from_bits(if high { word & 0xffff_0000 } else { word << 16 })),
                };
                let mut out = Vec::new();
                for i in 0..m {
                    for p in 0..deep {
                        out.extend((0..E::PER_WORD).map(|e| half(words[p * m + i], e == 1)));
                    }
                }
                out
            };
            let (left_rows, short_rows) = (rows(&left, deep), rows(&short, 2));
            let in_rows = [
                Segment { left: Left::Rows { data: &left_rows, ld: deep * E::PER_WORD }, ..segments[0] },
                Segment { left: Left::Rows { data: &short_rows, ld: 2 * E::PER_WORD }, ..segments[1] },
            ];
            for segments in [&segments, &in_rows] {
                for add in [false, true] {
                    let target = |out| if add { Target::Add { out, ld: n } } else { Target::Store { out, ld: n } };
                    let (mut want, mut got) = (start.clone(), start.clone());
                    defined(m, n, 0.7, segments, target(&mut want));
                    // SAFETY: the caller found the instructions, and everything fits.
                    unsafe { product(m, n, 0.7, segments, target(&mut got)) };
                    assert_eq!(bits(&got), bits(&want), "{m} x {n}, depth {deep}, extreme {extreme}, add {add}");
                }
                let (mut want, mut got) = (vec![E::default(); m * n], vec![E::default(); m * n]);
                let widened = |x: &[E]| bits(&x.iter().map(|x| x.widen()).collect::<Vec<_>>());
                defined(m, n, 0.7, segments, Target::RoundSum { out: &mut want, ld: n, addend: &start });
                // SAFETY: as above.
                unsafe { product(m, n, 0.7, segments, Target::RoundSum { out: &mut got, ld: n, addend: &start }) };
                assert_eq!(widened(&got), widened(&want), "{m} x {n}, depth {deep}, extreme {extreme}, rounded");
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vector_products_are_the_portable_ones_to_the_bit() {
    if detect() >= AVX2 {
        check_bits::<f32>(false, portable::product::<true, f32>, tile::avx2::product);
    }
    if detect() >= AVX512 {
        check_bits::<f32>(false, portable::product::<true, f32>, tile::avx512::product);
    }
    if detect() >= AVX512_BF16 {
        check_bits::<Bf16>(false, portable::product::<true, Bf16>, tile::avx512::product);
        check_bits::<Bf16>(true, portable::product::<true, Bf16>, tile::avx512::product);
    }
}

/// Products on tiles are what `tiles/model.rs` defines, to the bit: on its model of a unit, and on
/// the machine's unit if it has one.
#[test]
fn products_on_tiles_are_the_defined_ones_to_the_bit() {
    use tiles::model::{definition, product};
    for extreme in [false, true] {
        check_bits::<Bf16>(extreme, definition, product);
        #[cfg(target_arch = "x86_64")]
        if detect() == AMX {
            check_bits::<Bf16>(extreme, definition, tiles::unit::product);
        }
    }
    if detect() != AMX {
        println!("SKIPPED in part: this machine has no tile unit");
    }
}

#[test]
fn the_machines_transposition_exchanges_rows_and_columns() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        let (mut from, mut to) = ([0u32; 16 * 32], [0u32; 16 * 16]);
        from.iter_mut().zip(0..).for_each(|(x, i)| *x = i);
        // SAFETY: the CPU has AVX-512 F, and there are 16 rows of 16 words in each.
        unsafe { autoact_kernels::tile_instructions::transpose(from.as_ptr(), 128, to.as_mut_ptr(), 64) };
        for (at, x) in to.iter().enumerate() {
            assert_eq!(*x as usize, at % 16 * 32 + at / 16);
        }
    }
}

/// The example of each rule of `TDPBF16PS`.
#[test]
fn a_group_on_tiles_sums_first_and_second_elements_apart() {
    let pair = |low: f32, high: f32| Bf16::word(Bf16::round(low), Bf16::round(high));
    let of = |sum: f32, a: &[u32], b: &[u32]| {
        let whole = |x: &[u32]| std::array::from_fn(|i| *x.get(i).unwrap_or(&0));
        tiles::model::group(sum, &whole(a), &whole(b))
    };
    let (big, ones) = (2f32.powi(30), [pair(1.0, 1.0); 3]);
    // in the order of the elements, 1 would be lost in `big`
    assert_eq!(of(0.0, &[pair(big, 1.0), pair(-big, 0.0)], &ones), 1.0);
    assert_eq!(of(0.0, &[pair(big, 0.0), pair(1.0, 0.0), pair(-big, 0.0)], &ones), 0.0);
    // both sums are added to each other, then to what is there
    assert_eq!(of(-big, &[pair(big, 1.0)], &ones), 0.0);
    assert_eq!(of(1.0, &[pair(big, -big)], &ones), 1.0);
    let (tiny, small) = (f32::MIN_POSITIVE, f32::MIN_POSITIVE / 2.0);
    assert_eq!(of(0.0, &[pair(small, 0.0)], &[pair(big, 0.0)]), 0.0);
    assert_eq!(of(0.0, &[pair(tiny, 0.0)], &[pair(0.5, 0.0)]), 0.0);
    assert_eq!(of(small, &[pair(tiny, 0.0)], &ones), tiny);
}

/// The example of each rule of `vdpbf16ps` in `portable.rs`.
#[test]
fn a_step_of_bf16_rounds_twice_and_has_no_subnormal_numbers() {
    let word = |low: f32, high: f32| Bf16::word(Bf16::round(low), Bf16::round(high));
    let step = |sum, x, y| portable::step::<true, Bf16>(sum, x, y);
    // the second element first: 2^24 + 1 is 2^24 (ties to even), 2^24 + 2 is not
    let big = 16_777_216.0;
    assert_eq!(step(big, word(2.0, 1.0), word(1.0, 1.0)), big + 2.0);
    assert_eq!(step(big, word(1.0, 1.0), word(1.0, 1.0)), big);
    // a subnormal factor is zero, and so is a subnormal sum
    let (tiny, small) = (f32::MIN_POSITIVE, f32::MIN_POSITIVE / 2.0);
    assert_eq!(step(0.0, word(small, 0.0), word(big, 0.0)), 0.0);
    assert_eq!(step(0.0, word(tiny, 0.0), word(0.5, 0.0)), 0.0);
    assert_eq!(step(small, word(0.0, 0.0), word(0.0, 0.0)), 0.0);
    assert_eq!(step(tiny, word(tiny, 0.0), word(1.0, 0.0)), 2.0 * tiny);
}
