//! Merging what words find with what vectors find.

use std::collections::HashMap;

use crate::model::Found;

/// How a query finds segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// By words: BM25.
    Words,
    /// By meaning: cosines of dense vectors.
    Vectors,
    /// The nearest by vectors and the best by words in turn, without repetitions: two lists
    /// concatenated and cut, as KwaiAgents' memory bank has it.
    Concatenation,
    /// By the sum of 1 / (60 + rank) over both lists (reciprocal rank fusion; Cormack, Clarke and
    /// Büttcher 2009).
    ReciprocalRanks,
}

/// Of each list so many are merged, where the caller asks for fewer.
pub const LEAST_CANDIDATES: usize = 50;

/// The constant of reciprocal rank fusion.
const RANK_OFFSET: f32 = 60.0;

/// One list of two, best first. Scores are those of the strategy.
pub fn merge(strategy: Strategy, words: Vec<Found>, vectors: Vec<Found>, limit: usize) -> Vec<Found> {
    let mut merged = match strategy {
        Strategy::Words => words,
        Strategy::Vectors => vectors,
        Strategy::Concatenation => {
            let half = limit.div_ceil(2);
            let (near, far) = split(vectors, half);
            let (best, rest) = split(words, limit - half);
            // where one list is short, the other fills up
            distinct(near.into_iter().chain(best).chain(far).chain(rest))
        }
        Strategy::ReciprocalRanks => by_ranks(words, vectors),
    };
    merged.truncate(limit);
    merged
}

fn split(mut list: Vec<Found>, at: usize) -> (Vec<Found>, Vec<Found>) {
    let rest = list.split_off(at.min(list.len()));
    (list, rest)
}

fn distinct(found: impl Iterator<Item = Found>) -> Vec<Found> {
    let mut seen = std::collections::HashSet::new();
    found.filter(|found| seen.insert(found.segment.number)).collect()
}

fn by_ranks(words: Vec<Found>, vectors: Vec<Found>) -> Vec<Found> {
    let mut scores: HashMap<u64, f32> = HashMap::new();
    for list in [&words, &vectors] {
        for (rank, found) in (1_u16..).zip(list) {
            *scores.entry(found.segment.number).or_default() += 1.0 / (RANK_OFFSET + f32::from(rank));
        }
    }
    let mut merged = distinct(words.into_iter().chain(vectors));
    for found in &mut merged {
        found.score = scores.get(&found.segment.number).copied().unwrap_or_default();
    }
    // a stable sort: equals keep the order of the words
    merged.sort_by(|one, other| other.score.total_cmp(&one.score));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Segment;

    fn list(numbers: &[u64]) -> Vec<Found> {
        let segment = |number: &u64| Segment {
            number: *number,
            path: String::new(),
            title: String::new(),
            text: String::new(),
            heading: None,
            page: None,
            start: 0,
        };
        numbers.iter().map(|number| Found { segment: segment(number), score: 0.5 }).collect()
    }

    fn merged(strategy: Strategy, limit: usize) -> Vec<u64> {
        let merged = merge(strategy, list(&[1, 2, 3, 4]), list(&[3, 9, 1]), limit);
        merged.into_iter().map(|found| found.segment.number).collect()
    }

    #[test]
    fn each_strategy_has_its_order() {
        assert_eq!(merged(Strategy::Words, 3), [1, 2, 3]);
        assert_eq!(merged(Strategy::Vectors, 9), [3, 9, 1]);
        assert_eq!(merged(Strategy::Concatenation, 4), [3, 9, 1, 2]);
        assert_eq!(merged(Strategy::Concatenation, 9), [3, 9, 1, 2, 4]);
        assert_eq!(merged(Strategy::ReciprocalRanks, 9), [1, 3, 2, 9, 4]);
        assert_eq!(merged(Strategy::ReciprocalRanks, 0), [0; 0]);
    }
}
