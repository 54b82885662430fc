//! The scores as plots.

use autoact_plot::{Axis, IntervalRow, Page, Plot, Series, intervals};

use super::entrant::Entrant;
use super::scores::Scores;

/// Every planner's exact match with its interval; over the number of trajectories where that is
/// what differs.
pub(crate) fn page(scores: &Scores) -> String {
    let mut page = Page::new(&format!("{} of {} planners", scores.score_names().0, scores.entrants.len()));
    page.note(&format!(
        "{}, {} questions, model {}; 95% bootstrap intervals over questions",
        scores.origin,
        scores.labels.len(),
        scores.model
    ));
    let labels = scores.rows();
    let all = std::iter::once(None).chain(labels.iter().copied().map(Some).filter(|_| labels.len() > 1));
    let title = |label: Option<&str>| label.map_or_else(|| "all questions".to_owned(), str::to_owned);
    if scores.entrants.iter().any(|entrant| entrant.kind().trained_on().is_some()) {
        page.section("By number of training trajectories");
        page.plots(all.clone().map(|label| by_scale(scores, label, &title(label))));
    }
    for label in all {
        page.section(&title(label));
        page.push(&intervals(&title(label), &bars(scores, label)));
    }
    page.finish()
}

fn bars(scores: &Scores, label: Option<&str>) -> Vec<IntervalRow> {
    let row = |(planner, entrant): (usize, &Entrant)| {
        let exact = scores.row(planner, label).exact;
        IntervalRow { label: entrant.to_string(), value: exact.mean, low: exact.low, high: exact.high }
    };
    scores.entrants.iter().enumerate().map(row).collect()
}

/// A line through the means, one through each end of their intervals.
fn by_scale(scores: &Scores, label: Option<&str>, title: &str) -> String {
    let points: Vec<(f64, [f64; 3])> = scores
        .entrants
        .iter()
        .enumerate()
        .filter_map(|(planner, entrant)| {
            let exact = scores.row(planner, label).exact;
            let Entrant::Once(kind) = entrant else { return None };
            Some((kind.trained_on()? as f64, [exact.mean, exact.low, exact.high]))
        })
        .collect();
    let series = |name: &str, at: usize| Series::new(name, points.iter().map(|(count, values)| (*count, 100.0 * values[at])));
    Plot::new(title, Axis::linear("trajectories"), Axis::linear(&format!("{}, %", scores.score_names().0)))
        .with(series("mean", 0).bold())
        .with(series("low", 1))
        .with(series("high", 2))
        .svg()
}
