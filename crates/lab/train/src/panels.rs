//! Right factors, packed: panels of 32 columns, in each the words of one step next to each other.

use crate::aligned::Aligned;
use crate::element::{Element, depth};
use crate::product::Right;
use crate::simd;

/// A packed right factor `[k, n]`.
#[derive(Debug)]
pub(crate) struct Panels {
    words: Aligned<u32>,
    depth: usize,
}

impl Panels {
    /// Columns of a panel: two vectors of AVX-512. The last panel is padded with zeros.
    pub(crate) const COLUMNS: usize = 32;

    /// Room for a factor of at most `k` elements of the summed index and `n` columns.
    pub(crate) fn room<E: Element>(k: usize, n: usize) -> Self {
        Self { words: Aligned::new(depth::<E>(k) * n.next_multiple_of(Self::COLUMNS)), depth: 0 }
    }

    /// The transpose of `rows` `[n, k]`, `ld` apart: what a weight `[outputs, inputs]` is in the
    /// forward pass.
    pub(crate) fn of_transposed<S: Element, E: Element>(rows: &[S], ld: usize, n: usize, k: usize) -> Self {
        let mut panels = Self::room::<E>(k, n);
        panels.pack_transposed::<S, E>(rows, ld, n, k);
        panels
    }

    /// `rows` `[k, n]`, `ld` apart: what a weight `[outputs, inputs]` is in the backward pass.
    pub(crate) fn of_rows<S: Element, E: Element>(rows: &[S], ld: usize, k: usize, n: usize) -> Self {
        let mut panels = Self::room::<E>(k, n);
        panels.pack_rows::<S, E>(rows, ld, k, n);
        panels
    }

    /// As [`Panels::of_transposed`], in place.
    pub(crate) fn pack_transposed<S: Element, E: Element>(&mut self, rows: &[S], ld: usize, n: usize, k: usize) {
        self.depth = depth::<E>(k);
        let panel = self.depth * Self::COLUMNS;
        for (out, first) in self.words.chunks_exact_mut(panel.max(1)).zip((0..n).step_by(Self::COLUMNS)) {
            simd::pack_transposed::<S, E>(&rows[first * ld..], ld, (n - first).min(Self::COLUMNS), k, out);
        }
    }

    /// As [`Panels::of_rows`], in place.
    pub(crate) fn pack_rows<S: Element, E: Element>(&mut self, rows: &[S], ld: usize, k: usize, n: usize) {
        self.depth = depth::<E>(k);
        let panel = self.depth * Self::COLUMNS;
        for (out, first) in self.words.chunks_exact_mut(panel.max(1)).zip((0..n).step_by(Self::COLUMNS)) {
            simd::pack_rows::<S, E>(&rows[first..], ld, k, (n - first).min(Self::COLUMNS), out);
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn right(&self) -> Right<'_> {
        Right { words: &self.words, panel: self.depth * Self::COLUMNS, step: Self::COLUMNS }
    }
}

/// One panel of [`Panels::pack_transposed`]: `n` rows of `k` elements.
#[inline(always)]
pub(crate) fn pack_transposed<const FMA: bool, S: Element, E: Element>(rows: &[S], ld: usize, n: usize, k: usize, out: &mut [u32]) {
    out.fill(0);
    let convert = |x: S| E::round(x.widen());
    for j in 0..n {
        let row = &rows[j * ld..j * ld + k];
        let words = row.chunks_exact(E::PER_WORD);
        let rest = words.remainder();
        let mut steps = out.chunks_exact_mut(Panels::COLUMNS);
        for (word, step) in words.zip(&mut steps) {
            step[j] = E::word(convert(word[0]), convert(word[E::PER_WORD - 1]));
        }
        if let (Some(step), [last, ..]) = (steps.next(), rest) {
            step[j] = E::word(convert(*last), E::default());
        }
    }
}

/// One panel of [`Panels::pack_rows`]: `k` rows of `n` elements.
#[inline(always)]
pub(crate) fn pack_rows<const FMA: bool, S: Element, E: Element>(rows: &[S], ld: usize, k: usize, n: usize, out: &mut [u32]) {
    let convert = |x: S| E::round(x.widen());
    for (p, step) in out.chunks_exact_mut(Panels::COLUMNS).enumerate() {
        let (first, second) = (p * E::PER_WORD, (p + 1) * E::PER_WORD - 1);
        let a = &rows[first * ld..first * ld + n];
        let (words, pad) = step.split_at_mut(n);
        if second < k {
            let b = &rows[second * ld..second * ld + n];
            for ((word, a), b) in words.iter_mut().zip(a).zip(b) {
                *word = E::word(convert(*a), convert(*b));
            }
        } else {
            for (word, a) in words.iter_mut().zip(a) {
                *word = E::word(convert(*a), E::default());
            }
        }
        pad.fill(0);
    }
}

/// Words `[depth, n]` (`n` words apart) of `rows` `[k, n]`, `ld` elements apart, with the sum over
/// `k`: both factors of a weight gradient.
#[inline(always)]
pub(crate) fn interleave<const FMA: bool, E: Element>(rows: &[E], ld: usize, k: usize, n: usize, out: &mut [u32]) {
    for (p, words) in out.chunks_exact_mut(n).take(k.div_ceil(E::PER_WORD)).enumerate() {
        let (first, second) = (p * E::PER_WORD, (p + 1) * E::PER_WORD - 1);
        let a = &rows[first * ld..first * ld + n];
        if second < k {
            let b = &rows[second * ld..second * ld + n];
            for ((word, a), b) in words.iter_mut().zip(a).zip(b) {
                *word = E::word(*a, *b);
            }
        } else {
            for (word, a) in words.iter_mut().zip(a) {
                *word = E::word(*a, E::default());
            }
        }
    }
}
