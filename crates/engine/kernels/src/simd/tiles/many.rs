//! Products of many rows: weights are copied, a stretch of columns of two tiles at a time, and stay
//! in the first-level cache while all inputs are read. Those in Q8_0 become bf16 by that.

use super::weights::{WeightTile, step_bytes};
use super::{Inputs, ROW, SIDE, Shapes, Square, Tiles, bias, buffers, columns, inputs};
use crate::line::Line;
use crate::simd::panel::Panel;

/// Steps of a stretch at most. Two weight tiles of each take 20 KiB, and as much the inputs that
/// pass by before the weights are read again: more does not fit in 48 KiB.
const STRETCH: usize = 10;

/// The sums of two weight tiles (first index) and two groups of inputs.
pub(super) type Sums = [[Square; 2]; 2];

/// Weight tiles two by two, and what becomes of their sums.
pub(super) trait Pairs<T: Tiles> {
    /// The number of pairs.
    fn count(&self) -> usize;
    /// The tiles of a pair.
    fn tiles(&self, pair: usize) -> [WeightTile; 2];
    /// Takes the sums of a pair, and may change them: row `i` of a square is that of weight row `i`,
    /// of which the first numbers are those of the group's inputs.
    ///
    /// # Safety
    /// As for [`products`]; the inputs must be in the panel.
    unsafe fn finish(&self, pair: usize, x: &Inputs, sums: &mut Sums);
}

/// The products of all inputs of a panel with `pairs` of weight tiles, whose rows have
/// `p.row_bytes` bytes.
///
/// # Safety
/// As for [`super::run`]; the machine must have the instructions of `T`, and the tiles' rows must
/// exist.
#[inline(always)]
pub(super) unsafe fn products<T: Tiles>(unit: &mut T, p: &Panel, pairs: &impl Pairs<T>) {
    let steps = p.row_bytes.div_ceil(step_bytes(p.format));
    let stretches = steps.div_ceil(STRETCH).max(1);
    let stretch = steps.div_ceil(stretches).max(1);
    let blocks = p.tokens.div_ceil(2 * SIDE);
    // of each step two tiles; the sums between stretches, or those of one block
    let lines = size_of::<Sums>() / size_of::<Line>();
    let kept = if stretches > 1 { pairs.count() * blocks } else { 1 };
    let mut buffer = buffers::take(stretch * 2 * SIDE + kept * lines);
    let (near, kept) = buffer.split_at_mut(stretch * 2 * SIDE);
    let kept = kept.as_mut_ptr().cast::<Sums>();
    let mut configured = None;
    for from in (0..steps).step_by(stretch) {
        let now = stretch.min(steps - from);
        let last = from + now == steps;
        for pair in 0..pairs.count() {
            for (i, tile) in pairs.tiles(pair).into_iter().enumerate() {
                // SAFETY: the tile's rows exist, and `near` has room for two tiles of each step.
                unsafe { tile.copy::<T>(from, &mut near[i * SIDE..now * 2 * SIDE]) };
            }
            // what is copied next
            let next = if pair + 1 < pairs.count() { Some((pair + 1, from)) } else { (!last).then_some((0, from + now)) };
            let next = next.map(|(pair, from)| (pairs.tiles(pair), from));
            for block in 0..blocks {
                if let Some((tiles, from)) = &next {
                    request(tiles, *from, now, block, blocks);
                }
                let x = inputs(p, block * 2 * SIDE);
                let shapes = Shapes { bytes: ROW, inputs: columns(&x) };
                // SAFETY: the groups are in the panel, and there are so many sums.
                unsafe {
                    if configured != Some(shapes) {
                        unit.configure(shapes);
                        configured = Some(shapes);
                    }
                    let sums = kept.add(if stretches > 1 { pair * blocks + block } else { 0 });
                    if x.rows[1] > 0 {
                        self::block::<T, 2>(unit, &x, from, &near[..now * 2 * SIDE], sums);
                    } else {
                        self::block::<T, 1>(unit, &x, from, &near[..now * 2 * SIDE], sums);
                    }
                    if last {
                        pairs.finish(pair, &x, &mut *sums);
                    }
                }
            }
        }
    }
    buffers::give_back(buffer);
}

/// Requests a block's share of the `steps` steps from `from` on of two tiles.
#[inline(always)]
fn request(tiles: &[WeightTile; 2], from: usize, steps: usize, block: usize, blocks: usize) {
    let rows = 2 * SIDE;
    for row in block * rows / blocks..(block + 1) * rows / blocks {
        tiles[row / SIDE].request(row % SIDE, from, steps);
    }
}

/// Adds the products of the steps in `near`, which begin at `from`, with two weight tiles and `C`
/// groups of inputs to `sums`; the first ones begin at zero.
///
/// # Safety
/// As for [`products`].
#[inline(always)]
unsafe fn block<T: Tiles, const C: usize>(unit: &mut T, x: &Inputs, from: usize, near: &[Line], sums: *mut Sums) {
    let square = |i: usize, c: usize| sums.cast::<Square>().wrapping_add(2 * i + c).cast::<u8>();
    // SAFETY: the groups have these steps; tiles have the shapes of `Shapes`.
    unsafe {
        if from == 0 {
            unit.zero::<0>();
            unit.zero::<1>();
            unit.zero::<2>();
            unit.zero::<3>();
        } else {
            unit.load::<0>(square(0, 0), ROW);
            unit.load::<2>(square(1, 0), ROW);
            if C > 1 {
                unit.load::<1>(square(0, 1), ROW);
                unit.load::<3>(square(1, 1), ROW);
            }
        }
        let apart = x.rows.map(|n| SIDE * 4 * n);
        let mut b = [x.start[0].wrapping_add(from * apart[0]), x.start[1].wrapping_add(from * apart[1])];
        for weights in near.as_chunks::<{ 2 * SIDE }>().0 {
            let a: *const u8 = weights.as_ptr().cast();
            unit.load::<6>(b[0], 4 * x.rows[0]);
            unit.load::<4>(a, ROW);
            unit.add_bf16::<0, 4, 6>();
            if C > 1 {
                unit.load::<7>(b[1], 4 * x.rows[1]);
                unit.add_bf16::<1, 4, 7>();
            }
            unit.load::<5>(a.add(SIDE * ROW), ROW);
            unit.add_bf16::<2, 5, 6>();
            if C > 1 {
                unit.add_bf16::<3, 5, 7>();
            }
            b = [b[0].wrapping_add(apart[0]), b[1].wrapping_add(apart[1])];
        }
        unit.store::<0>(square(0, 0), ROW);
        unit.store::<2>(square(1, 0), ROW);
        if C > 1 {
            unit.store::<1>(square(0, 1), ROW);
            unit.store::<3>(square(1, 1), ROW);
        }
    }
}

/// Pairs of adjacent tiles of a panel's weights, whose sums are its outputs.
pub(super) struct Outputs<'a>(pub(super) &'a Panel);

impl<T: Tiles> Pairs<T> for Outputs<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.rows.div_ceil(2 * SIDE)
    }

    #[inline(always)]
    fn tiles(&self, pair: usize) -> [WeightTile; 2] {
        [0, 1].map(|i| WeightTile::new(self.0, (2 * pair + i) * SIDE))
    }

    #[inline(always)]
    unsafe fn finish(&self, pair: usize, x: &Inputs, sums: &mut Sums) {
        let p = self.0;
        for (i, sums) in sums.iter().enumerate() {
            let row = (2 * pair + i) * SIDE;
            let weights = p.rows.saturating_sub(row).min(SIDE);
            if weights == 0 {
                continue;
            }
            // SAFETY: the outputs and the bias have these rows.
            unsafe {
                let bias = bias::<T>(p, row, weights);
                for (c, sums) in sums.iter().enumerate() {
                    let out = p.out.wrapping_add((x.first + c * SIDE) * p.width + row);
                    T::write_columns(sums, x.rows[c], weights, &bias, out, p.width);
                }
            }
        }
    }
}
