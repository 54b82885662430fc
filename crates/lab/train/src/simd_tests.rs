use autoact_base::random::SplitMix64;

use super::*;

/// Maximum error of an f32 product of numbers around 1, per `sqrt(k)`.
const F32_TOLERANCE: f64 = 2e-5;
/// The same for bf16 factors, which have 8 bits of precision.
const BF16_TOLERANCE: f64 = 3e-2;

/// Every code path that this CPU supports. Other tests may run meanwhile, and must pass on all
/// paths.
#[test]
fn products_agree_with_the_definition() {
    let best = detect();
    for forced in BASE..=best {
        LEVEL.store(forced, Ordering::Relaxed);
        check_products();
    }
    LEVEL.store(best, Ordering::Relaxed);
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
