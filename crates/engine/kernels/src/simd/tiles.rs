//! Products on tile units (AMX): weights are read where they lie, as the first operand; inputs are
//! packed as the second operand.
//!
//! The instructions are behind a trait, [`Tiles`]. It has two implementations: the machine's unit
//! ([`unit`]), and a portable model of it, over which tests run everything else of this path on
//! any machine.
//!
//! A tile has 16 rows of 64 bytes. A product of a weight tile (16 weight rows, 32 bf16 or 32 bytes
//! of each) and an input tile (the same stretch of up to 16 input rows) is added to 16 x 16 sums.
//! A column of the sums depends on one input row alone, and the stretches follow each other in one
//! order: that keeps a row's result independent of its company.
//!
//! The layout of packed inputs: groups of 16 rows, then one group of the `n` rows that remain. In
//! a group of `n` rows,
//! - bf16: for every two columns, `n` words with the two numbers of each row. Columns are padded
//!   with zeros to a multiple of 32.
//! - Q8_0: for every block of 32 columns, eight times `n` words with four bytes of each row, then
//!   the block's scale of each row.
// without x86-64 and without tests nothing has tiles
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

use super::panel::Panel;
use super::{Isa, Level, TileUnit, prefetch_near};
use crate::Format;
use crate::format::{GROUP, GROUP_BYTES};
use crate::line::Line;
use crate::rows;

pub(super) mod attention;
#[cfg(target_arch = "x86_64")]
pub mod instructions;
mod lanes;
#[cfg(test)]
pub(super) mod model;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub(super) mod unit;

/// Rows of a tile, and its columns of 32 bits.
pub(crate) const SIDE: usize = 16;
/// Bytes of a row of a tile.
const ROW: usize = 4 * SIDE;
/// Weights that stay in the second-level cache while all inputs are computed, in bytes. Chosen for
/// a cache of 2 MiB, not measured.
const NEAR: usize = 512 << 10;
/// Input rows from which on copying the weights for them pays: by counting, not tuned.
const MANY: usize = 96;
/// Bytes of a task's first weights that are requested before they are used.
const FIRST: usize = 32 << 10;

/// Words of 32 bits, as in a tile.
type Square = [[u32; SIDE]; SIDE];

/// The shapes of all eight tiles: 0 to 3 are sums (weights `i / 2`, inputs `i % 2`), 4 and 5 are
/// weights, 6 and 7 are inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shapes {
    /// Bytes of a weight row in a tile.
    bytes: usize,
    /// Input rows in each of the two input tiles, at most [`SIDE`].
    inputs: [usize; 2],
}

impl Shapes {
    /// Rows, and bytes of a row.
    fn of(self, tile: usize) -> (usize, usize) {
        match tile {
            0..4 => (SIDE, 4 * self.inputs[tile % 2]),
            4 | 5 => (SIDE, self.bytes),
            _ => (self.bytes / 4, 4 * self.inputs[tile % 2]),
        }
    }
}

/// A tile unit. Contract of all operations: the machine has the instructions, the tiles were
/// configured, and pointers are valid for the rows of the tile's shape, `stride` bytes apart.
trait Tiles {
    /// Sets the shapes. All tiles become zero.
    unsafe fn configure(&mut self, shapes: Shapes);
    /// Sets the rows of each tile and the bytes of a row. All tiles become zero.
    unsafe fn configure_each(&mut self, shapes: &[(usize, usize); 8]);
    unsafe fn zero<const T: usize>(&mut self);
    unsafe fn load<const T: usize>(&mut self, p: *const u8, stride: usize);
    unsafe fn store<const T: usize>(&mut self, p: *mut u8, stride: usize);
    /// Adds the products of pairs of bf16 to the f32 of tile `C`.
    unsafe fn add_bf16<const C: usize, const A: usize, const B: usize>(&mut self);
    /// Adds the products of fours of signed bytes to the integers of tile `C`.
    unsafe fn add_bytes<const C: usize, const A: usize, const B: usize>(&mut self);
    /// Exchanges rows and columns. It needs no tiles.
    unsafe fn transpose(x: &Square) -> Square;
    /// The half-precision numbers at the first of `n` places that are `stride` bytes apart, then
    /// zeros. Four bytes are read at each place, and 15 strides fit in 32 bits. It needs no tiles.
    unsafe fn scales(p: *const u8, stride: usize, n: usize) -> [f32; SIDE];
    /// The first `n` numbers at `p`, then zeros. It needs no tiles.
    unsafe fn read(p: *const f32, n: usize) -> [f32; SIDE];
    /// Writes the first `n` sums of `x` and `y` to `p`. It needs no tiles.
    unsafe fn write(p: *mut f32, n: usize, x: &[u32; SIDE], y: &[f32; SIDE]);
    /// `all += sums * (one * many)`, the last step fused. It needs no tiles.
    unsafe fn add_scaled(all: &mut [f32; SIDE], sums: &[i32; SIDE], one: f32, many: &[f32; SIDE]);
}

/// Words of a packed input row; a whole group takes as many cache lines.
pub(crate) fn words(format: Format, cols: usize) -> usize {
    match format {
        Format::F32 => cols,
        Format::Bf16 => SIDE * cols.div_ceil(2 * SIDE),
        Format::Q8_0 => 9 * (cols / GROUP),
    }
}

/// Packs rows for tiles. `x` are whole groups, or the last rows; `out` begins at a group.
///
/// # Panics
/// If `out` is too short.
pub(crate) fn pack(isa: Isa, format: Format, x: &[f32], cols: usize, out: &mut [Line]) {
    assert!(x.len() / cols * words(format, cols) <= SIDE * out.len(), "packed rows do not fit");
    // SAFETY: an `Isa` implies that the machine has its instructions.
    unsafe {
        match (isa.0, isa.1, format) {
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512Full, _, Format::Bf16) => unit::pack_bf16(x, cols, out),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512Full, _, Format::Q8_0) => unit::pack_bytes(x, cols, out),
            #[cfg(test)]
            (_, _, Format::Bf16) => pack_bf16::<model::Model>(x, cols, out),
            (_, _, Format::Q8_0) => pack_bytes(x, cols, out),
            _ => unreachable!("{format} inputs for tiles on `{}`", isa.name()),
        }
    }
}

/// # Safety
/// As for [`Tiles::transpose`].
#[inline(always)]
unsafe fn pack_bf16<T: Tiles>(x: &[f32], cols: usize, out: &mut [Line]) {
    let steps = cols.div_ceil(2 * SIDE);
    for (x, out) in x.chunks(SIDE * cols).zip(out.chunks_mut(words(Format::Bf16, cols))) {
        let n = x.len() / cols;
        for step in 0..steps {
            let columns = step * 2 * SIDE..((step + 1) * 2 * SIDE).min(cols);
            let mut square = [[0; SIDE]; SIDE];
            for (row, x) in square.iter_mut().zip(x.chunks_exact(cols)) {
                *row = match <&[f32; 2 * SIDE]>::try_from(&x[columns.clone()]) {
                    Ok(x) => rows::pairs(x).0,
                    Err(_) => {
                        let mut padded = [0.0; 2 * SIDE];
                        padded[..columns.len()].copy_from_slice(&x[columns.clone()]);
                        rows::pairs(&padded).0
                    }
                };
            }
            if n == 1 {
                out[step] = Line(square[0]);
                continue;
            }
            // SAFETY: as for the caller.
            let square = unsafe { T::transpose(&square) };
            if n == SIDE {
                for (out, row) in out[SIDE * step..][..SIDE].iter_mut().zip(square) {
                    *out = Line(row);
                }
                continue;
            }
            for (i, row) in square.iter().enumerate() {
                for (j, word) in row[..n].iter().enumerate() {
                    let at = (SIDE * step + i) * n + j;
                    out[at / SIDE].0[at % SIDE] = *word;
                }
            }
        }
    }
}

#[inline(always)]
fn pack_bytes(x: &[f32], cols: usize, out: &mut [Line]) {
    for (x, out) in x.chunks(SIDE * cols).zip(out.chunks_mut(words(Format::Q8_0, cols))) {
        let n = x.len() / cols;
        for (j, x) in x.chunks_exact(cols).enumerate() {
            let mut at = j;
            for x in x.as_chunks::<GROUP>().0 {
                let (bytes, _, scale) = rows::quantize(x);
                for word in bytes.into_iter().chain([scale.to_bits()]) {
                    out[at / SIDE].0[at % SIDE] = word;
                    at += n;
                }
            }
        }
    }
}

/// # Safety
/// The pointers of the panel must be valid for its rows, the inputs must be packed for tiles, with
/// `x_bytes` bytes of each row, and no other thread may access the outputs.
pub(super) unsafe fn run(isa: Isa, format: Format, p: &Panel) {
    // SAFETY: the caller's guarantees are passed on; an `Isa` implies that the machine has its
    // instructions.
    unsafe {
        match (isa.1, format) {
            #[cfg(target_arch = "x86_64")]
            (TileUnit::Present, Format::Bf16) => unit::bf16(p),
            #[cfg(target_arch = "x86_64")]
            (TileUnit::Present, Format::Q8_0) => unit::bytes(p),
            #[cfg(test)]
            (TileUnit::Modelled, Format::Bf16) => bf16(&mut model::Model::new(), p),
            #[cfg(test)]
            (TileUnit::Modelled, Format::Q8_0) => bytes(&mut model::Model::new(), p),
            _ => unreachable!("{format} products on tiles of `{}`", isa.name()),
        }
    }
}

/// Up to two groups of input rows.
struct Inputs {
    /// The first row.
    first: usize,
    /// The number of rows in each.
    rows: [usize; 2],
    start: [*const u8; 2],
}

/// Up to two groups of inputs from a row on.
#[inline(always)]
fn inputs(p: &Panel, first: usize) -> Inputs {
    let left = p.tokens - first;
    let rows = [left.min(SIDE), left.saturating_sub(SIDE).min(SIDE)];
    let start = [p.x.wrapping_add(first * p.x_bytes), p.x.wrapping_add((first + SIDE) * p.x_bytes)];
    Inputs { first, rows, start }
}

/// The number of input rows that a configuration has in the second tile: a group that is absent
/// needs none, and a tile cannot have no columns.
fn columns(inputs: &Inputs) -> [usize; 2] {
    inputs.rows.map(|n| if n == 0 { SIDE } else { n })
}

// The code below is inlined into the functions of `unit.rs`, which have the instructions of
// vectors. A closure would not be: each vector operation in it would be a call.

/// All bf16 products of a panel.
///
/// # Safety
/// As for [`run`]; the machine must have the instructions of `T`.
#[inline(always)]
unsafe fn bf16<T: Tiles>(unit: &mut T, p: &Panel) {
    let many = p.tokens >= MANY;
    let steps = p.row_bytes.div_ceil(ROW);
    // with many inputs, weights stay near in the order in which they are loaded
    let mut near = vec![Line::default(); if many { steps * 2 * SIDE } else { 0 }];
    let stretch = if many { 2 * SIDE } else { (NEAR / p.row_bytes.max(1)).max(1).next_multiple_of(2 * SIDE) };
    let mut configured = None;
    for from in (0..p.rows).step_by(stretch) {
        let to = (from + stretch).min(p.rows);
        if many {
            // SAFETY: the rows are in the panel, and `near` has room for two tiles of each step.
            unsafe { copy_weights(p, from, &mut near) };
        }
        for first in (0..p.tokens).step_by(2 * SIDE) {
            let x = inputs(p, first);
            let shapes = Shapes { bytes: ROW, inputs: columns(&x) };
            if configured != Some(shapes) {
                // SAFETY: as for the caller.
                unsafe { unit.configure(shapes) };
                configured = Some(shapes);
            }
            let mut row = from;
            while row < to {
                // SAFETY: the groups and rows are in the panel.
                unsafe {
                    let weights = [0, 1].map(|i| if many { WeightTile::near(&near, i) } else { WeightTile::new(p, row + i * SIDE) });
                    let (two, pair) = (to - row > SIDE, x.rows[1] > 0);
                    match (many, two, pair) {
                        (true, true, true) => block::<T, 2, 2, true>(unit, p, &x, row, weights),
                        (true, true, false) => block::<T, 2, 1, true>(unit, p, &x, row, weights),
                        (true, false, true) => block::<T, 1, 2, true>(unit, p, &x, row, weights),
                        (true, false, false) => block::<T, 1, 1, true>(unit, p, &x, row, weights),
                        (false, true, true) => block::<T, 2, 2, false>(unit, p, &x, row, weights),
                        (false, true, false) => block::<T, 2, 1, false>(unit, p, &x, row, weights),
                        (false, false, true) => block::<T, 1, 2, false>(unit, p, &x, row, weights),
                        (false, false, false) => block::<T, 1, 1, false>(unit, p, &x, row, weights),
                    }
                }
                row += 2 * SIDE;
            }
        }
    }
}

/// Copies up to 32 weight rows from `row` on: for every step two tiles, whose missing rows and
/// columns are zero.
///
/// # Safety
/// As for [`bf16`].
#[inline(always)]
unsafe fn copy_weights(p: &Panel, row: usize, near: &mut [Line]) {
    let rows = (p.rows - row).min(2 * SIDE);
    let whole = p.row_bytes / ROW;
    for i in 0..rows {
        // SAFETY: the row is in the panel; a line has 64 bytes.
        unsafe {
            let from = p.weights.add((row + i) * p.row_bytes);
            for step in 0..whole {
                near[step * 2 * SIDE + i] = from.add(step * ROW).cast::<Line>().read_unaligned();
            }
            let rest = p.row_bytes % ROW;
            if rest > 0 {
                let line = &mut near[whole * 2 * SIDE + i];
                *line = Line::default();
                std::ptr::copy_nonoverlapping(from.add(whole * ROW), line.0.as_mut_ptr().cast(), rest);
            }
        }
    }
    for step in near.chunks_exact_mut(2 * SIDE) {
        step[rows..].fill(Line::default());
    }
}

/// `R` tiles of weight rows from `row` on and `C` groups of input rows. With `MANY`, the weights are
/// whole tiles that were copied; else they come from memory.
///
/// # Safety
/// As for [`bf16`]. The last tile of weight rows may be incomplete.
#[inline(always)]
unsafe fn block<T: Tiles, const R: usize, const C: usize, const MANY: bool>(
    unit: &mut T,
    p: &Panel,
    x: &Inputs,
    row: usize,
    weights: [WeightTile; 2],
) {
    let steps = p.row_bytes.div_ceil(ROW);
    let cold = !MANY && x.first == 0;
    // SAFETY: weight rows `row..` and the input rows are in the panel; tiles have the shapes of
    // `Shapes`.
    unsafe {
        unit.zero::<0>();
        unit.zero::<1>();
        unit.zero::<2>();
        unit.zero::<3>();
        if cold && row == 0 {
            for at in (0..(R * SIDE * p.row_bytes).min(FIRST)).step_by(ROW) {
                prefetch_near(p.weights.wrapping_add(at));
            }
        }
        // the weights of the next tiles
        let mut soon = p.weights.wrapping_add((row + R * SIDE) * p.row_bytes);
        for step in 0..steps {
            if cold {
                for i in 0..R * SIDE {
                    prefetch_near(soon.wrapping_add(i * ROW));
                }
                soon = soon.wrapping_add(R * SIDE * ROW);
            }
            let b = [x.start[0].add(step * SIDE * 4 * x.rows[0]), x.start[1].wrapping_add(step * SIDE * 4 * x.rows[1])];
            weights[0].load::<T, 4, MANY>(unit, step);
            unit.load::<6>(b[0], 4 * x.rows[0]);
            unit.add_bf16::<0, 4, 6>();
            if C > 1 {
                unit.load::<7>(b[1], 4 * x.rows[1]);
                unit.add_bf16::<1, 4, 7>();
            }
            if R > 1 {
                weights[1].load::<T, 5, MANY>(unit, step);
                unit.add_bf16::<2, 5, 6>();
                if C > 1 {
                    unit.add_bf16::<3, 5, 7>();
                }
            }
        }
        let rows = (p.rows - row).min(SIDE);
        sums::<T, 0>(unit, p, row, rows, x.first, x.rows[0]);
        if C > 1 {
            sums::<T, 1>(unit, p, row, rows, x.first + SIDE, x.rows[1]);
        }
        if R > 1 {
            let (row, rows) = (row + SIDE, p.rows - row - SIDE);
            sums::<T, 2>(unit, p, row, rows.min(SIDE), x.first, x.rows[0]);
            if C > 1 {
                sums::<T, 3>(unit, p, row, rows.min(SIDE), x.first + SIDE, x.rows[1]);
            }
        }
    }
}

/// Up to [`SIDE`] weight rows in bf16.
#[derive(Clone, Copy)]
struct WeightTile {
    start: *const u8,
    stride: usize,
    rows: usize,
    /// Bytes between two steps.
    apart: usize,
    /// Bytes of a row.
    bytes: usize,
}

impl WeightTile {
    /// Weight rows where they lie. If the panel ends before `row`, there are none.
    #[inline(always)]
    fn new(p: &Panel, row: usize) -> Self {
        let start = p.weights.wrapping_add(row * p.row_bytes);
        Self { start, stride: p.row_bytes, rows: p.rows.saturating_sub(row).min(SIDE), apart: ROW, bytes: p.row_bytes }
    }

    /// One of the two tiles of each step that [`copy_weights`] has written.
    #[inline(always)]
    fn near(near: &[Line], tile: usize) -> Self {
        let start = near.as_ptr().wrapping_add(tile * SIDE).cast();
        Self { start, stride: ROW, rows: SIDE, apart: 2 * SIDE * ROW, bytes: near.len() / (2 * SIDE) * ROW }
    }

    /// Loads a step; rows and columns that are missing are zero. With `WHOLE`, none are.
    ///
    /// # Safety
    /// The rows must exist.
    #[inline(always)]
    unsafe fn load<T: Tiles, const TILE: usize, const WHOLE: bool>(self, unit: &mut T, step: usize) {
        // SAFETY: the caller's guarantee; a copy of a part is a whole tile.
        unsafe {
            let p = self.start.add(step * self.apart);
            let bytes = (self.bytes - step * ROW).min(ROW);
            if WHOLE || self.rows == SIDE && bytes == ROW {
                return unit.load::<TILE>(p, self.stride);
            }
            let mut whole = [[0u8; ROW]; SIDE];
            for (i, whole) in whole.iter_mut().enumerate().take(self.rows) {
                std::ptr::copy_nonoverlapping(p.add(i * self.stride), whole.as_mut_ptr(), bytes);
            }
            unit.load::<TILE>(whole.as_ptr().cast(), ROW);
        }
    }
}

/// Writes the sums of a tile to the outputs of `weights` weight rows and `inputs` input rows.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn sums<T: Tiles, const TILE: usize>(unit: &mut T, p: &Panel, row: usize, weights: usize, input: usize, inputs: usize) {
    let mut square = [[0u32; SIDE]; SIDE];
    // SAFETY: the tile has 16 rows of `inputs` words.
    unsafe {
        // one column becomes one row
        unit.store::<TILE>(square.as_mut_ptr().cast(), if inputs == 1 { 4 } else { ROW });
        let square = if inputs == 1 { square } else { T::transpose(&square) };
        outputs::<T>(p, &square, row, weights, input, inputs);
    }
}

/// Writes sums, a row for each input row.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn outputs<T: Tiles>(p: &Panel, square: &Square, row: usize, weights: usize, input: usize, inputs: usize) {
    // SAFETY: the outputs and the bias have these rows.
    unsafe {
        let bias = if p.bias.is_null() { [0.0; SIDE] } else { T::read(p.bias.add(row), weights) };
        for (j, square) in square.iter().enumerate().take(inputs) {
            T::write(p.out.add((input + j) * p.width + row), weights, square, &bias);
        }
    }
}

/// All Q8_0 products of a panel: the exact sums of a block, then their product with both scales,
/// added in f32 block after block.
///
/// # Safety
/// As for [`run`]; the machine must have the instructions of `T`.
#[inline(always)]
unsafe fn bytes<T: Tiles>(unit: &mut T, p: &Panel) {
    // `scales` computes distances in 32 bits
    assert!(p.row_bytes < 1 << 27, "rows of {} bytes", p.row_bytes);
    let mut weights = vec![WeightBlock::default(); p.row_bytes / GROUP_BYTES];
    let mut configured = None;
    for row in (0..p.rows).step_by(SIDE) {
        let rows = (p.rows - row).min(SIDE);
        // SAFETY: the rows are in the panel.
        unsafe { split_weights::<T>(p, row, rows, &mut weights) };
        for first in (0..p.tokens).step_by(2 * SIDE) {
            let x = inputs(p, first);
            let shapes = Shapes { bytes: GROUP, inputs: columns(&x) };
            // SAFETY: the groups and rows are in the panel.
            unsafe {
                if configured != Some(shapes) {
                    unit.configure(shapes);
                    configured = Some(shapes);
                }
                if x.rows[1] > 0 {
                    byte_block::<T, 2>(unit, p, &x, row, rows, &weights);
                } else {
                    byte_block::<T, 1>(unit, p, &x, row, rows, &weights);
                }
            }
        }
    }
}

/// A block of 32 columns of 16 weight rows: the bytes of each row, then their scales.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct WeightBlock {
    bytes: [[u8; GROUP]; SIDE],
    scales: [f32; SIDE],
}

impl Default for WeightBlock {
    fn default() -> Self {
        Self { bytes: [[0; GROUP]; SIDE], scales: [0.0; SIDE] }
    }
}

/// Splits the blocks of up to 16 weight rows into bytes and scales. Rows that are missing are zero.
///
/// # Safety
/// As for [`bytes`].
#[inline(always)]
unsafe fn split_weights<T: Tiles>(p: &Panel, row: usize, rows: usize, weights: &mut [WeightBlock]) {
    let start = p.weights.wrapping_add(row * p.row_bytes);
    let mut soon = start.wrapping_add(rows * p.row_bytes);
    for (at, block) in weights.iter_mut().enumerate() {
        for i in 0..(SIDE * GROUP_BYTES).div_ceil(ROW) {
            prefetch_near(soon.wrapping_add(i * ROW));
        }
        soon = soon.wrapping_add(SIDE * GROUP_BYTES);
        if rows < SIDE {
            *block = WeightBlock::default();
        }
        let from = start.wrapping_add(at * GROUP_BYTES);
        for i in 0..rows {
            // SAFETY: the row has this block, which begins with its scale.
            block.bytes[i] = unsafe { from.add(i * p.row_bytes + 2).cast::<[u8; GROUP]>().read() };
        }
        // SAFETY: as for the caller; a block is longer than four bytes.
        block.scales = unsafe { T::scales(from, p.row_bytes, rows) };
    }
}

/// A tile of weight rows from `row` on and `C` groups of input rows.
///
/// # Safety
/// As for [`bytes`].
#[allow(clippy::needless_range_loop)] // each loop is over several arrays
#[inline(always)]
unsafe fn byte_block<T: Tiles, const C: usize>(unit: &mut T, p: &Panel, x: &Inputs, row: usize, rows: usize, weights: &[WeightBlock]) {
    // SAFETY: the rows and the input rows are in the panel; tiles have the shapes of `Shapes`.
    unsafe {
        let mut all = [[[0f32; SIDE]; SIDE]; C];
        let mut sums = [Sums([[0i32; SIDE]; SIDE]); C];
        for (block, weights) in weights.iter().enumerate() {
            unit.load::<4>(weights.bytes.as_ptr().cast(), GROUP);
            let b = [x.start[0].add(block * 9 * 4 * x.rows[0]), x.start[1].wrapping_add(block * 9 * 4 * x.rows[1])];
            for c in 0..C {
                let n = x.rows[c];
                // one column becomes one row
                let (to, apart) = (sums[c].0.as_mut_ptr().cast(), if n == 1 { 4 } else { ROW });
                if c == 0 {
                    unit.zero::<0>();
                    unit.load::<6>(b[0], 4 * n);
                    unit.add_bytes::<0, 4, 6>();
                    unit.store::<0>(to, apart);
                } else {
                    unit.zero::<1>();
                    unit.load::<7>(b[1], 4 * n);
                    unit.add_bytes::<1, 4, 7>();
                    unit.store::<1>(to, apart);
                }
            }
            for c in 0..C {
                let n = x.rows[c];
                let inputs = T::read(b[c].add(8 * 4 * n).cast(), n);
                if n == 1 {
                    T::add_scaled(&mut all[c][0], &sums[c].0[0], inputs[0], &weights.scales);
                } else {
                    for i in 0..SIDE {
                        T::add_scaled(&mut all[c][i], &sums[c].0[i], weights.scales[i], &inputs);
                    }
                }
            }
        }
        for c in 0..C {
            let n = x.rows[c];
            let mut square = [[0u32; SIDE]; SIDE];
            for i in 0..SIDE {
                for j in 0..SIDE {
                    square[i][j] = all[c][i][j].to_bits();
                }
            }
            let square = if n == 1 { square } else { T::transpose(&square) };
            outputs::<T>(p, &square, row, rows, x.first + c * SIDE, n);
        }
    }
}

/// The sums of a tile of integers.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Sums([[i32; SIDE]; SIDE]);
