//! The products of a gated layer on tiles: the distribution of work over threads.

use std::marker::PhantomData;

use super::Isa;
use super::panel::Panel;
use super::product::{Grid, Rows, Update, Weights, panel_of};
use super::tiles::{self, Gated, GatedUpdate, SIDE};
use crate::line::Line;
use crate::{Format, Team};

/// Units at whose multiples the work is cut.
const STEP: usize = 2 * SIDE;

/// One of the two matrices of a gated layer, with its bias.
pub(crate) type Gate<'a> = (Weights<'a>, Option<&'a [f32]>);

/// The inputs of the product after a gated layer, which it writes.
pub(crate) struct Target<'a> {
    /// Packed for tiles.
    pub(crate) packed: &'a mut [Line],
    /// In f32, and the lines of a row.
    pub(crate) exact: Option<(&'a mut [Line], usize)>,
}

/// Whether [`gated`] computes layers of so many units for so many rows.
pub(crate) fn gates_on_tiles(isa: Isa, format: Format, rows: usize, units: usize) -> bool {
    isa.has_tiles_for(format) && tiles::are_many(format, rows) && units > 0 && units.is_multiple_of(STEP)
}

/// `silu(x G^T) * (x U^T)` for both matrices, gate before up, after the updates in order. Outputs
/// of the second one follow those of the first one.
///
/// # Panics
/// If shapes are inconsistent, or [`gates_on_tiles`] is false.
pub(crate) fn gated(team: &Team, isa: Isa, x: Rows<'_>, gates: [Gate<'_>; 2], updates: &[Update<'_>], to: Target<'_>) {
    let (rows, units) = (x.rows, gates[0].0.rows);
    assert!(gates_on_tiles(isa, x.format, rows, units) && x.is_for_tiles(), "a gated layer of {units} units for {rows} rows on tiles");
    for (weights, bias) in &gates {
        assert!(weights.format == x.format && weights.cols == x.cols && weights.rows == units, "inputs and weights of one shape");
        assert!(bias.is_none_or(|bias| bias.len() == units), "a bias for each of {units} outputs");
    }
    assert!(
        updates.iter().all(|u| u.is_whole() && u.row + u.rows <= rows && u.column + u.outputs() <= 2 * units),
        "an update of one shape"
    );
    let words = tiles::words(units);
    assert!(rows * words <= SIDE * to.packed.len(), "packed rows do not fit");
    let (exact, width) = match to.exact {
        Some((lines, stride)) => {
            assert!(units <= SIDE * stride && rows * stride <= lines.len(), "rows do not fit");
            (lines.as_mut_ptr().cast(), SIDE * stride)
        }
        None => (std::ptr::null_mut(), 0),
    };
    let target = Outputs { packed: to.packed.as_mut_ptr().cast(), exact, borrowed: PhantomData };
    let updates: Vec<GatedUpdate<'_>> = updates.iter().map(by_groups).collect();
    let grid = Grid::on_tiles(true, rows, units / STEP, STEP, tiles::MOST_PAIRS / 2, team.threads());
    team.run(grid.count, &|index| {
        let (tokens, part) = grid.task(index, rows, units);
        let x = x.range(tokens.clone());
        let panels = gates.map(|(weights, bias)| {
            let panel = panel_of(&weights, part.clone(), x, std::ptr::null_mut(), 0);
            Panel { bias: bias.map_or(std::ptr::null(), |bias| bias[part.clone()].as_ptr()), ..panel }
        });
        let (packed, exact) = target.start();
        let gated = Gated { panels, unit: part.start, units, token: tokens.start, packed, words, exact, width, updates: &updates };
        // SAFETY: the weights and inputs have these rows, and the target has room for all rows and
        // units, as was checked above. Tasks begin at groups, and have different rows or units.
        unsafe { tiles::run_gated(isa, &gated) };
    });
}

/// Where the tasks write, each to its own part.
struct Outputs<'a> {
    packed: *mut u32,
    exact: *mut f32,
    borrowed: PhantomData<&'a mut [Line]>,
}

impl Outputs<'_> {
    fn start(&self) -> (*mut u32, *mut f32) {
        (self.packed, self.exact)
    }
}

// SAFETY: `gated` gives every number to only one task.
unsafe impl Sync for Outputs<'_> {}

/// An update with the factors of 16 rows side by side.
fn by_groups<'a>(update: &Update<'a>) -> GatedUpdate<'a> {
    let rows = update.row..update.row + update.rows;
    let first = rows.start / SIDE;
    let mut inner = vec![[0.0; SIDE]; (rows.end.div_ceil(SIDE) - first) * update.rank];
    for (row, lines) in rows.clone().zip(update.inner.chunks_exact(update.lines.max(1))) {
        let factors = lines.iter().flat_map(|line| line.0).map(f32::from_bits).take(update.rank);
        for (rank, factor) in factors.enumerate() {
            inner[(row / SIDE - first) * update.rank + rank][row % SIDE] = factor;
        }
    }
    GatedUpdate { rows, column: update.column, outputs: update.outputs(), rank: update.rank, inner, b: update.b }
}
