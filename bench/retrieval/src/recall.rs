//! Recall: which of the pages that a question needs are among the first.

use std::fmt::Write as _;

use autoact_collections::{Collections, Found, LEAST_CANDIDATES, Segment, Strategy, merge};
use autoact_embedding::Embedder;
use autoact_score::Bootstrap;
use autoact_trajectory::Tenant;

use crate::sets::{Question, Set};
use crate::{STRATEGIES, put, segments, space};

/// The depths at which recall is told.
pub(crate) const DEPTHS: [usize; 3] = [1, 5, 10];
/// Segments that are embedded together.
const BATCH: usize = 64;

/// A table of one set: each strategy's recall with 95% intervals.
pub(crate) fn table(set: &Set, embedder: &dyn Embedder) -> anyhow::Result<String> {
    let directory = tempfile::tempdir()?;
    let collections = Collections::open(directory.path())?;
    let collection = collections.get_or_make(&Tenant::default(), &"bench".parse()?)?;
    put(&collection, "pages", segments(set))?;
    let space = space(embedder);
    loop {
        let (batch, _) = collection.without_vector(&space, BATCH)?;
        if batch.is_empty() {
            break;
        }
        let texts: Vec<String> = batch.iter().map(Segment::embedded).collect();
        let vectors = embedder.embed(&texts.iter().map(String::as_str).collect::<Vec<_>>())?;
        collection.add_vectors(&space, &batch.iter().map(|segment| segment.number).zip(vectors).collect::<Vec<_>>())?;
    }
    let mut recalls = vec![[const { Vec::new() }; DEPTHS.len()]; STRATEGIES.len()];
    for question in &set.questions {
        let vector = embedder.embed(&[&question.text])?.pop().unwrap_or_default();
        let words = collection.words(&question.text, LEAST_CANDIDATES)?;
        let near = collection.near(&space, &vector, LEAST_CANDIDATES)?;
        for (row, (_, strategy)) in recalls.iter_mut().zip(STRATEGIES) {
            for (cell, depth) in row.iter_mut().zip(DEPTHS) {
                // the concatenation depends on how many are asked for
                let found = merged(strategy, &words, &near, depth);
                cell.push(share(question, found.iter().map(|found| found.segment.title.as_str())));
            }
        }
    }
    Ok(report(set, &recalls))
}

/// Which share of the pages that a question needs is among titles.
pub(crate) fn share<'a>(question: &Question, titles: impl Iterator<Item = &'a str> + Clone) -> f64 {
    let hits = question.needs.iter().filter(|needed| titles.clone().any(|title| title == **needed)).count();
    hits as f64 / question.needs.len() as f64
}

/// The table: for each strategy and depth the questions' shares as a mean.
pub(crate) fn report(set: &Set, recalls: &[[Vec<f64>; DEPTHS.len()]]) -> String {
    let mut text = format!("{}: {} segments, {} questions\n\n| strategy |", set.name, set.pages.len(), set.questions.len());
    DEPTHS.iter().for_each(|depth| {
        let _ = write!(text, " recall@{depth} |");
    });
    text.push_str("\n| --- | --- | --- | --- |\n");
    for ((name, _), row) in STRATEGIES.iter().zip(recalls) {
        let _ = write!(text, "| {name} |");
        for cell in row {
            let interval = Bootstrap::default().mean(cell);
            let _ = write!(text, " {:.1}% [{:.1}, {:.1}] |", interval.mean * 100.0, interval.low * 100.0, interval.high * 100.0);
        }
        text.push('\n');
    }
    text
}

fn merged(strategy: Strategy, words: &[Found], near: &[Found], limit: usize) -> Vec<Found> {
    merge(strategy, words.to_vec(), near.to_vec(), limit)
}
