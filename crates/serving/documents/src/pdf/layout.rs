//! From strings on a page to lines in reading order.
//!
//! Strings on one baseline make fragments, which end at wide gaps. A gutter is a place that few
//! fragments cross and that has columns of text at both sides. Fragments that cross it divide the
//! page into bands; in each band the left column is read before the right one.

use super::content::Place;

/// A gap of this part of the font's size divides words.
const WORD_GAP: f32 = 0.16;

/// A gap of this part of the font's size ends a fragment: more than a justified line stretches its
/// blanks to, less than the gutters of common styles.
const FRAGMENT_GAP: f32 = 0.9;

/// A gap of this part of the font's size divides the cells of a table.
const CELL_GAP: f32 = 2.0;

/// Baselines closer than this part of the font's size are one line: subscripts and superscripts.
const SAME_LINE: f32 = 0.35;

/// Less is no column.
const MIN_COLUMN_LINES: usize = 3;

/// Columns of text are at least so wide, in sizes of the font. Those of tables are narrower, and
/// are read row by row.
const MIN_COLUMN_WIDTH: f32 = 8.0;

/// Columns within columns: three or four beside each other.
const MAX_SPLITS: usize = 2;

/// A string that is shown on a page, turned so that it runs to the right.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// The direction in which it ran, in quarter turns.
    turns: u8,
    left: f32,
    right: f32,
    baseline: f32,
    size: f32,
    bold: bool,
    text: String,
}

impl Run {
    /// A string from one place to another; `None` if there is nothing to see.
    pub(super) fn new(start: Place, end: Place, text: String, bold: bool) -> Option<Run> {
        let (a, b) = start.along;
        let turns = match (a.abs() >= b.abs(), a >= 0.0, b >= 0.0) {
            (true, true, _) => 0,
            (false, _, true) => 1,
            (true, false, _) => 2,
            (false, _, false) => 3,
        };
        let turned = |place: Place| match turns {
            0 => (place.x, place.y),
            1 => (place.y, -place.x),
            2 => (-place.x, -place.y),
            _ => (-place.y, place.x),
        };
        let ((x, y), (other, _)) = (turned(start), turned(end));
        let visible = [x, y, other, start.size].iter().all(|number| number.is_finite()) && start.size > 0.0 && !text.trim().is_empty();
        visible.then(|| Run { turns, left: x.min(other), right: x.max(other), baseline: y, size: start.size, bold, text })
    }
}

/// A line of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) left: f32,
    pub(super) right: f32,
    pub(super) baseline: f32,
    pub(super) size: f32,
    pub(super) bold: bool,
    /// It has wide gaps, as the row of a table has.
    pub(super) cells: bool,
    /// The left and right edge of its column; another column has others.
    pub(super) column: (f32, f32),
}

/// The lines of a page, in reading order. Text in another direction, such as a note along the
/// margin, comes after the rest.
pub(super) fn lines(runs: Vec<Run>) -> Vec<Line> {
    let mut directions: [Vec<Run>; 4] = Default::default();
    for run in runs {
        directions[usize::from(run.turns % 4)].push(run);
    }
    directions.sort_by_key(|runs| std::cmp::Reverse(runs.len()));
    let mut lines = Vec::new();
    for runs in directions {
        column(fragments(runs), 0, &mut lines);
    }
    lines
}

/// The fragments of all baselines, from top to bottom and from left to right.
fn fragments(mut runs: Vec<Run>) -> Vec<Line> {
    runs.sort_by(|one, other| other.baseline.total_cmp(&one.baseline));
    let mut fragments: Vec<Line> = Vec::new();
    let mut rest = runs.as_mut_slice();
    while let Some(first) = rest.first() {
        let (baseline, size) = (first.baseline, first.size);
        let length = rest.iter().take_while(|run| baseline - run.baseline <= SAME_LINE * size.max(run.size)).count();
        let (row, below) = std::mem::take(&mut rest).split_at_mut(length.max(1));
        row.sort_by(|one, other| one.left.total_cmp(&other.left));
        let begin = fragments.len();
        for run in row.iter() {
            match fragments.get_mut(begin..).and_then(<[Line]>::last_mut).filter(|last| joins(last, run)) {
                Some(last) => join(last, run),
                None => fragments.push(Line {
                    text: run.text.clone(),
                    left: run.left,
                    right: run.right,
                    baseline,
                    size: run.size,
                    bold: run.bold,
                    cells: false,
                    column: (run.left, run.right),
                }),
            }
        }
        rest = below;
    }
    fragments
}

/// Whether a string goes on with the fragment at its left.
fn joins(last: &Line, run: &Run) -> bool {
    run.left - last.right <= FRAGMENT_GAP * last.size.max(run.size)
}

fn join(last: &mut Line, run: &Run) {
    // bold type is sometimes made by showing a string twice, a hair apart
    if run.left < last.right && last.text.ends_with(&run.text) && (last.right - run.right).abs() < WORD_GAP * run.size {
        return;
    }
    let blank = last.text.ends_with(char::is_whitespace) || run.text.starts_with(char::is_whitespace);
    if run.left - last.right > WORD_GAP * last.size.min(run.size) && !blank {
        last.text.push(' ');
    }
    // the largest type is that of the line: not that of its footnote mark
    last.size = last.size.max(run.size);
    last.bold &= run.bold;
    last.text.push_str(&run.text);
    last.right = last.right.max(run.right);
}

/// Adds the lines of a region in reading order: of one column, or of those that gutters divide.
fn column(fragments: Vec<Line>, splits: usize, lines: &mut Vec<Line>) {
    let Some(gutter) = (splits < MAX_SPLITS).then(|| gutter(&fragments)).flatten() else {
        return one_column(fragments, lines);
    };
    let (mut left, mut right, mut crossing) = (Vec::new(), Vec::new(), Vec::new());
    for fragment in fragments {
        let side = match (fragment.right <= gutter, fragment.left > gutter) {
            (true, _) => &mut left,
            (_, true) => &mut right,
            _ => {
                // it crosses the gutter: what is above is read first
                column(std::mem::take(&mut left), splits + 1, lines);
                column(std::mem::take(&mut right), splits + 1, lines);
                crossing.push(fragment);
                continue;
            }
        };
        one_column(std::mem::take(&mut crossing), lines);
        side.push(fragment);
    }
    one_column(crossing, lines);
    column(left, splits + 1, lines);
    column(right, splits + 1, lines);
}

/// The right edge of the left column, if there are two.
fn gutter(fragments: &[Line]) -> Option<f32> {
    let mut lefts: Vec<f32> = fragments.iter().map(|line| line.left).collect();
    let mut rights: Vec<f32> = fragments.iter().map(|line| line.right).collect();
    lefts.sort_by(f32::total_cmp);
    rights.sort_by(f32::total_cmp);
    let score = |x: f32| {
        let (before, after) = (rights.partition_point(|right| *right <= x), lefts.len() - lefts.partition_point(|left| *left <= x));
        let crossing = fragments.len().saturating_sub(before + after);
        let smaller = before.min(after);
        (smaller >= MIN_COLUMN_LINES && crossing <= smaller).then(|| 2 * smaller - crossing)
    };
    let best = rights.iter().filter_map(|right| Some((score(*right)?, *right)));
    // of equal ones the last: the whole left column ends there
    let (_, gutter) = best.max_by(|(one, at), (other, later)| one.cmp(other).then(at.total_cmp(later)))?;
    let left: Vec<&Line> = fragments.iter().filter(|line| line.right <= gutter).collect();
    let right: Vec<&Line> = fragments.iter().filter(|line| line.left > gutter).collect();
    (is_column(&left) && is_column(&right) && beside(&left, &right)).then_some(gutter)
}

/// Whether lines are text, and not the cells of a table or the marks of a list.
fn is_column(lines: &[&Line]) -> bool {
    let mut widths: Vec<f32> = lines.iter().map(|line| (line.right - line.left) / line.size).collect();
    widths.sort_by(f32::total_cmp);
    widths.get(widths.len() / 2).is_some_and(|median| *median >= MIN_COLUMN_WIDTH)
}

/// Whether two columns stand beside each other, and not one below the other.
fn beside(left: &[&Line], right: &[&Line]) -> bool {
    let range = |lines: &[&Line]| {
        let low = lines.iter().map(|line| line.baseline).fold(f32::INFINITY, f32::min);
        (low, lines.iter().map(|line| line.baseline).fold(f32::NEG_INFINITY, f32::max))
    };
    let ((low, high), (other_low, other_high)) = (range(left), range(right));
    let shared = high.min(other_high) - low.max(other_low);
    shared > 0.0 && shared * 2.0 >= (high - low).min(other_high - other_low)
}

/// Adds the lines of one column: fragments of one baseline are one line.
fn one_column(fragments: Vec<Line>, lines: &mut Vec<Line>) {
    let edges = fragments.iter().map(|line| (line.left, line.right));
    let column = edges.fold((f32::INFINITY, f32::NEG_INFINITY), |(left, right), edge| (left.min(edge.0), right.max(edge.1)));
    let begin = lines.len();
    for fragment in fragments {
        match lines.get_mut(begin..).and_then(<[Line]>::last_mut).filter(|last| last.baseline == fragment.baseline) {
            Some(last) => {
                last.cells |= fragment.left - last.right > CELL_GAP * fragment.size;
                last.text.push(' ');
                last.text.push_str(&fragment.text);
                last.right = last.right.max(fragment.right);
                last.size = last.size.max(fragment.size);
                last.bold &= fragment.bold;
            }
            None => lines.push(Line { column, ..fragment }),
        }
    }
}
