//! The model against arithmetic by hand; products on the modelled tiles against their definition;
//! the machine's unit against the model, where there is one.

use proptest::prelude::*;

use super::model::{self, Model};
use super::{ROW, SIDE, Shapes, Square, Tiles};
use crate::simd::testing::{cases, converts_pairs, emulated, with_each_isa, with_tiles};
use crate::tests::{Noise, bits, encode};
use crate::{Format, Inputs, Matrix, Part, Team, linear, to_bf16};

/// The sum that `TDPBF16PS` gives for one row of `a` and one column of `b`.
fn sum(c: f32, a: &[u16], b: &[u16]) -> f32 {
    let pairs = |x: &[u16]| -> Vec<u32> { x.chunks(2).map(|x| u32::from(x[0]) | u32::from(*x.get(1).unwrap_or(&0)) << 16).collect() };
    let (a, b) = (pairs(a), pairs(b));
    let mut columns = [[0; SIDE]; SIDE];
    for (row, b) in columns.iter_mut().zip(&b) {
        row[3] = *b;
    }
    let mut sums = [c.to_bits(); SIDE];
    model::add_bf16_row(&mut sums, &a, &columns);
    f32::from_bits(sums[3])
}

/// An f32 that is a bf16, as bf16.
fn half(x: f32) -> u16 {
    assert_eq!(x.to_bits() & 0xffff, 0, "{x} is no bf16");
    (x.to_bits() >> 16) as u16
}

#[test]
fn even_and_odd_products_are_summed_apart() {
    let big = 2f32.powi(30);
    let of = |c: f32, a: &[f32]| sum(c, &a.iter().map(|x| half(*x)).collect::<Vec<_>>(), &vec![half(1.0); a.len()]);
    // in the order of the numbers, 1 would be lost in `big` and the sum would be 0
    assert_eq!(of(0.0, &[big, 1.0, -big, 0.0]), 1.0);
    assert_eq!(of(0.0, &[big, 0.0, 1.0, 0.0, -big, 0.0]), 0.0, "lost in the chain of even ones");
    // the sums are added to each other, then to what is there
    assert_eq!(of(-big, &[big, 1.0]), 0.0);
    assert_eq!(of(1.0, &[big, -big]), 1.0);
}

#[test]
fn products_are_not_rounded_before_they_are_added() {
    // (1 + 2^-7)^2 - 1 = 2^-6 + 2^-14, and a product of 16 bits that does not fit beside 1
    let x = 1.0 + 2f32.powi(-7);
    assert_eq!(sum(0.0, &[half(-1.0), 0, half(x)], &[half(1.0), 0, half(x)]), 2f32.powi(-6) + 2f32.powi(-14));
    // overflow of the product alone is no infinity
    let (a, b) = (2f32.powi(100), 2f32.powi(28));
    let below = sum(0.0, &[half(-2f32.powi(127)), 0, half(a)], &[half(1.0), 0, half(b)]);
    assert_eq!(below, 2f32.powi(127));
}

#[test]
fn denormal_numbers_count_as_zero() {
    let denormal = f32::from_bits(0x0040_0000);
    assert_eq!(sum(0.0, &[half(denormal)], &[half(2f32.powi(100))]), 0.0);
    assert_eq!(sum(0.0, &[half(2f32.powi(100))], &[half(denormal)]), 0.0);
    assert_eq!(sum(f32::from_bits(1), &[0], &[0]).to_bits(), 0, "what was there before");
    // a denormal result: half of the smallest normal number
    let small = f32::MIN_POSITIVE;
    assert_eq!(sum(0.0, &[half(small)], &[half(0.5)]).to_bits(), 0);
    assert_eq!(sum(0.0, &[half(small), 0, half(-small)], &[half(1.5), 0, half(1.0)]).to_bits(), 0, "the difference is denormal");
    // the second sum is a normal number less 2^-152, which rounds to it; less 2^-150, which does not
    let less = |e: i32| sum(0.0, &[half(small), 0, half(-2f32.powi(-76))], &[half(1.0), 0, half(2f32.powi(e + 76))]);
    assert_eq!(less(-152), small);
    assert_eq!(less(-151), small, "a tie goes to the even one");
    assert_eq!(less(-150).to_bits(), 0);
}

#[test]
fn infinities_and_signs() {
    let (inf, one) = (half(f32::INFINITY), half(1.0));
    assert_eq!(sum(0.0, &[inf], &[one]), f32::INFINITY);
    assert!(sum(0.0, &[inf, inf], &[one, half(-1.0)]).is_nan());
    assert!(sum(0.0, &[inf], &[0]).is_nan());
    assert!(sum(0.0, &[half(f32::NAN)], &[0]).is_nan());
    assert_eq!(sum(f32::MAX, &[half(2f32.powi(127))], &[one]), f32::INFINITY);
    // sums begin with +0
    assert_eq!(sum(-0.0, &[half(-0.0)], &[one]).to_bits(), 0);
}

/// The product of a weight row and an input row in bf16, by definition: a sum for every stretch of
/// 32 columns.
fn bf16_product(w: &[u8], x: &[f32]) -> f32 {
    let w: Vec<u16> = w.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
    let mut bytes = vec![];
    to_bf16(x, &mut bytes);
    let x: Vec<u16> = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
    w.chunks(32).zip(x.chunks(32)).fold(0.0, |c, (w, x)| sum(c, w, x))
}

/// The same in Q8_0: the weights are rounded to bf16 before.
fn q8_0_product(w: &[u8], x: &[f32]) -> f32 {
    let mut row = vec![0.0; x.len()];
    Matrix::new(Format::Q8_0, w, 1, x.len()).unwrap().row_to_f32(0, &mut row);
    let mut bytes = vec![];
    // of these numbers, unlike those of inputs, denormal ones become zero
    let normal: Vec<f32> = row.iter().map(|w| if w.abs() < f32::MIN_POSITIVE { 0f32.copysign(*w) } else { *w }).collect();
    to_bf16(&normal, &mut bytes);
    bf16_product(&bytes, x)
}

fn products(threads: usize, weight: Matrix<'_>, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (team, mut inputs) = (Team::new(threads).unwrap(), Inputs::new());
    inputs.set_with(&team, weight.format(), x, weight.cols(), false);
    let mut y = vec![f32::NAN; x.len() / weight.cols() * weight.rows()];
    linear(&team, &inputs, &[Part { weight, bias, column: 0 }], &[], &mut y, weight.rows());
    y
}

/// The bits of numbers; all NaN are one.
fn comparable(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}

/// Every number of inputs around the sizes of a tile, and so many that weights are copied, with
/// weights and columns that end inside of one, and with numbers that are not ordinary.
#[test]
fn products_are_what_their_definition_says() {
    const MOST: usize = 131;
    let odd = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-42, -1e-40, f32::MIN_POSITIVE, -0.0, f32::MAX, 3e38, 0.0];
    for format in [Format::Bf16, Format::Q8_0] {
        for (cols, rows) in [(32, 16), (96, 37), (64, 1), (35, 50), (1, 17), (32 * 18, 33)] {
            if format.row_bytes(cols).is_none() || format == Format::Q8_0 && !converts_pairs() {
                continue;
            }
            for strange in [false, true] {
                let mut noise = Noise::new(11);
                let (mut w, mut x) = (noise.vec(rows * cols), noise.vec(MOST * cols));
                if strange {
                    for (i, odd) in odd.iter().enumerate() {
                        w[i * 7919 % (rows * cols)] = *odd;
                        x[i * 6271 % (MOST * cols)] = *odd;
                    }
                }
                let w = encode(format, &w, cols);
                let weight = Matrix::new(format, &w, rows, cols).unwrap();
                let product = if format == Format::Bf16 { bf16_product } else { q8_0_product };
                let w = || w.chunks(format.row_bytes(cols).unwrap());
                let expected: Vec<f32> = x.chunks(cols).flat_map(|x| w().map(move |w| product(w, x))).collect();
                with_tiles(|isa| {
                    for n in (1..=35).step_by(if strange { 17 } else { 1 }).chain([64, 96, MOST]) {
                        let found = products(1 + n % 3, weight, &x[..n * cols], None);
                        assert_eq!(comparable(&found), comparable(&expected[..n * rows]), "{isa} {format} {n} x {cols} x {rows}");
                    }
                });
            }
        }
    }
}

/// Large enough for several tasks and for more than one stretch of inputs.
#[test]
fn large_products_are_cut_without_a_trace() {
    for (format, cols, rows, n) in [(Format::Bf16, 4864, 40, 140), (Format::Q8_0, 3072, 80, 100)] {
        let mut noise = Noise::new(2);
        let (w, x, bias) = (encode(format, &noise.vec(rows * cols), cols), noise.vec(n * cols), noise.vec(rows));
        let weight = Matrix::new(format, &w, rows, cols).unwrap();
        with_tiles(|isa| {
            let all = products(3, weight, &x, Some(&bias));
            for i in [0, 31, 32, n - 1] {
                let alone = products(1, weight, &x[i * cols..][..cols], Some(&bias));
                assert_eq!(bits(&all[i * rows..][..rows]), bits(&alone), "{isa} {format} {i}");
            }
        });
    }
}

#[test]
fn the_machines_transposition_is_the_portable_one() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        let mut noise = Noise::new(4);
        let x: Square = std::array::from_fn(|_| std::array::from_fn(|_| noise.next().to_bits()));
        // SAFETY: it needs AVX-512 F alone.
        let found = unsafe { <super::unit::Unit as Tiles>::transpose(&x) };
        assert_eq!(found, model::transpose(&x));
    }
}

/// The results of a few instructions.
///
/// # Safety
/// The machine must have the instructions of `T`.
unsafe fn results<T: Tiles>(unit: &mut T, shapes: Shapes, a: &Square, b: &Square, c: &Square) -> Vec<Square> {
    let mut found = vec![[[0; SIDE]; SIDE]; 4];
    // SAFETY: every square has room for a tile.
    unsafe {
        unit.configure(shapes);
        unit.load::<4>(a.as_ptr().cast(), ROW);
        unit.load::<5>(b.as_ptr().cast(), ROW);
        unit.load::<6>(b.as_ptr().cast(), ROW);
        unit.load::<7>(a.as_ptr().cast(), ROW);
        unit.load::<0>(c.as_ptr().cast(), ROW);
        unit.load::<3>(c.as_ptr().cast(), ROW);
        unit.zero::<1>();
        unit.add_bf16::<0, 4, 6>();
        unit.add_bf16::<1, 4, 7>();
        unit.add_bf16::<2, 5, 6>();
        unit.add_bf16::<3, 5, 7>();
        unit.store::<0>(found[0].as_mut_ptr().cast(), ROW);
        unit.store::<1>(found[1].as_mut_ptr().cast(), ROW);
        unit.store::<2>(found[2].as_mut_ptr().cast(), ROW);
        unit.store::<3>(found[3].as_mut_ptr().cast(), ROW);
    }
    found
}

/// Pairs of bf16, of which many are not ordinary.
fn pair() -> impl Strategy<Value = u32> {
    let number = prop_oneof![
        6 => any::<u16>(),
        3 => 0x3f00u16..0x4100,
        2 => 0x0000u16..0x0200,
        2 => 0x8000u16..0x8200,
        1 => 0x1000u16..0x2000,
        1 => Just(0x7f80u16),
    ];
    (number.clone(), number).prop_map(|(low, high)| u32::from(low) | u32::from(high) << 16)
}

fn square() -> impl Strategy<Value = Square> {
    proptest::collection::vec(pair(), SIDE * SIDE).prop_map(|x| std::array::from_fn(|i| std::array::from_fn(|j| x[i * SIDE + j])))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    /// What makes the model the reference: the machine's unit gives the same bits (any NaN for a
    /// NaN). Needs a tile unit: `tests/tiles/run` emulates one.
    #[test]
    fn the_machines_tiles_are_the_modelled_ones(
        a in square(), b in square(), c in square(), bytes in 1usize..=16, n in 1usize..=16, m in 1usize..=16,
    ) {
        #[cfg(target_arch = "x86_64")]
        if super::unit::present() {
            let shapes = Shapes { bytes: 4 * bytes, inputs: [n, m] };
            // SAFETY: the machine has tiles; this is the thread's only unit.
            let found = unsafe { results(&mut super::unit::Unit::new(), shapes, &a, &b, &c) };
            // SAFETY: the model needs nothing.
            let expected = unsafe { results(&mut Model::new(), shapes, &a, &b, &c) };
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let plain = |x: &Square| -> Vec<u32> {
                    x.iter().flatten().map(|x| comparable(&[f32::from_bits(*x)])[0]).collect()
                };
                prop_assert_eq!(plain(found), plain(expected), "result {} of {:?}", i, shapes);
            }
        }
        let _ = (&a, &b, &c, bytes, n, m);
    }
}

/// Says whether the tests of the machine's tiles had any.
#[test]
fn tiles_of_this_machine() {
    let mut found = vec![];
    with_each_isa(|isa| found.push(isa));
    if emulated() {
        assert_eq!(found, ["amx"]);
    } else if !found.contains(&"amx") {
        println!("SKIPPED: this machine has no tile units; `tests/tiles/run` emulates them");
    }
}
