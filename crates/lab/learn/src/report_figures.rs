//! The paper's figures 3 and 4 in the report.

use autoact_plot::{Axis, IntervalRow, Plot, Series, intervals};

use crate::report::{Report, RowReport};
use crate::row::AUTOACT;
use crate::variants::{TOOL_SPECIFIED, scale_of};

/// The figures whose rows were evaluated.
pub(crate) fn figures(report: &Report) -> String {
    let row = |name: &str| report.evaluation.iter().find(|row| row.row == name);
    let mut out = String::new();
    let chosen = report.iterated.as_ref().map_or(1, |iterated| iterated.chosen);
    if let Some(all) = row(AUTOACT) {
        let documents = report.training.iter().find(|one| one.adapter == "plan" && one.round == chosen).map(|one| one.documents);
        let parts = report.evaluation.iter().filter_map(|row| Some((scale_of(&row.row)?, row)));
        let mut points: Vec<(usize, &RowReport)> = parts.chain(documents.map(|count| (count, all))).collect();
        points.sort_by_key(|(count, _)| *count);
        if points.len() > 1 {
            out.push_str("<h2>By number of training trajectories (the paper's figure 3)</h2>");
            out.push_str(&by_scale(&points));
        }
    }
    if let (Some(one), Some(three), Some(specified)) = (row("one"), row(AUTOACT), row(TOOL_SPECIFIED)) {
        out.push_str("<h2>By division of labour (the paper's figure 4)</h2>");
        let bar = |label: &str, row: &RowReport| {
            let exact = &row.exact;
            IntervalRow { label: label.to_owned(), value: exact.mean, low: exact.low, high: exact.high }
        };
        out.push_str(&intervals(
            "exact match by division of labour",
            &[bar("three", three), bar("one", one), bar("tool-specified", specified)],
        ));
    }
    out
}

fn by_scale(points: &[(usize, &RowReport)]) -> String {
    let line =
        |name: &str, of: fn(&RowReport) -> f64| Series::new(name, points.iter().map(|(count, row)| (*count as f64, 100.0 * of(row))));
    Plot::new("exact match by number of trajectories", Axis::linear("trajectories"), Axis::linear("exact match, %"))
        .with(line("mean", |row| row.exact.mean).bold())
        .with(line("low end of 95%", |row| row.exact.low))
        .with(line("high end of 95%", |row| row.exact.high))
        .svg()
}
