//! Muon (<https://kellerjordan.github.io/posts/muon/>): momentum, made nearly orthogonal by a
//! Newton-Schulz iteration.

use crate::config::Precision;
use crate::dense::{Mat, gemm};
use crate::simd;

/// Coefficients of the quintic polynomial by Jordan et al. It is steep at 0, so that five
/// iterations move all singular values to about `0.7..1.2`.
const QUINTIC: (f32, f32, f32) = (3.4445, -4.7750, 2.0315);
/// Number of iterations.
const ITERATIONS: usize = 5;

/// The coefficients of one step.
pub(crate) struct Coefficients {
    pub(crate) lr: f32,
    pub(crate) momentum: f32,
    pub(crate) weight_decay: f32,
    pub(crate) grad_scale: f32,
    pub(crate) precision: Precision,
}

/// Buffers of one worker, which grow to the largest matrix.
#[derive(Default)]
pub(crate) struct Scratch {
    x: Vec<f32>,
    y: Vec<f32>,
    a: Vec<f32>,
    b: Vec<f32>,
}

fn sized(v: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if v.len() < len {
        v.resize(len, 0.0);
    }
    &mut v[..len]
}

/// Updates the matrix `p` `[rows, cols]` and its momentum `m` from the gradient `g`, which is
/// overwritten.
pub(crate) fn update(p: &mut [f32], m: &mut [f32], g: &mut [f32], rows: usize, cols: usize, k: &Coefficients, w: &mut Scratch) {
    simd::scale_add(m, k.momentum, g, k.grad_scale);
    simd::scale_add(g, k.grad_scale, m, k.momentum);
    orthogonalise(g, rows, cols, k.precision, w);
    let scale = (rows as f32 / cols as f32).max(1.0).sqrt();
    simd::scale_add(p, 1.0 - k.lr * k.weight_decay, g, -k.lr * scale);
}

/// Replaces `g` `[rows, cols]` by approximately `U V^T` of its singular value decomposition.
pub(crate) fn orthogonalise(g: &mut [f32], rows: usize, cols: usize, precision: Precision, w: &mut Scratch) {
    // the products are of size short * short, so a tall matrix is transposed
    let (short, long) = (rows.min(cols), rows.max(cols));
    let tall = rows > cols;
    let x = sized(&mut w.x, rows * cols);
    let norm = simd::sum_squares(g).sqrt() as f32 + 1e-7;
    if tall {
        for (i, row) in g.chunks_exact(cols).enumerate() {
            for (j, v) in row.iter().enumerate() {
                x[j * rows + i] = v / norm;
            }
        }
    } else {
        x.iter_mut().zip(&*g).for_each(|(x, g)| *x = g / norm);
    }
    let (a, b) = (sized(&mut w.a, short * short), sized(&mut w.b, short * short));
    let mut x = x;
    let mut y = sized(&mut w.y, rows * cols);
    let (ca, cb, cc) = QUINTIC;
    for _ in 0..ITERATIONS {
        let xm = Mat::rows(x, long);
        gemm(precision, (short, short, long), a, short, xm, xm.t(), 1.0, false);
        // b = cb a + cc a a; then x = ca x + b x
        b.copy_from_slice(a);
        let am = Mat::rows(a, short);
        simd::scale_add(b, cb, a, 0.0);
        gemm(precision, (short, short, short), b, short, am, am, cc, true);
        (0..short).for_each(|i| b[i * short + i] += ca);
        gemm(precision, (short, long, short), y, long, Mat::rows(b, short), xm, 1.0, false);
        std::mem::swap(&mut x, &mut y);
    }
    if tall {
        for (i, row) in g.chunks_exact_mut(cols).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                *v = x[j * rows + i];
            }
        }
    } else {
        g.copy_from_slice(x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_base::random::SplitMix64;

    #[test]
    fn makes_matrices_nearly_orthogonal() {
        let mut scratch = Scratch::default();
        for (rows, cols) in [(24, 24), (16, 40), (40, 16)] {
            let mut rng = SplitMix64::stream(3, rows as u64);
            let mut g: Vec<f32> = (0..rows * cols).map(|_| rng.normal() as f32).collect();
            orthogonalise(&mut g, rows, cols, Precision::F32, &mut scratch);
            // the diagonal of g g^T (or g^T g) lies between the squares of the singular values
            let short = rows.min(cols);
            let at = |i: usize, k: usize| if rows <= cols { g[i * cols + k] } else { g[k * cols + i] };
            for i in 0..short {
                let norm: f32 = (0..rows.max(cols)).map(|k| at(i, k) * at(i, k)).sum();
                assert!((0.3..1.5).contains(&norm), "{rows}x{cols} row {i}: {norm}");
            }
        }
    }

    /// Two singular values through five iterations of the polynomial, compared with the matrix
    /// code.
    #[test]
    fn follows_the_polynomial() {
        let mut scratch = Scratch::default();
        let mut g = vec![3.0f32, 0.0, 0.0, 4.0];
        orthogonalise(&mut g, 2, 2, Precision::F32, &mut scratch);
        for (at, start) in [(0, 0.6f64), (3, 0.8)] {
            let mut s = start;
            for _ in 0..ITERATIONS {
                s = 3.4445 * s - 4.7750 * s.powi(3) + 2.0315 * s.powi(5);
            }
            assert!((f64::from(g[at]) - s).abs() < 1e-4, "{} {s}", g[at]);
        }
    }
}
