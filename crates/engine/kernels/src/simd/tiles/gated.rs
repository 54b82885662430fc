//! Products of many rows with the two matrices of a gated layer, in bf16. Sums of both meet while
//! they are in the first-level cache, and what they give is packed at once for the next product:
//! neither the sums nor what they give are ever whole in memory in f32.

use super::many::{self, Pairs, Sums};
use super::weights::WeightTile;
use super::{Inputs, SIDE, Tiles, bias};
use crate::exp::mul_add;
use crate::format::pair as pair_of;
use crate::rows::silu_times;
use crate::simd::panel::Panel;

/// Rows of both matrices and inputs, and where the results go.
pub(in super::super) struct Gated<'a> {
    /// Both matrices with their inputs, gate before up. Their outputs are not used.
    pub(in super::super) panels: [Panel; 2],
    /// The first row among those of the whole matrices.
    pub(in super::super) unit: usize,
    /// The rows of a whole matrix.
    pub(in super::super) units: usize,
    /// The first input row among those of the target.
    pub(in super::super) token: usize,
    /// The inputs of the next product, packed for tiles, with so many words of each row.
    pub(in super::super) packed: *mut u32,
    pub(in super::super) words: usize,
    /// The same in f32, so many numbers apart, or null.
    pub(in super::super) exact: *mut f32,
    pub(in super::super) width: usize,
    pub(in super::super) updates: &'a [GatedUpdate<'a>],
}

/// A low-rank update of both products, whose outputs are one after the other.
pub(in super::super) struct GatedUpdate<'a> {
    /// The rows that it applies to.
    pub(in super::super) rows: std::ops::Range<usize>,
    /// The first output that it changes, and their number.
    pub(in super::super) column: usize,
    pub(in super::super) outputs: usize,
    pub(in super::super) rank: usize,
    /// For every 16 rows of the target, from those of the first row on, and every rank: the factor
    /// of each row.
    pub(in super::super) inner: Vec<[f32; SIDE]>,
    /// The factor `[rank, outputs]`.
    pub(in super::super) b: &'a [f32],
}

impl GatedUpdate<'_> {
    /// Adds the update of `column` to the sums of some rows from `token` on, which begin a group.
    #[inline(always)]
    fn add(&self, token: usize, column: usize, y: &mut [u32; SIDE]) {
        let Some(column) = column.checked_sub(self.column).filter(|column| *column < self.outputs) else { return };
        if token >= self.rows.end || token + SIDE <= self.rows.start {
            return;
        }
        let group = token / SIDE - self.rows.start / SIDE;
        let mut sum = [0f32; SIDE];
        for (sum, y) in sum.iter_mut().zip(&*y) {
            *sum = f32::from_bits(*y);
        }
        for (inner, b) in self.inner[group * self.rank..][..self.rank].iter().zip(self.b[column..].iter().step_by(self.outputs)) {
            for (sum, inner) in sum.iter_mut().zip(inner) {
                *sum = mul_add::<true>(*inner, *b, *sum);
            }
        }
        let whole = token >= self.rows.start && token + SIDE <= self.rows.end;
        for (row, (y, sum)) in (token..).zip(y.iter_mut().zip(sum)) {
            if whole || self.rows.contains(&row) {
                *y = sum.to_bits();
            }
        }
    }
}

/// All rows.
///
/// # Safety
/// As for [`super::run`], for both panels, which have the same shapes and inputs. Inputs begin at
/// a group of the target, which must have their rows; no other thread may access these units of it.
#[inline(always)]
pub(super) unsafe fn products<T: Tiles>(unit: &mut T, p: &Gated<'_>) {
    // SAFETY: the caller's guarantees.
    unsafe { many::products(unit, &p.panels[0], p) };
}

impl<T: Tiles> Pairs<T> for Gated<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.panels[0].rows.div_ceil(SIDE)
    }

    #[inline(always)]
    fn tiles(&self, pair: usize) -> [WeightTile; 2] {
        [WeightTile::new(&self.panels[0], pair * SIDE), WeightTile::new(&self.panels[1], pair * SIDE)]
    }

    #[inline(always)]
    unsafe fn finish(&self, pair: usize, x: &Inputs, sums: &mut Sums) {
        let first = self.unit + pair * SIDE;
        let [gates, ups] = sums;
        for (c, (gate, up)) in gates.iter_mut().zip(ups).enumerate() {
            let (n, token) = (x.rows[c], self.token + x.first + c * SIDE);
            if n == 0 {
                continue;
            }
            // SAFETY: the panels have these rows, and the target these rows and units.
            unsafe {
                for (i, square) in [&mut *gate, &mut *up].into_iter().enumerate() {
                    if !self.panels[i].bias.is_null() {
                        let bias = bias::<T>(&self.panels[i], pair * SIDE, SIDE);
                        square.iter_mut().zip(bias).for_each(|(row, bias)| add_bias(row, bias));
                    }
                    for update in self.updates {
                        for (u, row) in square.iter_mut().enumerate() {
                            update.add(token, i * self.units + first + u, row);
                        }
                    }
                }
                let packed = self.packed.add(token * self.words + first / 2 * n);
                let gates = gate.as_chunks_mut::<2>().0.iter_mut();
                for (k, (gate, up)) in gates.zip(up.as_chunks::<2>().0).enumerate() {
                    let words = activate_two(gate, up);
                    T::write_words(packed.add(k * n), n, &words);
                }
                if !self.exact.is_null() {
                    // adding -0 changes nothing
                    T::write_columns(gate, n, SIDE, &[-0.0; SIDE], self.exact.add(token * self.width + first), self.width);
                }
            }
        }
    }
}

#[inline(always)]
fn add_bias(row: &mut [u32; SIDE], bias: f32) {
    for sum in row {
        *sum = (f32::from_bits(*sum) + bias).to_bits();
    }
}

/// `silu(gate) * up` of two units, which replaces the gates. Returns them in bf16, two in a word.
#[inline(always)]
fn activate_two(gates: &mut [[u32; SIDE]; 2], ups: &[[u32; SIDE]; 2]) -> [u32; SIDE] {
    for (gates, ups) in gates.iter_mut().zip(ups) {
        for (gate, up) in gates.iter_mut().zip(ups) {
            *gate = silu_times::<true>(f32::from_bits(*gate), f32::from_bits(*up)).to_bits();
        }
    }
    let mut words = [0u32; SIDE];
    for (j, word) in words.iter_mut().enumerate() {
        *word = pair_of(f32::from_bits(gates[0][j]), f32::from_bits(gates[1][j]));
    }
    words
}
