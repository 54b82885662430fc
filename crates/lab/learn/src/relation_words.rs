//! The words by which pages and questions name relations: `phone extension`, `head`.

use std::collections::{BTreeMap, BTreeSet};

use crate::pages::Pages;

/// Words of this length or longer can name a relation; shorter ones are `the`, `of`, `who`.
pub(crate) const SHORTEST: usize = 4;
/// Two words are forms of one if they begin with this many equal letters.
const STEM: usize = 4;
/// Maximum number of words that name a relation.
const RELATION_WORDS: usize = 3;
/// A relation's words stand on this share of the pages of a kind or more; others are values.
const SHARED: f64 = 0.2;
/// Words of `SHORTEST` letters or more that name no relation, even beside one that does.
pub(crate) const FORM_WORDS: [&str; 28] = [
    "also", "been", "could", "does", "find", "from", "give", "have", "here", "into", "many", "much", "please", "since", "tell", "that",
    "their", "there", "they", "this", "were", "what", "when", "where", "which", "whose", "with", "would",
];

/// The runs of words that enough pages of a kind have.
pub(crate) fn shared(kind: &[usize], pages: &Pages) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for page in kind {
        let own: BTreeSet<String> = relations(&pages.all()[*page].text).into_iter().collect();
        own.into_iter().for_each(|run| *counts.entry(run).or_default() += 1);
    }
    counts.into_iter().filter(|(_, count)| *count as f64 >= SHARED * kind.len() as f64).map(|(run, _)| run).collect()
}

/// Runs of words that may name a relation: of small letters, not short at either end. A line's key
/// (`Office number: B12`) counts as one, too.
pub(crate) fn relations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let long = |word: &&str| word.chars().count() >= SHORTEST && !FORM_WORDS.contains(word);
    let keys = text.lines().filter_map(key_of).map(|(key, _)| key.to_lowercase());
    let sentences = text.split(['\n', '.', ',', ';', ':', '(', ')']).map(str::to_owned);
    for sentence in keys.chain(sentences) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        for run in words.split(|word| !word.starts_with(char::is_lowercase)) {
            for length in 1..=RELATION_WORDS.min(run.len()) {
                let ends = |run: &&[&str]| run.first().is_some_and(long) && run.last().is_some_and(long);
                found.extend(run.windows(length).filter(ends).map(|run| run.join(" ")));
            }
        }
    }
    found
}

pub(crate) fn lower_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a text has a word, or a form of it.
pub(crate) fn says(text: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    lower_words(text).iter().any(|other| {
        let same = word.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        word == *other || same >= STEM
    })
}

/// A key and its value, of a line such as `Office number: B12`.
pub(crate) fn key_of(sentence: &str) -> Option<(&str, &str)> {
    sentence.split_once(": ").filter(|(key, _)| key.split_whitespace().count() <= RELATION_WORDS)
}
