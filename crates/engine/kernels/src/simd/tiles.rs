//! Products on tile units (AMX). Weights are the first operand, and inputs are packed as the second
//! one. For a few input rows, weights are read where they lie ([`few`]); for many, they are copied
//! ([`many`]).
//!
//! Weights in Q8_0 become bf16 by and by, and inputs are bf16, too. Products of bytes
//! (`tdpbssd`) would need the sums of each block of 32 columns in f32, times its scales: three
//! operations on vectors for each 16 products on tiles, which take longer than the products do.
//!
//! The instructions are behind a trait, [`Tiles`]. It has two implementations: the machine's unit
//! ([`unit`]), and a portable model of it, over which tests run everything else of this path on
//! any machine.
//!
//! A tile has 16 rows of 64 bytes. A product of a weight tile (16 weight rows, 32 bf16 of each)
//! and an input tile (the same stretch of up to 16 input rows) is added to 16 x 16 sums. A column
//! of the sums depends on one input row alone, and the stretches follow each other in one order:
//! that keeps a row's result independent of its company.
//!
//! The layout of packed inputs: groups of 16 rows, then one group of the `n` rows that remain. In
//! a group of `n` rows, for every two columns, `n` words with the two numbers of each row. Columns
//! are padded with zeros to a multiple of 32.
// without x86-64 and without tests nothing has tiles
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

pub(super) use self::gated::{Gated, GatedUpdate};
use super::panel::Panel;
use super::{Isa, Level, TileUnit};
use crate::Format;
use crate::line::Line;

pub(super) mod attention;
mod buffers;
mod few;
mod gated;
#[cfg(target_arch = "x86_64")]
pub mod instructions;
mod lanes;
mod many;
#[cfg(test)]
pub(super) mod model;
mod pack;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
pub(super) mod unit;
mod weights;

/// Rows of a tile, and its columns of 32 bits.
pub(crate) const SIDE: usize = 16;
/// Bytes of a row of a tile.
const ROW: usize = 4 * SIDE;
/// Whether there are so many input rows that copying the weights for them pays. Those in Q8_0 would
/// become bf16 again for every 32 rows.
pub(super) fn are_many(format: Format, rows: usize) -> bool {
    rows >= if format == Format::Q8_0 { 64 } else { 96 }
}

/// The most input rows and pairs of weight tiles of a panel with so many: the sums of both between
/// stretches, 512 KiB, and a stretch of the inputs stay in the second-level cache.
pub(super) const MOST: usize = 512;
pub(super) const MOST_PAIRS: usize = 8;

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
    /// Exchanges rows and columns. It needs no tiles.
    unsafe fn transpose(x: &Square) -> Square;
    /// The first `n` numbers at `p`, then zeros. It needs no tiles.
    unsafe fn read(p: *const f32, n: usize) -> [f32; SIDE];
    /// Writes the first `n` sums of `x` and `y` to `p`. It needs no tiles.
    unsafe fn write(p: *mut f32, n: usize, x: &[u32; SIDE], y: &[f32; SIDE]);
    /// Writes the first `n` words to `p`. It needs no tiles.
    unsafe fn write_words(p: *mut u32, n: usize, x: &[u32; SIDE]);
    /// Writes sums plus the first `n` numbers of `bias`: the first `n` of column `j`, one of
    /// `columns`, to `p + j * width`. It needs no tiles.
    unsafe fn write_columns(x: &Square, columns: usize, n: usize, bias: &[f32; SIDE], p: *mut f32, width: usize);
    /// The numbers of a block of Q8_0 at `p`, in bf16: the scale times each byte, rounded twice.
    /// Denormal ones count as zero. It needs no tiles.
    unsafe fn dequantize(p: *const u8) -> Line;
}

/// Words of a packed input row; a whole group takes as many cache lines.
pub(crate) fn words(cols: usize) -> usize {
    SIDE * cols.div_ceil(2 * SIDE)
}

/// Packs rows for tiles. `x` are whole groups, or the last rows; `out` begins at a group.
///
/// # Panics
/// If `out` is too short.
pub(crate) fn pack(isa: Isa, x: &[f32], cols: usize, out: &mut [Line]) {
    assert!(x.len() / cols * words(cols) <= SIDE * out.len(), "packed rows do not fit");
    // SAFETY: an `Isa` implies that the machine has its instructions.
    unsafe {
        match isa.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512Full => unit::pack_pairs(x, cols, out),
            #[cfg(test)]
            _ => pack::pairs::<model::Model>(x, cols, out),
            #[cfg(not(test))]
            _ => unreachable!("inputs for tiles on `{}`", isa.name()),
        }
    }
}

/// # Safety
/// The pointers of the panel must be valid for its rows, the inputs must be packed for tiles,
/// with `x_bytes` bytes of each row, and no other thread may access the outputs.
pub(super) unsafe fn run(isa: Isa, p: &Panel) {
    let many = are_many(p.format, p.tokens);
    // SAFETY: the caller's guarantees are passed on; an `Isa` implies that the machine has its
    // instructions.
    unsafe {
        match (isa.1, p.format) {
            #[cfg(target_arch = "x86_64")]
            (TileUnit::Present, _) if many => unit::many(p),
            #[cfg(target_arch = "x86_64")]
            (TileUnit::Present, Format::Q8_0) => unit::few_bytes(p),
            #[cfg(target_arch = "x86_64")]
            (TileUnit::Present, _) => unit::few(p),
            #[cfg(test)]
            (TileUnit::Modelled, _) if many => many::products(&mut model::Model::new(), p, &many::Outputs(p)),
            #[cfg(test)]
            (TileUnit::Modelled, Format::Q8_0) => few::products::<_, true>(&mut model::Model::new(), p),
            #[cfg(test)]
            (TileUnit::Modelled, _) => few::products::<_, false>(&mut model::Model::new(), p),
            (TileUnit::None, _) => unreachable!("products on tiles of `{}`", isa.name()),
        }
    }
}

/// The products of a gated layer.
///
/// # Safety
/// As for [`run`], for both panels, which have the same shapes and inputs, and rows in whole tiles.
/// Inputs begin at a group of the target, which must have their rows; no other thread may access
/// these units of it.
pub(super) unsafe fn run_gated(isa: Isa, p: &Gated<'_>) {
    // SAFETY: the caller's guarantees are passed on; an `Isa` implies that the machine has its
    // instructions.
    unsafe {
        match isa.1 {
            #[cfg(target_arch = "x86_64")]
            TileUnit::Present => unit::gated(p),
            #[cfg(test)]
            TileUnit::Modelled => gated::products(&mut model::Model::new(), p),
            TileUnit::None => unreachable!("products on tiles of `{}`", isa.name()),
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

// The code below, and that of the modules for products, is inlined into the functions of `unit.rs`,
// which have the instructions of vectors. A closure would not be: each vector operation in it would
// be a call.

/// The bias of some weight rows. Without one it is -0: what it is added to keeps its sign.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn bias<T: Tiles>(p: &Panel, row: usize, weights: usize) -> [f32; SIDE] {
    // SAFETY: the bias has these rows.
    if p.bias.is_null() { [-0.0; SIDE] } else { unsafe { T::read(p.bias.add(row), weights) } }
}
