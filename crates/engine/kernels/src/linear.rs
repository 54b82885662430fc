//! Linear layers: products of inputs and weights, with bias and LoRA updates.

use std::ops::Range;

use crate::line::{Line, row_lines};
use crate::simd::{Columns, Isa, Update, Weights, into_columns, into_rows};
use crate::{Format, Inputs, Matrix, Team};

/// A weight matrix, and the position of its product: input row `i` gives
/// `y[i * width + column ..]`.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The weights `[outputs, inputs]`.
    pub weight: Matrix<'a>,
    /// Added to the product: `[outputs]`.
    pub bias: Option<&'a [f32]>,
    /// The first column of `y` that it writes.
    pub column: usize,
}

/// A low-rank update (LoRA) of some rows of the product:
/// `y[row][column + i] += sum_r b[r * outputs + i] * dot(a[r], x[row])`.
/// The scale is folded into `b`.
#[derive(Debug, Clone)]
pub struct LowRank<'a> {
    /// The rows of inputs and outputs that it applies to.
    pub rows: Range<usize>,
    /// The first column of `y` that it changes.
    pub column: usize,
    /// The rank.
    pub rank: usize,
    /// PEFT's `lora_A`: `[rank, inputs]`.
    pub a: &'a [f32],
    /// The transpose of PEFT's `lora_B`, `[rank, outputs]`, so that its rows are contiguous.
    pub b: &'a [f32],
}

/// Computes `y = x W^T + bias` for all parts, then adds the updates in order. `x` is
/// `[rows, inputs]`, `y` is `[rows, width]`.
///
/// # Panics
/// If the shapes are inconsistent, `x` has another format than a part, two parts write the same
/// column, or an update changes a column that no part writes.
pub fn linear(team: &Team, x: &Inputs, parts: &[Part<'_>], updates: &[LowRank<'_>], y: &mut [f32], width: usize) {
    assert_eq!(Some(y.len()), x.rows().checked_mul(width), "{} rows of {width} outputs", x.rows());
    check(x, parts, updates, width);
    if x.rows() == 0 {
        return;
    }
    let isa = Isa::get();
    let updates = effective(updates);
    let (inner, lines) = first_products(team, isa, x, &updates);
    let second = second_products(&updates, &inner, lines);
    let parts: Vec<_> = parts.iter().map(|p| Columns { weights: Weights::new(&p.weight), bias: p.bias, column: p.column }).collect();
    into_columns(team, isa, x.packed(), &parts, &second, y, width);
}

/// The products of the inputs and each update's `a`, in rows of so many lines, update after update.
pub(crate) fn first_products(team: &Team, isa: Isa, x: &Inputs, updates: &[&LowRank<'_>]) -> (Vec<Line>, usize) {
    let lines = row_lines(Format::F32, updates.iter().map(|u| u.rank).max().unwrap_or(0));
    let rows: usize = updates.iter().map(|u| u.rows.len()).sum();
    let mut inner = vec![Line::default(); rows * lines];
    let first: Vec<_> = updates.iter().map(|u| (Weights::f32(u.a, x.cols()), x.exact().range(u.rows.clone()))).collect();
    into_rows(team, isa, &first, &mut inner, lines);
    (inner, lines)
}

/// What remains of the updates after [`first_products`].
pub(crate) fn second_products<'a>(updates: &[&LowRank<'a>], inner: &'a [Line], lines: usize) -> Vec<Update<'a>> {
    let mut row = 0;
    let second = updates.iter().map(|u| {
        let from = row * lines;
        row += u.rows.len();
        let inner = &inner[from..row * lines];
        Update { inner, lines, rank: u.rank, b: u.b, rows: u.rows.len(), row: u.rows.start, column: u.column }
    });
    second.collect()
}

/// Those of the updates that change anything.
pub(crate) fn effective<'a, 'b>(updates: &'b [LowRank<'a>]) -> Vec<&'b LowRank<'a>> {
    updates.iter().filter(|u| u.rank > 0 && !u.rows.is_empty() && !u.b.is_empty()).collect()
}

pub(crate) fn check(x: &Inputs, parts: &[Part<'_>], updates: &[LowRank<'_>], width: usize) {
    let mut columns: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        let weight = &part.weight;
        assert_eq!(x.format(), Some(weight.format()), "the inputs must be in the format of the weights");
        assert_eq!(weight.cols(), x.cols(), "as many inputs as the weights have columns");
        assert!(part.bias.is_none_or(|bias| bias.len() == weight.rows()), "a bias for each of {} outputs", weight.rows());
        let end = part.column.checked_add(weight.rows()).filter(|end| *end <= width);
        let end = end.unwrap_or_else(|| panic!("{} outputs at column {} do not fit in rows of {width}", weight.rows(), part.column));
        assert!(columns.iter().all(|other| end <= other.start || other.end <= part.column), "two parts write the same column");
        columns.push(part.column..end);
    }
    for update in updates {
        assert!(update.rows.start <= update.rows.end && update.rows.end <= x.rows(), "rows {:?} of {}", update.rows, x.rows());
        assert_eq!(Some(update.a.len()), update.rank.checked_mul(x.cols()), "an update's first factor is [rank, inputs]");
        assert!(
            update.rank == 0 && update.b.is_empty() || update.rank > 0 && update.b.len().is_multiple_of(update.rank),
            "an update's second factor is [rank, outputs]"
        );
        let outputs = update.b.len() / update.rank.max(1);
        let end = update.column.saturating_add(outputs);
        let covered: usize = columns.iter().map(|c| c.end.min(end).saturating_sub(c.start.max(update.column))).sum();
        assert_eq!(covered, outputs, "an update goes to columns that no part writes");
    }
}
