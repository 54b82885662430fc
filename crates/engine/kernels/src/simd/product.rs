//! Products of input rows and weight rows: the distribution of work over threads.

use std::marker::PhantomData;
use std::ops::Range;

use super::Isa;
use super::panel::{self, Panel};
use super::tiles;
use crate::line::{Line, row_lines};
use crate::{Format, Matrix, Team};

/// Bytes of inputs that stay in the second-level cache while the weights are read.
const MIDDLE: usize = 384 << 10;
/// Tasks of each thread for products of many rows on tiles: each reads all inputs, and one thread
/// may be slower than another. For few rows each has one, since at the beginning of every task
/// weights are waited for.
const PARTS: usize = 2;
/// Minimum number of multiply-adds for which another thread is worth its cost.
const SMALL: usize = 1 << 17;
/// Minimum number of multiply-adds of a task.
const TASK: usize = 1 << 15;

/// Input rows in the layout of a format (`inputs.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(super) format: Format,
    layout: Layout,
    lines: &'a [Line],
    pub(super) rows: usize,
    pub(super) cols: usize,
}

#[derive(Clone, Copy)]
enum Layout {
    /// Rows are so many lines apart.
    Rows(usize),
    /// Groups for tiles (`tiles.rs`).
    Tiles {
        /// Words of each row.
        words: usize,
    },
}

impl<'a> Rows<'a> {
    /// Rows that are `stride` lines apart; each must hold `cols` numbers in the format's layout.
    pub(crate) fn new(format: Format, lines: &'a [Line], stride: usize, rows: usize, cols: usize) -> Self {
        assert!(row_lines(format, cols) <= stride && rows.checked_mul(stride).is_some_and(|n| n <= lines.len()));
        Self { format, layout: Layout::Rows(stride), lines, rows, cols }
    }

    /// Rows that are packed for tiles.
    pub(crate) fn for_tiles(format: Format, lines: &'a [Line], rows: usize, cols: usize) -> Self {
        let words = tiles::words(cols);
        assert!(rows.checked_mul(words).is_some_and(|n| n <= tiles::SIDE * lines.len()));
        Self { format, layout: Layout::Tiles { words }, lines, rows, cols }
    }

    /// A range of the rows. In the layout for tiles, a range of whole groups, or up to the end.
    pub(crate) fn range(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        let from = match self.layout {
            Layout::Rows(stride) => range.start * stride,
            Layout::Tiles { words } => {
                let whole = |row: usize| row.is_multiple_of(tiles::SIDE);
                assert!(whole(range.start) && (whole(range.end) || range.end == self.rows), "rows {range:?} of {} in groups", self.rows);
                range.start / tiles::SIDE * words
            }
        };
        Self { lines: &self.lines[from..], rows: range.len(), ..self }
    }

    /// Whether they are packed for tiles.
    pub(super) fn is_for_tiles(&self) -> bool {
        matches!(self.layout, Layout::Tiles { .. })
    }

    /// Bytes of a row, with its distance to the next.
    fn row_bytes(&self) -> usize {
        match self.layout {
            Layout::Rows(stride) => stride * size_of::<Line>(),
            Layout::Tiles { words } => 4 * words,
        }
    }

    /// Numbers of input rows and of weight rows at whose multiples a product is cut.
    fn steps(&self) -> (usize, usize) {
        match self.layout {
            Layout::Rows(_) => (12, 16),
            Layout::Tiles { .. } => (2 * tiles::SIDE, 2 * tiles::SIDE),
        }
    }
}

/// Weight rows.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub(super) format: Format,
    start: *const u8,
    row_bytes: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: it is a shared borrow of bytes.
unsafe impl Sync for Weights<'_> {}

impl<'a> Weights<'a> {
    /// The rows of a matrix.
    pub(crate) fn new(matrix: &Matrix<'a>) -> Self {
        let (bytes, row_bytes) = (matrix.bytes(), matrix.row_bytes());
        assert_eq!(row_bytes.checked_mul(matrix.rows()), Some(bytes.len()));
        let (format, rows, cols) = (matrix.format(), matrix.rows(), matrix.cols());
        Self { format, start: bytes.as_ptr(), row_bytes, rows, cols, borrowed: PhantomData }
    }

    /// Rows of `cols` f32.
    pub(crate) fn f32(numbers: &'a [f32], cols: usize) -> Self {
        assert!(cols > 0 && numbers.len().is_multiple_of(cols), "{} numbers are no whole rows of {cols}", numbers.len());
        let rows = numbers.len() / cols;
        Self { format: Format::F32, start: numbers.as_ptr().cast(), row_bytes: 4 * cols, rows, cols, borrowed: PhantomData }
    }
}

/// One product: `out[base + i * width + o] = x[i] . weights[o] + bias[o]`.
struct Job<'a> {
    weights: Weights<'a>,
    x: Rows<'a>,
    bias: Option<&'a [f32]>,
    base: usize,
}

/// An update of outputs after the product:
/// `out[row + i][column + o] += sum_r inner[i][r] * b[r][o]`.
pub(crate) struct Update<'a> {
    /// Rows of `lines` cache lines, of which the first `rank` numbers are used.
    pub(crate) inner: &'a [Line],
    pub(crate) lines: usize,
    pub(crate) rank: usize,
    /// The factor `[rank, outputs]`.
    pub(crate) b: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Update<'_> {
    /// Whether its factors have the shapes that it says.
    pub(super) fn is_whole(&self) -> bool {
        self.inner.len() == self.rows * self.lines && self.rank <= 16 * self.lines && self.b.len() == self.rank * self.outputs()
    }

    pub(super) fn outputs(&self) -> usize {
        self.b.len() / self.rank.max(1)
    }
}

/// A product into columns of the outputs: `out[i][column + o] = x[i] . weights[o] + bias[o]`.
pub(crate) struct Columns<'a> {
    pub(crate) weights: Weights<'a>,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) column: usize,
}

/// Products of the same inputs into columns of `out` `[rows, width]`, then the updates in order.
///
/// # Panics
/// If shapes are inconsistent or columns overlap.
pub(crate) fn into_columns(
    team: &Team,
    isa: Isa,
    x: Rows<'_>,
    parts: &[Columns<'_>],
    updates: &[Update<'_>],
    out: &mut [f32],
    width: usize,
) {
    assert_eq!(x.rows.checked_mul(width), Some(out.len()), "{} rows of {width} outputs", x.rows);
    for (i, part) in parts.iter().enumerate() {
        let end = |p: &Columns<'_>| p.column + p.weights.rows;
        assert!(
            part.column <= width && end(part) <= width,
            "{} outputs at column {} do not fit in rows of {width}",
            part.weights.rows,
            part.column
        );
        let apart = |p: &Columns<'_>| end(p) <= part.column || end(part) <= p.column;
        assert!(parts[..i].iter().all(apart), "two parts write the same column");
    }
    let jobs: Vec<Job<'_>> = parts.iter().map(|p| Job { weights: p.weights, x, bias: p.bias, base: p.column }).collect();
    // SAFETY: the columns of different jobs are disjoint and exist in all rows.
    unsafe { run(team, isa, &jobs, updates, out, width) };
}

/// Products of several inputs into one buffer of rows of `width` cache lines, one after the other.
///
/// # Panics
/// If shapes are inconsistent.
pub(crate) fn into_rows(team: &Team, isa: Isa, products: &[(Weights<'_>, Rows<'_>)], out: &mut [Line], width: usize) {
    assert!(products.iter().all(|(weights, _)| weights.rows <= 16 * width), "outputs do not fit in rows of {width} lines");
    let mut row = 0;
    let jobs: Vec<Job<'_>> = products
        .iter()
        .map(|(weights, x)| {
            let base = row * 16 * width;
            row += x.rows;
            Job { weights: *weights, x: *x, bias: None, base }
        })
        .collect();
    assert!(row.checked_mul(width).is_some_and(|n| n <= out.len()), "{row} rows of {width} lines");
    // SAFETY: a line has 16 words of 32 bits, and every bit pattern is an f32 and a word.
    let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<f32>(), 16 * out.len()) };
    // SAFETY: the rows of different jobs are disjoint, and wide enough.
    unsafe { run(team, isa, &jobs, &[], out, 16 * width) };
}

/// The outputs. Every task writes its own part.
struct Output<'a> {
    start: *mut f32,
    width: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: `run` gives every number to only one task.
unsafe impl Sync for Output<'_> {}

/// The split of a job into tasks.
pub(super) struct Grid {
    /// Input rows in a task.
    tokens: usize,
    /// Weight rows that stay together.
    unit: usize,
    /// Number of units.
    units: usize,
    /// Number of tasks along the weight rows.
    across: usize,
    /// Number of tasks.
    pub(super) count: usize,
}

impl Grid {
    /// For products on tiles; with `many` rows, at most `most` units in a task.
    pub(super) fn on_tiles(many: bool, tokens: usize, units: usize, unit: usize, most: usize, threads: usize) -> Self {
        let (parts, most) = if many { (PARTS, most) } else { (1, usize::MAX) };
        let down = tokens.div_ceil(tiles::MOST).max(1);
        let tokens = tokens.div_ceil(down).next_multiple_of(2 * tiles::SIDE);
        let across = (parts * threads).div_ceil(down).max(units.div_ceil(most)).min(units);
        Self { tokens, unit, units, across, count: across * down }
    }

    /// The input rows and weight rows of a task, where there are so many in all.
    pub(super) fn task(&self, index: usize, tokens: usize, rows: usize) -> (Range<usize>, Range<usize>) {
        let row = |i: usize| (i * self.units / self.across * self.unit).min(rows);
        let (down, right) = (index / self.across, index % self.across);
        (down * self.tokens..((down + 1) * self.tokens).min(tokens), row(right)..row(right + 1))
    }
}

/// # Safety
/// The outputs of all jobs must lie inside `out`, and those of different jobs must be disjoint.
unsafe fn run(team: &Team, isa: Isa, jobs: &[Job<'_>], updates: &[Update<'_>], out: &mut [f32], width: usize) {
    for Job { weights, x, bias, .. } in jobs {
        assert!(weights.format == x.format && weights.cols == x.cols, "inputs and weights of one shape");
        assert!(bias.is_none_or(|bias| bias.len() == weights.rows), "a bias for each of {} outputs", weights.rows);
    }
    assert!(updates.iter().all(Update::is_whole), "an update of one shape");
    let work: usize = jobs.iter().map(|j| j.x.rows * j.weights.rows * j.x.cols).sum();
    // A single thread gains nothing from small tasks.
    let target = if team.threads() == 1 { work } else { (work / (32 * team.threads())).max(TASK) };
    let grids: Vec<Grid> = jobs.iter().map(|job| grid(job, target, team.threads())).collect();
    let out = Output { start: out.as_mut_ptr(), width, borrowed: PhantomData };
    let task = |mut index: usize| {
        for (job, grid) in jobs.iter().zip(&grids) {
            if index >= grid.count {
                index -= grid.count;
                continue;
            }
            let (tokens, rows) = grid.task(index, job.x.rows, job.weights.rows);
            // SAFETY: inside the job's outputs, and no other task has these tokens and rows.
            return unsafe { rectangle(isa, job, updates, tokens, rows, &out) };
        }
    };
    let count = grids.iter().map(|g| g.count).sum();
    if work < SMALL { (0..count).for_each(task) } else { team.run(count, &task) }
}

fn grid(job: &Job<'_>, target: usize, threads: usize) -> Grid {
    let (n, rows) = (job.x.rows, job.weights.rows);
    let (inputs, weights) = job.x.steps();
    if job.x.is_for_tiles() {
        let many = tiles::are_many(job.weights.format, n);
        return Grid::on_tiles(many, n, rows.div_ceil(weights), weights, tiles::MOST_PAIRS, threads);
    }
    let blocks = (n * job.x.row_bytes()).div_ceil(MIDDLE).max(1);
    let tokens = n.div_ceil(blocks).next_multiple_of(inputs).min(n).max(1);
    let unit = target.div_ceil(tokens * job.x.cols.max(1)).next_multiple_of(weights).min(rows).max(1);
    let across = rows.div_ceil(unit);
    Grid { tokens, unit, units: across, across, count: across * n.div_ceil(tokens) }
}

/// Some tokens and weight rows of a job, with the updates that concern them.
///
/// # Safety
/// They must exist in the job, whose outputs lie inside `out`. No other thread may access these
/// outputs.
unsafe fn rectangle(isa: Isa, job: &Job<'_>, updates: &[Update<'_>], tokens: Range<usize>, rows: Range<usize>, out: &Output<'_>) {
    let x = job.x.range(tokens.clone());
    // SAFETY: inside the outputs.
    let start = unsafe { out.start.add(job.base + tokens.start * out.width + rows.start) };
    let panel = panel_of(&job.weights, rows.clone(), x, start, out.width);
    let panel = Panel { bias: job.bias.map_or(std::ptr::null(), |bias| bias[rows.clone()].as_ptr()), ..panel };
    // SAFETY: only this call has these outputs; weights and inputs have these rows and matching
    // shapes (checked by `run`).
    unsafe {
        match x.layout {
            Layout::Rows(_) => panel::run(isa, &panel),
            Layout::Tiles { .. } => tiles::run(isa, &panel),
        }
    }
    for update in updates {
        let columns = job.base + rows.start..job.base + rows.end;
        let columns = columns.start.max(update.column)..columns.end.min(update.column + update.outputs());
        let tokens = tokens.start.max(update.row)..tokens.end.min(update.row + update.rows);
        if columns.is_empty() || tokens.is_empty() {
            continue;
        }
        for token in tokens {
            let inner = &update.inner[(token - update.row) * update.lines..][..update.lines];
            // SAFETY: inside the outputs, and among those that only this call has.
            let y = unsafe { std::slice::from_raw_parts_mut(out.start.add(token * out.width + columns.start), columns.len()) };
            super::add_low_rank(isa, inner, update.rank, update.b, columns.start - update.column, y);
        }
    }
}

/// The panel of some weight rows and all input rows.
pub(super) fn panel_of(weights: &Weights<'_>, rows: Range<usize>, x: Rows<'_>, out: *mut f32, width: usize) -> Panel {
    assert!(rows.start <= rows.end && rows.end <= weights.rows, "rows {rows:?} of {}", weights.rows);
    Panel {
        format: weights.format,
        weights: weights.start.wrapping_add(rows.start * weights.row_bytes),
        row_bytes: weights.row_bytes,
        rows: rows.len(),
        x: x.lines.as_ptr().cast(),
        x_bytes: x.row_bytes(),
        tokens: x.rows,
        out,
        width,
        bias: std::ptr::null(),
        accumulate: false,
    }
}
