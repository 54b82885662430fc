//! Elementwise arithmetic that the compiler vectorises.
//!
//! Every function has the parameter `FMA`: whether the target has fused multiply-add. Without it,
//! `mul_add` is a slow library call.

use crate::element::Element;

/// Number of lanes of the widest vector. Sums are kept per lane, so that their order is fixed.
pub(crate) const LANES: usize = 16;

/// `a * b + c`.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `e^x` for finite `x` with a relative error of about 1e-7. Below -87 it is about 1.6e-38, not 0.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    // adding 1.5 * 2^23 rounds to an integer, which is then in the low bits
    const MAGIC: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = fma::<FMA>(n, -0.693_359_4, x);
    let r = fma::<FMA>(n, 2.121_944_4e-4, r);
    let p = fma::<FMA>(1.987_569_1e-4, r, 1.398_199_9e-3);
    let p = fma::<FMA>(p, r, 8.333_452e-3);
    let p = fma::<FMA>(p, r, 4.166_579_6e-2);
    let p = fma::<FMA>(p, r, 1.666_666_5e-1);
    let p = fma::<FMA>(p, r, 0.5);
    let p = fma::<FMA>(p, r * r, r) + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).wrapping_add(127) << 23;
    p * f32::from_bits(exponent)
}

/// `e^x` in place.
#[cfg(test)]
#[inline(always)]
pub(crate) fn exp_slice<const FMA: bool>(x: &mut [f32]) {
    for v in x {
        *v = exp::<FMA>(*v);
    }
}

/// Sum of per-lane results, in a fixed tree order.
#[inline(always)]
pub(crate) fn fold(mut lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Dot product.
#[inline(always)]
pub(crate) fn dot<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut acc = [0.0f32; LANES];
    let (a, a_tail) = a.as_chunks::<LANES>();
    let (b, b_tail) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            acc[i] = fma::<FMA>(a[i], b[i], acc[i]);
        }
    }
    let mut sum = fold(acc, |x, y| x + y);
    for (a, b) in a_tail.iter().zip(b_tail) {
        sum = fma::<FMA>(*a, *b, sum);
    }
    sum
}

/// Largest element; `-inf` for an empty slice.
#[inline(always)]
pub(crate) fn max(x: &[f32]) -> f32 {
    let mut acc = [f32::NEG_INFINITY; LANES];
    let (x, tail) = x.as_chunks::<LANES>();
    for x in x {
        for i in 0..LANES {
            acc[i] = if x[i] > acc[i] { x[i] } else { acc[i] };
        }
    }
    let pick = |a: f32, b: f32| if a > b { a } else { b };
    tail.iter().fold(fold(acc, pick), |a, b| pick(a, *b))
}

/// Replaces `x` by `e^(x * scale - shift)` and returns the sum.
#[inline(always)]
pub(crate) fn exp_sum<const FMA: bool>(x: &mut [f32], scale: f32, shift: f32) -> f32 {
    let mut acc = [0.0f32; LANES];
    let (x, tail) = x.as_chunks_mut::<LANES>();
    for x in x {
        for i in 0..LANES {
            x[i] = exp::<FMA>(fma::<FMA>(x[i], scale, -shift));
            acc[i] += x[i];
        }
    }
    let mut sum = fold(acc, |a, b| a + b);
    for v in tail {
        *v = exp::<FMA>(fma::<FMA>(*v, scale, -shift));
        sum += *v;
    }
    sum
}

/// `dst += src`.
#[inline(always)]
pub(crate) fn add_into<const FMA: bool>(dst: &mut [f32], src: &[f32]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d += s;
    }
}

/// `dst = dst * a + src * b`.
#[inline(always)]
pub(crate) fn scale_add<const FMA: bool>(dst: &mut [f32], a: f32, src: &[f32], b: f32) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d = fma::<FMA>(*d, a, s * b);
    }
}

/// Sum of squares; f32 inside blocks of 4096, f64 across them.
#[inline(always)]
pub(crate) fn sum_squares<const FMA: bool>(x: &[f32]) -> f64 {
    x.chunks(4096).map(|c| f64::from(dot::<FMA>(c, c))).sum()
}

/// A well-mixed 32-bit hash ("lowbias32").
#[inline(always)]
pub(crate) fn hash32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// Nearest elements.
#[inline(always)]
pub(crate) fn round<const FMA: bool, E: Element>(x: &[f32], out: &mut [E]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = E::round(*x);
    }
}

/// A mask of inverted dropout. Element `i` is zeroed if the hash of `key + i` is below `threshold`,
/// and multiplied by `scale` otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mask {
    pub(crate) key: u32,
    pub(crate) threshold: u32,
    pub(crate) scale: f32,
}

impl Mask {
    /// What is left of `x`. There are no branches, so that loops are vectorised.
    #[inline(always)]
    fn of(self, i: u32, x: f32) -> f32 {
        let kept = u32::from(hash32(i) < self.threshold).wrapping_sub(1);
        f32::from_bits((x * self.scale).to_bits() & kept)
    }
}

/// `dst = mask(src)`.
#[inline(always)]
pub(crate) fn dropout<const FMA: bool, E: Element>(src: &[E], dst: &mut [E], mask: Mask) {
    let mut at = mask.key;
    for (d, s) in dst.iter_mut().zip(src) {
        *d = E::round(mask.of(at, s.widen()));
        at = at.wrapping_add(1);
    }
}

/// `x = mask(x)`: the gradient of dropout.
#[inline(always)]
pub(crate) fn mask_in_place<const FMA: bool>(x: &mut [f32], mask: Mask) {
    let mut at = mask.key;
    for x in x {
        *x = mask.of(at, *x);
        at = at.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum relative error of the polynomial.
    const EXP_TOLERANCE: f64 = 2e-7;

    #[test]
    fn exp_is_accurate_everywhere() {
        let mut worst: f64 = 0.0;
        let xs: Vec<f32> = (0..2_000_000).map(|i| -87.0 + i as f32 * (174.0 / 2_000_000.0)).collect();
        let mut fast = xs.clone();
        crate::simd::exp_slice(&mut fast);
        for (x, y) in xs.iter().zip(&fast) {
            let want = f64::from(*x).exp();
            worst = worst.max((f64::from(*y) - want).abs() / want);
            let want_base = f64::from(exp::<false>(*x));
            worst = worst.max((want_base - want).abs() / want);
        }
        assert!(worst < EXP_TOLERANCE, "worst relative error {worst:e}");
        assert_eq!(exp::<true>(0.0), 1.0);
        assert!(exp::<true>(-1000.0) < 2e-38);
        assert!(exp::<true>(1000.0).is_finite());
    }

    #[test]
    fn dropout_keeps_the_mean_and_repeats() {
        let src = vec![1.0f32; 200_000];
        let (mut a, mut b) = (vec![0.0; src.len()], src.clone());
        let mask = Mask { key: 77, threshold: (0.3 * f64::from(u32::MAX)) as u32, scale: 1.0 / 0.7 };
        crate::simd::dropout(&src, &mut a, mask);
        crate::simd::mask_in_place(&mut b, mask);
        let mean = a.iter().sum::<f32>() / src.len() as f32;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert_eq!(a, b);
    }
}
