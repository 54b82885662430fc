//! An exponential function that the compiler can vectorise.

/// `a * b + c`, with a single rounding if `FMA`.
#[inline(always)]
pub(crate) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// e^x within 2 units in the last place for -87 <= x <= 88. `x` is clamped to this range; NaN stays
/// NaN. Branch-free, so that loops over it are vectorised. Range reduction by ln 2, then Cephes'
/// polynomial (<https://www.netlib.org/cephes/>, `expf`).
// The digits are Cephes' own. Trimmed to f32's precision, their source could not be recognised.
#[allow(clippy::excessive_precision)]
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let x = x.clamp(-87.0, 88.0);
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = mul_add::<FMA>(n, -0.693_359_375, x);
    let r = mul_add::<FMA>(n, 2.121_944_4e-4, r);
    let p = 1.987_569_150_0e-4f32;
    let p = mul_add::<FMA>(p, r, 1.398_199_950_7e-3);
    let p = mul_add::<FMA>(p, r, 8.333_451_907_3e-3);
    let p = mul_add::<FMA>(p, r, 4.166_579_589_4e-2);
    let p = mul_add::<FMA>(p, r, 1.666_666_545_9e-1);
    let p = mul_add::<FMA>(p, r, 5.000_000_120_1e-1);
    let y = mul_add::<FMA>(p * r, r, r) + 1.0;
    // The low bits of `shifted` are n; its other bits are shifted out.
    let power = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    y * power
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn exp_agrees_with_the_library() {
        for i in -8_600..8_700 {
            let x = i as f32 / 100.0;
            for found in [exp::<false>(x), exp::<true>(x)] {
                let expected = x.exp();
                assert!((found - expected).abs() <= 3e-7 * expected, "{x}: {found} {expected}");
            }
        }
        assert!(exp::<true>(0.0) == 1.0 && exp::<false>(0.0) == 1.0);
        assert!(exp::<true>(-1000.0) < 1e-37 && exp::<true>(1000.0).is_finite() && exp::<true>(f32::NAN).is_nan());
    }
}
