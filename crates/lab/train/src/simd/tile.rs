//! Products in tiles of sums that stay in vector registers over all segments. The sums are those of
//! `portable.rs`, to the bit.

use crate::element::Element;
use crate::panels::Panels;
use crate::product::{Left, Segment, Target};

pub(super) mod avx2;
pub(super) mod avx512;

/// Rows whose left factor should stay in the L2 cache while all panels pass.
const BLOCK: usize = 240;
/// Most segments of a product.
const SEGMENTS: usize = 4;

/// One segment, at the first row and the first column of a tile.
#[derive(Clone, Copy)]
struct Term {
    a: *const u8,
    /// Bytes between rows, and between steps, of the left factor.
    row: usize,
    step: usize,
    b: *const f32,
    b_step: usize,
    panel: usize,
    depth: usize,
}

/// Where the results of a product go.
#[derive(Clone, Copy)]
struct Sink {
    alpha: f32,
    /// f32 or, with `round`, bf16.
    out: *mut u8,
    round: bool,
    ld: usize,
    /// Null: nothing is added.
    addend: *const f32,
}

/// A tile: its number of rows, its first row and column in the result, and its number of columns.
#[derive(Clone, Copy)]
struct Tile {
    rows: usize,
    i: usize,
    j: usize,
    columns: usize,
}

/// The kernel for one tile, of one instruction set and number format.
struct Kernel {
    /// The largest tile. A panel has a whole number of its columns.
    rows: usize,
    columns: usize,
    /// For left factors in rows, and in columns. The terms and the sink must have the tile's rows
    /// and columns, and the CPU the instructions.
    in_rows: unsafe fn(&[Term], &Sink, Tile),
    in_columns: unsafe fn(&[Term], &Sink, Tile),
}

/// Computes a product by a kernel.
///
/// # Safety
/// The CPU must have the kernel's instructions, the kernel must be of this number format, and
/// factors and target must fit `m` and `n`, as `product::product` checks.
unsafe fn product<E: Element>(kernel: &Kernel, m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    const NONE: Term = Term { a: std::ptr::null(), row: 0, step: 0, b: std::ptr::null(), b_step: 0, panel: 0, depth: 0 };
    assert!(segments.len() <= SEGMENTS, "a product of {} segments", segments.len());
    let mut terms = [NONE; SEGMENTS];
    for (term, s) in terms.iter_mut().zip(segments) {
        let (a, row, step) = match s.left {
            Left::Rows { data, ld } => (data.as_ptr().cast(), ld * size_of::<E>(), 4),
            Left::Columns { words, ld } => (words.as_ptr().cast(), 4, ld * 4),
        };
        *term = Term { a, row, step, b: s.right.words.as_ptr().cast(), b_step: s.right.step, panel: s.right.panel, depth: s.depth };
    }
    let terms = &mut terms[..segments.len()];
    let bf16 = E::PER_WORD == 2;
    let none = std::ptr::null();
    let (out, round, ld, addend) = match target {
        Target::Store { out, ld } => (out.as_mut_ptr().cast::<u8>(), false, ld, none),
        Target::Add { out, ld } => {
            let out = out.as_mut_ptr();
            (out.cast(), false, ld, out.cast_const())
        }
        Target::Sum { out, ld, addend } => (out.as_mut_ptr().cast(), false, ld, addend.as_ptr()),
        Target::Round { out, ld } => (out.as_mut_ptr().cast(), bf16, ld, none),
        Target::RoundSum { out, ld, addend } => (out.as_mut_ptr().cast(), bf16, ld, addend.as_ptr()),
    };
    let sink = Sink { alpha, out, round, ld, addend };
    let rows = segments.iter().all(|s| matches!(s.left, Left::Rows { .. }));
    assert!(rows || segments.iter().all(|s| matches!(s.left, Left::Columns { .. })), "left factors of two kinds");
    let compute = if rows { kernel.in_rows } else { kernel.in_columns };
    // equal tiles: 64 rows are 11 + 11 + 11 + 11 + 10 + 10 of at most 12
    let tiles = m.div_ceil(kernel.rows);
    let per_block = BLOCK / kernel.rows;
    let bases: [(*const u8, *const f32); SEGMENTS] =
        std::array::from_fn(|s| terms.get(s).map_or((std::ptr::null(), std::ptr::null()), |t| (t.a, t.b)));
    for block in (0..tiles).step_by(per_block) {
        for j in (0..n).step_by(kernel.columns) {
            let columns = (n - j).min(kernel.columns);
            for tile in block..tiles.min(block + per_block) {
                let (i, end) = (tile * m / tiles, (tile + 1) * m / tiles);
                for (term, (a, b)) in terms.iter_mut().zip(bases) {
                    term.a = a.wrapping_add(i * term.row);
                    term.b = b.wrapping_add(j / Panels::COLUMNS * term.panel + j % Panels::COLUMNS);
                }
                // SAFETY: the tile is inside the factors and the target, and the caller guarantees
                // the rest.
                unsafe { compute(terms, &sink, Tile { rows: end - i, i, j, columns }) };
            }
        }
    }
}
