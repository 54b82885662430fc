//! Products of rows of inputs with rows of weights, each output a dot product of its own.
//!
//! A register tile is [`GROUP`] rows of weights by up to [`Dot::TOKENS`] rows of inputs; both are read as they lie. The
//! chain of operations of an output is the same in every tile: one vector of partial sums, taken along the row, summed
//! up by [`Vector::sums`].

use std::marker::PhantomData;
use std::ops::Range;

use super::{Dot, Isa, Level, Line, Vector, portable, prefetch};
#[cfg(target_arch = "x86_64")]
use super::{x86, x86_bytes};
use crate::{Format, Matrix, Team};

/// Rows of weights in a register tile.
const GROUP: usize = 4;
/// Bytes of weights that are kept in the first-level cache while the inputs pass by.
const NEAR: usize = 20 << 10;
/// Bytes of inputs that are kept in the second-level cache while the weights pass by.
const MIDDLE: usize = 384 << 10;
/// Bytes by which weights are asked for ahead of their use: the processor's own prefetching stops at pages.
const AHEAD: usize = 4096;
/// Multiply-adds below which another thread costs more than it brings.
const SMALL: usize = 1 << 17;
/// Multiply-adds of a task, at least.
const TASK: usize = 1 << 15;

/// Rows of inputs in the form that the kernels of a format read (see `inputs.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    format: Format,
    lines: &'a [Line],
    stride: usize,
    rows: usize,
    cols: usize,
}

impl<'a> Rows<'a> {
    /// Rows `stride` lines apart, each of which has what the format needs for `cols` numbers.
    pub(crate) fn new(format: Format, lines: &'a [Line], stride: usize, rows: usize, cols: usize) -> Self {
        assert!(crate::inputs::row_lines(format, cols) <= stride && rows.checked_mul(stride).is_some_and(|n| n <= lines.len()));
        Self { format, lines, stride, rows, cols }
    }

    /// Some of the rows.
    pub(crate) fn range(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        Self { lines: &self.lines[range.start * self.stride..], rows: range.len(), ..self }
    }
}

/// Rows of weights.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    format: Format,
    start: *const u8,
    row_bytes: usize,
    rows: usize,
    cols: usize,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: it is a shared borrow of bytes.
unsafe impl Sync for Weights<'_> {}

impl<'a> Weights<'a> {
    /// A matrix.
    pub(crate) fn new(matrix: &Matrix<'a>) -> Self {
        let (bytes, row_bytes) = (matrix.bytes(), matrix.row_bytes());
        assert_eq!(row_bytes.checked_mul(matrix.rows()), Some(bytes.len()));
        let (format, rows, cols) = (matrix.format(), matrix.rows(), matrix.cols());
        Self { format, start: bytes.as_ptr(), row_bytes, rows, cols, borrowed: PhantomData }
    }

    /// Rows of f32.
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

/// An update of outputs after the product: `out[row + i][column + o] += x[i] . weights[o]`.
pub(crate) struct Update<'a> {
    pub(crate) weights: Weights<'a>,
    pub(crate) x: Rows<'a>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// A product into columns of the outputs: `out[i][column + o] = x[i] . weights[o] + bias[o]`.
pub(crate) struct Columns<'a> {
    pub(crate) weights: Weights<'a>,
    pub(crate) bias: Option<&'a [f32]>,
    pub(crate) column: usize,
}

/// Products of the same inputs into columns of rows of `width` numbers, then the updates, in their order.
///
/// # Panics
/// If shapes do not agree or columns overlap.
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
    // SAFETY: the columns of different jobs are disjoint, and all rows have them.
    unsafe { run(team, isa, &jobs, updates, out, width) };
}

/// Products of several inputs into one buffer of rows of `width` numbers, one after the other.
///
/// # Panics
/// If shapes do not agree.
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
    // SAFETY: a line is 16 times 32 bits, any of which are an f32 and the other way round.
    let out = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<f32>(), 16 * out.len()) };
    // SAFETY: the rows of different jobs are disjoint, and wide enough.
    unsafe { run(team, isa, &jobs, &[], out, 16 * width) };
}

/// The outputs, of which every task writes its own.
struct Output<'a> {
    start: *mut f32,
    width: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: `run` hands every number to one task only.
unsafe impl Sync for Output<'_> {}

/// How a job is cut into tasks.
struct Grid {
    /// Rows of inputs in a task.
    tokens: usize,
    /// Rows of weights in a task.
    rows: usize,
    /// Tasks along the weights.
    across: usize,
    /// Tasks.
    count: usize,
}

/// # Safety
/// The outputs of all jobs lie inside `out`, and those of different jobs are disjoint.
unsafe fn run(team: &Team, isa: Isa, jobs: &[Job<'_>], updates: &[Update<'_>], out: &mut [f32], width: usize) {
    for Job { weights, x, bias, .. } in jobs {
        assert!(weights.format == x.format && weights.cols == x.cols, "inputs and weights of one shape");
        assert!(bias.is_none_or(|bias| bias.len() == weights.rows), "a bias for each of {} outputs", weights.rows);
    }
    assert!(updates.iter().all(|u| u.weights.format == u.x.format && u.weights.cols == u.x.cols), "an update of one shape");
    let work: usize = jobs.iter().map(|j| j.x.rows * j.weights.rows * j.x.cols).sum();
    let target = (work / (32 * team.threads())).max(TASK);
    let grids: Vec<Grid> = jobs.iter().map(|job| grid(job, target)).collect();
    let out = Output { start: out.as_mut_ptr(), width, borrowed: PhantomData };
    let task = |mut index: usize| {
        for (job, grid) in jobs.iter().zip(&grids) {
            if index >= grid.count {
                index -= grid.count;
                continue;
            }
            let cut = |i: usize, size: usize, all: usize| i * size..((i + 1) * size).min(all);
            let tokens = cut(index / grid.across, grid.tokens, job.x.rows);
            let rows = cut(index % grid.across, grid.rows, job.weights.rows);
            // SAFETY: inside the job's outputs, and no other task has these tokens and rows.
            return unsafe { rectangle(isa, job, updates, tokens, rows, &out) };
        }
    };
    let count = grids.iter().map(|g| g.count).sum();
    if work < SMALL { (0..count).for_each(task) } else { team.run(count, &task) }
}

fn grid(job: &Job<'_>, target: usize) -> Grid {
    let (n, rows) = (job.x.rows, job.weights.rows);
    let blocks = (n * job.x.stride * size_of::<Line>()).div_ceil(MIDDLE).max(1);
    let tokens = n.div_ceil(blocks).next_multiple_of(12).min(n).max(1);
    let per = target.div_ceil(tokens * job.x.cols.max(1)).next_multiple_of(16).min(rows).max(1);
    let across = rows.div_ceil(per);
    Grid { tokens, rows: per, across, count: across * n.div_ceil(tokens) }
}

/// Some tokens and rows of a job, with the updates that concern them.
///
/// # Safety
/// They exist in the job, whose outputs lie inside `out`; no other thread reads or writes these outputs.
unsafe fn rectangle(isa: Isa, job: &Job<'_>, updates: &[Update<'_>], tokens: Range<usize>, rows: Range<usize>, out: &Output<'_>) {
    let x = job.x.range(tokens.clone());
    // SAFETY: inside the outputs.
    let start = unsafe { out.start.add(job.base + tokens.start * out.width + rows.start) };
    let panel = Panel::new(&job.weights, rows.clone(), x, start, out.width);
    let panel = Panel { bias: job.bias.map_or(std::ptr::null(), |bias| bias[rows.clone()].as_ptr()), ..panel };
    // SAFETY: the outputs are this call's alone; weights and inputs have these rows, and one shape (checked by `run`).
    unsafe { dispatch(isa, job.weights.format, &panel) };
    for update in updates {
        let columns = job.base + rows.start..job.base + rows.end;
        let columns = columns.start.max(update.column)..columns.end.min(update.column + update.weights.rows);
        let lines = tokens.start.max(update.row)..tokens.end.min(update.row + update.x.rows);
        if columns.is_empty() || lines.is_empty() {
            continue;
        }
        let x = update.x.range(lines.start - update.row..lines.end - update.row);
        let rows = columns.start - update.column..columns.end - update.column;
        // SAFETY: inside the outputs.
        let start = unsafe { out.start.add(lines.start * out.width + columns.start) };
        let panel = Panel { accumulate: true, ..Panel::new(&update.weights, rows, x, start, out.width) };
        // SAFETY: as above: these are some of the same outputs.
        unsafe { dispatch(isa, update.weights.format, &panel) };
    }
}

/// Rows of weights by rows of inputs, as pointers.
struct Panel {
    weights: *const u8,
    row_bytes: usize,
    rows: usize,
    x: *const u8,
    x_bytes: usize,
    tokens: usize,
    out: *mut f32,
    width: usize,
    /// One number for each row of weights, or null.
    bias: *const f32,
    /// Whether to add to what the outputs hold.
    accumulate: bool,
}

impl Panel {
    fn new(weights: &Weights<'_>, rows: Range<usize>, x: Rows<'_>, out: *mut f32, width: usize) -> Self {
        assert!(rows.start <= rows.end && rows.end <= weights.rows, "rows {rows:?} of {}", weights.rows);
        Self {
            weights: weights.start.wrapping_add(rows.start * weights.row_bytes),
            row_bytes: weights.row_bytes,
            rows: rows.len(),
            x: x.lines.as_ptr().cast(),
            x_bytes: x.stride * size_of::<Line>(),
            tokens: x.rows,
            out,
            width,
            bias: std::ptr::null(),
            accumulate: false,
        }
    }
}

/// # Safety
/// The pointers of the panel are good for its rows, the inputs are in the form of the format, and no other thread
/// touches the outputs.
unsafe fn dispatch(isa: Isa, format: Format, p: &Panel) {
    // SAFETY: handed on; an `Isa` says that the machine has its instructions.
    unsafe {
        match (isa.0, format) {
            (Level::Portable, Format::F32) => panel::<portable::F32<portable::Array, 2>>(p),
            (Level::Portable, Format::Bf16) => panel::<portable::Bf16>(p),
            (Level::Portable, Format::Q8_0) => panel::<portable::Bytes>(p),
            #[cfg(target_arch = "x86_64")]
            (level, format) => compiled::dispatch(level, format, p),
        }
    }
}

/// The kernels, compiled with the features that they need.
#[cfg(target_arch = "x86_64")]
mod compiled {
    use super::*;

    macro_rules! entries {
        ($($name:ident, $features:literal, $dot:ty;)*) => {$(
            #[target_feature(enable = $features)]
            unsafe fn $name(p: &Panel) {
                // SAFETY: as for the caller.
                unsafe { panel::<$dot>(p) }
            }
        )*};
    }
    entries! {
        f32_256, "avx2,fma", portable::F32<x86::V256, 3>;
        bf16_256, "avx2,fma", x86::Bf16Half;
        bytes_256, "avx2,fma,f16c", x86_bytes::BytesPairs;
        f32_512, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma", portable::F32<x86::V512, 6>;
        bf16_512, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma", x86::Bf16Wide;
        bf16_pairs, "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma", x86::Bf16Pairs;
        bytes_512, "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma,f16c", x86_bytes::BytesVnni;
    }

    /// # Safety
    /// As for [`super::dispatch`]; `level` is one of this machine's.
    pub(super) unsafe fn dispatch(level: Level, format: Format, p: &Panel) {
        // SAFETY: handed on; each level has the features that its kernels are compiled with.
        unsafe {
            match (level, format) {
                (Level::Avx512 | Level::Avx512Full, Format::F32) => f32_512(p),
                (Level::Avx512Full, Format::Bf16) => bf16_pairs(p),
                (Level::Avx512, Format::Bf16) => bf16_512(p),
                (Level::Avx512Full, Format::Q8_0) => bytes_512(p),
                (_, Format::F32) => f32_256(p),
                (_, Format::Bf16) => bf16_256(p),
                (_, Format::Q8_0) => bytes_256(p),
            }
        }
    }
}

/// All tiles of a panel: a few rows of weights stay near while all inputs pass by.
///
/// # Safety
/// As for [`dispatch`], and the machine has the instructions of `K`.
#[inline(always)]
unsafe fn panel<K: Dot>(p: &Panel) {
    let near = if p.tokens <= K::TOKENS { p.rows } else { (NEAR / p.row_bytes.max(1)).next_multiple_of(GROUP).max(GROUP) };
    let tiles = p.tokens.div_ceil(K::TOKENS);
    let mut row = 0;
    while row < p.rows {
        let end = (row + near).min(p.rows);
        let mut token = 0;
        for tile in 0..tiles {
            // equal tiles: 7 becomes 4 + 3, not 6 + 1
            let n = (p.tokens - token).div_ceil(tiles - tile);
            let ahead = if tile == 0 { AHEAD } else { 0 };
            let mut r = row;
            while r < end {
                // SAFETY: rows `r..` and tokens `token..token + n` are in the panel; `n <= TOKENS <= 6`.
                unsafe {
                    match n {
                        1 => self::tile::<K, 1>(p, r, token, ahead),
                        2 => self::tile::<K, 2>(p, r, token, ahead),
                        3 => self::tile::<K, 3>(p, r, token, ahead),
                        4 => self::tile::<K, 4>(p, r, token, ahead),
                        5 => self::tile::<K, 5>(p, r, token, ahead),
                        _ => self::tile::<K, 6>(p, r, token, ahead),
                    }
                }
                r += GROUP;
            }
            token += n;
        }
        row = end;
    }
}

/// [`GROUP`] rows of weights (or what is left of them) by `T` rows of inputs.
///
/// # Safety
/// As for [`panel`]; the rows exist, at least one of weights.
#[inline(always)]
unsafe fn tile<K: Dot, const T: usize>(p: &Panel, row: usize, token: usize, ahead: usize) {
    let valid = (p.rows - row).min(GROUP);
    // SAFETY: all rows are in the panel (rows of weights that are not there are replaced by the last one, and not
    // stored), all steps inside the rows.
    unsafe {
        let mut weights = [p.weights; GROUP];
        for (i, weights) in weights.iter_mut().enumerate() {
            *weights = p.weights.add((row + i.min(valid - 1)) * p.row_bytes);
        }
        let x = p.x.add(token * p.x_bytes);
        let mut acc = [[K::Acc::zero(); GROUP]; T];
        let (steps, part) = (p.row_bytes / K::WEIGHT_BYTES, p.row_bytes % K::WEIGHT_BYTES);
        for step in 0..steps {
            let at = step * K::WEIGHT_BYTES;
            let mut w = [K::weight(weights[0].add(at)); GROUP];
            prefetch(weights[0].wrapping_add(at + ahead));
            for i in 1..GROUP {
                w[i] = K::weight(weights[i].add(at));
                prefetch(weights[i].wrapping_add(at + ahead));
            }
            multiply::<K, T>(&mut acc, &w, x.add(step * K::INPUT_BYTES), p.x_bytes);
        }
        if part > 0 {
            let at = steps * K::WEIGHT_BYTES;
            let mut w = [K::weight_part(weights[0].add(at), part); GROUP];
            for i in 1..GROUP {
                w[i] = K::weight_part(weights[i].add(at), part);
            }
            multiply::<K, T>(&mut acc, &w, x.add(steps * K::INPUT_BYTES), p.x_bytes);
        }
        let mut bias = [0f32; GROUP];
        if !p.bias.is_null() {
            std::ptr::copy_nonoverlapping(p.bias.add(row), bias.as_mut_ptr(), valid);
        }
        for (t, acc) in acc.into_iter().enumerate() {
            let mut sums = K::Acc::sums(acc);
            let out = p.out.add((token + t) * p.width + row);
            if valid == GROUP {
                let out = out.cast::<[f32; GROUP]>();
                let add = if p.accumulate { out.read_unaligned() } else { bias };
                for i in 0..GROUP {
                    sums[i] += add[i];
                }
                out.write_unaligned(sums);
            } else {
                for i in 0..valid {
                    let out = out.add(i);
                    out.write(sums[i] + if p.accumulate { out.read() } else { bias[i] });
                }
            }
        }
    }
}

/// One step of a tile.
///
/// # Safety
/// As for [`tile`]: `x` points to the step in the first of `T` rows that are `x_bytes` apart.
#[inline(always)]
unsafe fn multiply<K: Dot, const T: usize>(acc: &mut [[K::Acc; GROUP]; T], w: &[K::Weight; GROUP], x: *const u8, x_bytes: usize) {
    for (t, acc) in acc.iter_mut().enumerate() {
        // SAFETY: the row has this step (inputs are padded with zeros).
        unsafe {
            let x = K::input(x.add(t * x_bytes));
            for (acc, w) in acc.iter_mut().zip(w) {
                *acc = K::step(*acc, *w, x);
            }
        }
    }
}
