//! The time of a query over many segments.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use autoact_base::random::Rng;
use autoact_base::sentences::sentences;
use autoact_collections::{Collections, LEAST_CANDIDATES, NewSegment, Segment, Strategy, merge};
use autoact_embedding::Embedder;
use autoact_trajectory::Tenant;

use crate::sets::Set;
use crate::{STRATEGIES, put, space};

/// Sentences of a made segment.
const SENTENCES: usize = 4;
/// Segments of one made file.
const PER_FILE: usize = 10_000;
/// Queries that are timed.
const QUERIES: usize = 100;
/// What is asked for.
const LIMIT: usize = 5;
/// Of a derived vector, how far each component is moved, in standard deviations.
const MOVED: f64 = 0.02;

/// A table for one number of segments: the median and the 95th percentile of each strategy.
pub(crate) fn table(sets: &[Set], embedder: &dyn Embedder, size: usize, real: usize) -> anyhow::Result<String> {
    let directory = tempfile::tempdir()?;
    let collections = Collections::open(directory.path())?;
    let collection = collections.get_or_make(&Tenant::default(), &"bench".parse()?)?;
    let pages: Vec<&(String, String)> = sets.iter().flat_map(|set| &set.pages).collect();
    let pool: Vec<&str> = pages.iter().flat_map(|(_, text)| sentences(text)).collect();
    let mut rng = Rng::new(0);
    let mut made = 0;
    let begun = Instant::now();
    while made < size {
        let count = PER_FILE.min(size - made);
        let file = (made..made + count).map(|number| {
            let text: Vec<&str> = (0..SENTENCES).filter_map(|_| rng.pick(&pool).copied()).collect();
            let title = format!("{} {number}", pages[number % pages.len()].0);
            NewSegment { title, text: text.join(" "), ..NewSegment::default() }
        });
        put(&collection, &format!("{made}"), file.collect())?;
        made += count;
    }
    let stored = begun.elapsed();

    let space = space(embedder);
    let mut known: Vec<Vec<f32>> = Vec::new();
    loop {
        let (batch, left) = collection.without_vector(&space, if known.len() < real { 64 } else { 50_000 })?;
        if left == 0 {
            break;
        }
        let vectors = if known.len() < real {
            let texts: Vec<String> = batch.iter().map(Segment::embedded).collect();
            let vectors = embedder.embed(&texts.iter().map(String::as_str).collect::<Vec<_>>())?;
            known.extend(vectors.iter().cloned());
            vectors
        } else {
            batch.iter().filter_map(|_| Some(moved(rng.pick(&known)?.clone(), &mut rng))).collect()
        };
        collection.add_vectors(&space, &batch.iter().map(|segment| segment.number).zip(vectors).collect::<Vec<_>>())?;
    }

    let questions: Vec<&str> = sets.iter().flat_map(|set| &set.questions).map(|question| question.text.as_str()).collect();
    let mut text = format!(
        "{size} segments, {} of their vectors computed and the others derived from these; words stored in {:.1} s\n\n\
         | strategy | median | 95% |\n| --- | --- | --- |\n",
        known.len().min(size),
        stored.as_secs_f64()
    );
    for (name, strategy) in STRATEGIES {
        let mut times = Vec::with_capacity(QUERIES);
        for question in questions.iter().cycle().take(QUERIES) {
            let begun = Instant::now();
            let words = if strategy == Strategy::Vectors { Vec::new() } else { collection.words(question, LEAST_CANDIDATES)? };
            let near = if strategy == Strategy::Words {
                Vec::new()
            } else {
                let vector = embedder.embed(&[question])?.pop().unwrap_or_default();
                collection.near(&space, &vector, LEAST_CANDIDATES)?
            };
            let _ = merge(strategy, words, near, LIMIT);
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let _ = writeln!(text, "| {name} | {:.1} ms | {:.1} ms |", ms(times[QUERIES / 2]), ms(times[QUERIES * 95 / 100]));
    }
    Ok(text)
}

fn moved(mut vector: Vec<f32>, rng: &mut Rng) -> Vec<f32> {
    for component in &mut vector {
        *component += ((rng.unit() - 0.5) * 2.0 * MOVED) as f32;
    }
    vector
}
