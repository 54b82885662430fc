//! Rotary position embedding (<https://arxiv.org/abs/2104.09864>) in Hugging Face's layout: element
//! `i` of a head is rotated with element `i + dim / 2`.

/// Cosines and sines for every position.
pub(crate) struct RopeTable {
    /// `[positions, dim / 2]`.
    pub(crate) cos: Vec<f32>,
    /// `[positions, dim / 2]`.
    pub(crate) sin: Vec<f32>,
    /// `-sin`, for the inverse rotation, which is the gradient.
    pub(crate) neg_sin: Vec<f32>,
}

impl RopeTable {
    pub(crate) fn new(positions: usize, dim: usize, theta: f64) -> Self {
        let half = dim / 2;
        let angles = (0..positions * half).map(|i| {
            let (p, j) = (i / half, i % half);
            p as f64 / theta.powf(2.0 * j as f64 / dim as f64)
        });
        let cos = angles.clone().map(|a| a.cos() as f32).collect();
        let sin: Vec<f32> = angles.map(|a| a.sin() as f32).collect();
        let neg_sin = sin.iter().map(|s| -s).collect();
        Self { cos, sin, neg_sin }
    }
}

/// Rotates the first `heads` heads of every row of `x` in place; rows are `ld` elements apart. For
/// the halves `a`, `b` of a head: `a' = a cos - b sin`, `b' = b cos + a sin`.
#[inline(always)]
pub(crate) fn rotate<const FMA: bool>(x: &mut [f32], ld: usize, heads: usize, dim: usize, positions: &[u32], cos: &[f32], sin: &[f32]) {
    let half = dim / 2;
    for (row, p) in x.chunks_exact_mut(ld).zip(positions) {
        let p = *p as usize * half;
        let (cos, sin) = (&cos[p..p + half], &sin[p..p + half]);
        for head in row[..heads * dim].chunks_exact_mut(dim) {
            let (a, b) = head.split_at_mut(half);
            for (((a, b), c), s) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                let (x, y) = (*a, *b);
                *a = x * c - y * s;
                *b = y * c + x * s;
            }
        }
    }
}
