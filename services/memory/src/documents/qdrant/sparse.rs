//! Segments and queries as sparse vectors: their words, and the letters of their names.

use std::collections::BTreeMap;

use autoact_tools::TITLE_WEIGHT;
use autoact_tools::text::{query_stems, stems};
use qdrant_client::qdrant::Vector;

use crate::encode::{term, weights};

/// Words of an average title and of an average text. Constants: the weights of what is stored must
/// not depend on what is stored later.
const TITLE_WORDS: f64 = 6.0;
const TEXT_WORDS: f64 = 100.0;
/// A longer query is cut to its first words.
const MOST_QUERY_WORDS: usize = 64;

/// Indices, ascending, and their weights.
pub(super) type Sparse = BTreeMap<u32, f32>;

/// The words of a segment, weighted as BM25 does but for the inverse document frequency, which is
/// the server's.
pub(super) fn segment_words(title: &str, text: &str) -> Sparse {
    let mut words = weights(&stems(text), TEXT_WORDS);
    for (index, weight) in weights(&stems(title), TITLE_WORDS) {
        *words.entry(index).or_default() += TITLE_WEIGHT * weight;
    }
    words
}

/// The words of a query.
pub(super) fn query_words(query: &str) -> Sparse {
    query_stems(query).iter().take(MOST_QUERY_WORDS).map(|stem| (term(stem), 1.0)).collect()
}

/// The pairs and triples of letters in folded names. A name with few is not drowned by one that has
/// them among many.
pub(super) fn name_letters<'a>(names: impl IntoIterator<Item = &'a str>) -> Sparse {
    let mut letters = Sparse::new();
    for name in names {
        letters.extend(query_letters(name));
    }
    let weight = 1.0 / (letters.len().max(1) as f32).sqrt();
    letters.values_mut().for_each(|value| *value = weight);
    letters
}

/// The pairs and triples of letters in a folded name that is looked for.
pub(super) fn query_letters(name: &str) -> Sparse {
    let letters: Vec<char> = [' '].into_iter().chain(name.chars()).chain([' ']).collect();
    let runs = letters.windows(2).chain(letters.windows(3));
    runs.map(|run| (term(&run.iter().collect::<String>()), 1.0)).collect()
}

pub(super) fn vector(sparse: Sparse) -> Vector {
    let (indices, values): (Vec<u32>, Vec<f32>) = sparse.into_iter().unzip();
    Vector::new_sparse(indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(query: &Sparse, stored: &Sparse) -> f32 {
        query.iter().map(|(index, weight)| weight * stored.get(index).copied().unwrap_or_default()).sum()
    }

    #[test]
    fn words_of_title_and_text_are_added() {
        let query = query_words("Which hotels?");
        let both = segment_words("Travel: Hotels", "A night in a hotel costs 150 euros.");
        let title = segment_words("Travel: Hotels", "A night costs 150 euros.");
        let text = segment_words("Travel: Costs", "A night in a hotel costs 150 euros.");
        assert!(likeness(&query, &title) > 0.0 && likeness(&query, &text) > 0.0);
        assert_eq!(likeness(&query, &both), likeness(&query, &title) + likeness(&query, &text));
        assert_eq!(likeness(&query_words("of the"), &text), 0.0);
    }

    #[test]
    fn a_misspelt_name_is_most_like_its_own() {
        let names = ["danube", "dan brown", "danish straits", "dublin", "the danube river in the south of the country"];
        let query = query_letters("danbue");
        let score = |name: &str| likeness(&query, &name_letters([name]));
        assert!(names[1..].iter().all(|other| score(other) < score("danube")));
    }
}
