//! Matrix products: `out = alpha * (A1 B1 + A2 B2 + ..) [+ addend]`.
//!
//! The sum of one element runs over the segments in order, and in each over the words of the summed
//! index in order, in one f32. It never depends on how the product is cut into tiles, and so not on
//! the vector width. `simd/portable.rs` defines it; `simd/tile/` computes the same with AVX2 and AVX-512.
//! Tile units (`simd/tiles.rs`) sum products of bf16 in another order, which depends on the segments
//! alone; `simd/tiles/model.rs` defines it.

use crate::config::Precision;
use crate::element::{Bf16, Element, depth};
use crate::panels::Panels;
use crate::simd;

/// The order of the sums, by name. A checkpoint remembers it, so that a resumed run keeps it.
pub(crate) fn order(precision: Precision) -> &'static str {
    let tiles = match precision {
        Precision::F32 => simd::has_tiles::<f32>(),
        Precision::Bf16 => simd::has_tiles::<Bf16>(),
    };
    if tiles { "tiles" } else { "sequential" }
}

/// The left factor of a segment, `[m, k]`.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a, E> {
    /// Rows that are `ld` elements apart. With an odd `k`, the element after a row's last is read
    /// and has to be finite.
    Rows { data: &'a [E], ld: usize },
    /// Words `[depth, m]`, `ld` words apart, as [`simd::interleave`] makes them of `[k, m]`.
    Columns { words: &'a [u32], ld: usize },
}

/// The right factor of a segment, `[k, n]`.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub(crate) words: &'a [u32],
    /// Words between the starts of two panels of [`Panels::COLUMNS`] columns.
    pub(crate) panel: usize,
    /// Words between two steps of a panel.
    pub(crate) step: usize,
}

impl<'a> Right<'a> {
    /// Words `[depth, n]`, `ld` words apart, as [`simd::interleave`] makes them.
    pub(crate) fn rows(words: &'a [u32], ld: usize) -> Self {
        Self { words, panel: Panels::COLUMNS, step: ld }
    }
}

/// A term of the sum: `depth` words of the summed index.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a, E> {
    pub(crate) left: Left<'a, E>,
    pub(crate) right: Right<'a>,
    pub(crate) depth: usize,
}

impl<'a, E: Element> Segment<'a, E> {
    /// No term.
    pub(crate) fn none() -> Self {
        Self { left: Left::Rows { data: &[], ld: 0 }, right: Right::rows(&[], 0), depth: 0 }
    }

    /// Rows of `k` elements, `ld` apart, times packed columns.
    pub(crate) fn rows(data: &'a [E], ld: usize, panels: &'a Panels) -> Self {
        Self { left: Left::Rows { data, ld }, right: panels.right(), depth: panels.depth() }
    }

    /// The transpose of interleaved rows times interleaved rows: a sum over `k` tokens.
    pub(crate) fn outer(left: &'a [u32], left_ld: usize, right: &'a [u32], right_ld: usize, k: usize) -> Self {
        Self { left: Left::Columns { words: left, ld: left_ld }, right: Right::rows(right, right_ld), depth: depth::<E>(k) }
    }
}

/// Where a product goes; rows are `ld` elements apart.
pub(crate) enum Target<'a, E> {
    /// Replaces f32.
    Store { out: &'a mut [f32], ld: usize },
    /// Adds to f32.
    Add { out: &'a mut [f32], ld: usize },
    /// Replaces f32 by the sum with an addend `[m, ld]`.
    Sum { out: &'a mut [f32], ld: usize, addend: &'a [f32] },
    /// Rounds to elements.
    Round { out: &'a mut [E], ld: usize },
    /// Rounds the sum with an addend `[m, ld]` to elements.
    RoundSum { out: &'a mut [E], ld: usize, addend: &'a [f32] },
}

impl<E> Target<'_, E> {
    fn fits(&self, m: usize, n: usize) -> bool {
        let fits = |len: usize, ld: usize| n <= ld && (m - 1) * ld + n <= len;
        match self {
            Self::Store { out, ld } | Self::Add { out, ld } => fits(out.len(), *ld),
            Self::Sum { out, ld, addend } => fits(out.len(), *ld) && fits(addend.len(), *ld),
            Self::Round { out, ld } => fits(out.len(), *ld),
            Self::RoundSum { out, ld, addend } => fits(out.len(), *ld) && fits(addend.len(), *ld),
        }
    }
}

/// Computes a product of `[m, n]` elements on this thread.
///
/// # Panics
/// If a factor or the result does not fit in its slice.
pub(crate) fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(target.fits(m, n), "the product does not fit");
    for segment in segments.iter().filter(|segment| segment.depth > 0) {
        let steps = segment.depth - 1;
        let left = match segment.left {
            Left::Rows { data, ld } => (m - 1) * ld + segment.depth * E::PER_WORD <= data.len(),
            Left::Columns { words, ld } => steps * ld + m <= words.len(),
        };
        assert!(left, "the left factor does not fit");
        let (Right { words, panel, step }, last) = (segment.right, (n - 1) / Panels::COLUMNS);
        assert!(last == 0 || panel >= Panels::COLUMNS, "the panels overlap");
        assert!(last * panel + steps * step + n - last * Panels::COLUMNS <= words.len(), "the right factor does not fit");
    }
    simd::product(m, n, alpha, segments, target);
}
