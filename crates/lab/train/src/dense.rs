//! Products of matrices that are used once, which are packed for it.

use crate::config::Precision;
use crate::element::{Bf16, Element, depth};
use crate::panels::Panels;
use crate::product::{Left, Segment, Target, product};
use crate::simd;

/// A matrix inside a slice: rows `ld` elements apart, or the transpose of such a matrix.
#[derive(Clone, Copy)]
pub(crate) struct Mat<'a> {
    data: &'a [f32],
    ld: usize,
    transposed: bool,
}

impl<'a> Mat<'a> {
    /// Contiguous rows that are `ld` elements apart.
    pub(crate) fn rows(data: &'a [f32], ld: usize) -> Self {
        Self { data, ld, transposed: false }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }
}

/// `dst = (accumulate ? dst : 0) + alpha * a * b` with `dst` `[m, n]` (rows `ld` elements apart),
/// `a` `[m, k]` and `b` `[k, n]`, on this thread.
///
/// # Panics
/// If a matrix does not fit in its slice.
#[allow(clippy::too_many_arguments)]
pub(crate) fn gemm(
    precision: Precision,
    dims: (usize, usize, usize),
    dst: &mut [f32],
    ld: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    alpha: f32,
    accumulate: bool,
) {
    match precision {
        Precision::F32 => packed::<f32>(dims, dst, ld, a, b, alpha, accumulate),
        Precision::Bf16 => packed::<Bf16>(dims, dst, ld, a, b, alpha, accumulate),
    }
}

fn packed<E: Element>((m, n, k): (usize, usize, usize), dst: &mut [f32], ld: usize, a: Mat<'_>, b: Mat<'_>, alpha: f32, accumulate: bool) {
    let panels = match b.transposed {
        true => Panels::of_transposed::<f32, E>(b.data, b.ld, n, k),
        false => Panels::of_rows::<f32, E>(b.data, b.ld, k, n),
    };
    let (rows, width) = if a.transposed { (k, m) } else { (m, k) };
    let padded = width.next_multiple_of(E::PER_WORD);
    let mut rounded = vec![E::default(); rows * padded];
    for (from, to) in a.data.chunks(a.ld).zip(rounded.chunks_exact_mut(padded.max(1))) {
        simd::round(&from[..width], &mut to[..width]);
    }
    let mut words = vec![0u32; if a.transposed { depth::<E>(k) * m } else { 0 }];
    let left = if a.transposed {
        simd::interleave(&rounded, padded, k, m, &mut words);
        Left::Columns { words: &words, ld: m }
    } else {
        Left::Rows { data: &rounded, ld: padded }
    };
    let segment = Segment { left, right: panels.right(), depth: panels.depth() };
    let target = if accumulate { Target::Add { out: dst, ld } } else { Target::Store { out: dst, ld } };
    product(m, n, alpha, &[segment], target);
}
