//! The words by which pages and questions name relations: `phone extension`, `head`.

use std::collections::{BTreeMap, BTreeSet};

use autoact_score::normalize;

use crate::filter::within;
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

/// Words of grammar and of number that name no relation: `What is the after of Saltmarket?` The longer
/// ones of English; shorter ones are below `SHORTEST`.
const GRAMMAR_WORDS: [&str; 58] = [
    "about", "above", "across", "after", "again", "against", "along", "among", "another", "around", "because", "before", "behind", "below",
    "beside", "besides", "between", "beyond", "both", "down", "during", "each", "eight", "eleven", "even", "every", "except", "five",
    "four", "hence", "inside", "just", "near", "never", "nine", "nothing", "often", "once", "only", "other", "over", "same", "seven",
    "some", "still", "such", "then", "three", "through", "towards", "twelve", "twice", "under", "until", "upon", "very", "within",
    "without",
];

/// Words of comparisons that do not say what is compared.
pub(crate) const COMPARING: [&str; 6] = ["more", "most", "less", "least", "fewer", "than"];
/// Words that ask for the earlier one, and for the later one.
pub(crate) const EARLIER: [&str; 5] = ["first", "earlier", "before", "older", "oldest"];
pub(crate) const LATER: [&str; 6] = ["later", "after", "newer", "younger", "recently", "last"];
/// Words of claims that two are alike.
pub(crate) const ALIKE: [&str; 5] = ["same", "both", "share", "shared", "common"];

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
    let long = |word: &&str| word.chars().count() >= SHORTEST && !FORM_WORDS.contains(word) && !GRAMMAR_WORDS.contains(word);
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

/// The words of a question that may name a relation: of small letters, and neither form nor such as
/// compare.
pub(crate) fn telling(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.starts_with(char::is_lowercase) && is_telling(word)).map(str::to_owned).collect()
}

/// Whether a question compares: `earlier`, `than`, `the same`.
pub(crate) fn compares(question: &str) -> bool {
    let comparing = [&COMPARING[..], &EARLIER, &LATER, &ALIKE];
    lower_words(question).iter().any(|word| comparing.iter().any(|some| some.contains(&word.as_str())))
}

/// Whether a word may name a relation: it is not short, and neither form nor such as compares.
pub(crate) fn is_telling(word: &str) -> bool {
    let general = [&FORM_WORDS[..], &COMPARING, &EARLIER, &LATER, &ALIKE];
    word.chars().count() >= SHORTEST && !general.iter().any(|some| some.contains(&word))
}

/// The words that stand beside a value on a page, and may name what it is. There are none where the
/// sentence says what kind of thing the page is about: `Java is an island of Indonesia.`
pub(crate) fn beside(value: &str, page: usize, pages: &Pages) -> Vec<String> {
    let page = &pages.all()[page];
    let names = [lower_words(value), lower_words(&page.title)].concat();
    let plain = normalize(value);
    let sentences = page.sentences();
    let told = sentences.iter().find(|sentence| within(&plain, &normalize(sentence)));
    let words = told.map(|sentence| lower_words(sentence)).unwrap_or_default();
    let kind = words.windows(2).any(|pair| matches!(pair[0].as_str(), "is" | "was") && matches!(pair[1].as_str(), "a" | "an"));
    if kind {
        return Vec::new();
    }
    words.into_iter().filter(|word| is_telling(word) && !names.contains(word)).collect()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use autoact_tools::{Corpus, Page};

    use super::*;

    #[test]
    fn what_stands_beside_a_value_may_name_it() {
        let text = "Java is an island of Indonesia.\nIts area is 128,297 km².\nIt was first mapped in 1598.";
        let pages = Pages::new(Arc::new(Corpus::from_pages(vec![Page { title: "Java".into(), text: text.into() }]).unwrap()));
        assert_eq!(beside("128,297 km²", 0, &pages), ["area"]);
        assert_eq!(beside("1598", 0, &pages), ["mapped"]);
        assert!(beside("Indonesia", 0, &pages).is_empty(), "it says what kind of thing Java is");
        assert!(beside("Malta", 0, &pages).is_empty());
        assert_eq!(telling("Do Java and Bali belong to the same country?"), ["belong", "country"]);
    }
}
