//! A text's words: the same for both stores, for what is stored and for what is asked.

use std::borrow::Cow;

use qdrant_rust_stemmers::{Algorithm, Stemmer};
use tantivy::tokenizer::{AsciiFoldingFilter, SimpleTokenizer, TextAnalyzer, TokenStream};
use unicode_normalization::UnicodeNormalization;

/// Names the language, the stop words, the folding and the stemmer. Stores keep it with their data:
/// change it with what makes the words.
pub(crate) const WORDS: &str = "english-folded";

/// English words that say nothing about a text, sorted. They are those of Qdrant's own BM25 (from
/// NLTK), less the ones with an apostrophe, at which a text is split anyway.
const STOP_WORDS: [&str; 153] = [
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "ain",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "aren",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "couldn",
    "d",
    "did",
    "didn",
    "do",
    "does",
    "doesn",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "hadn",
    "has",
    "hasn",
    "have",
    "haven",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "isn",
    "it",
    "its",
    "itself",
    "just",
    "ll",
    "m",
    "ma",
    "me",
    "mightn",
    "more",
    "most",
    "mustn",
    "my",
    "myself",
    "needn",
    "no",
    "nor",
    "not",
    "now",
    "o",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "re",
    "s",
    "same",
    "shan",
    "she",
    "should",
    "shouldn",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "ve",
    "very",
    "was",
    "wasn",
    "we",
    "were",
    "weren",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "won",
    "wouldn",
    "y",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

/// Splits a text into words: runs of letters and digits, without diacritics, in lower case, without
/// stop words, stemmed. Qdrant's own BM25 does the same.
///
/// The stemmer is Qdrant's. Tantivy's follows the main branch of Snowball and changes with it, but
/// words that are stored have to be found by later versions.
pub(crate) struct Words {
    folded: TextAnalyzer,
    stemmer: Stemmer,
}

impl Words {
    pub(crate) fn new() -> Words {
        let folded = TextAnalyzer::builder(SimpleTokenizer::default()).filter(AsciiFoldingFilter).build();
        Words { folded, stemmer: Stemmer::create(Algorithm::English) }
    }

    /// The words of a text, in order, repeated ones included.
    pub(crate) fn of(&self, text: &str) -> Vec<String> {
        // composed, so that folding sees an accented letter however it was written
        let text: String = text.nfc().collect();
        let mut words = Vec::new();
        self.folded.clone().token_stream(&text).process(&mut |token| {
            let word = token.text.to_lowercase();
            if STOP_WORDS.binary_search(&word.as_str()).is_err() {
                words.push(self.stemmer.stem_cow(Cow::Owned(word)).into_owned());
            }
        });
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_word_are_one_word() {
        let words = Words::new();
        assert_eq!(words.of("The CAPITALS of a river in Sa\u{303}o Tomé?"), ["capit", "river", "sao", "tome"]);
        assert_eq!(words.of("don't you'll it's"), [""; 0]);
        // a later version of Snowball gives "add" and "internat"
        assert_eq!(words.of("added international"), ["ad", "intern"]);
        // the folded `a` is a stop word, and the sign before 5 is no letter
        assert_eq!(words.of("Ⱥ ΟΔΟΣ 東京 №5"), ["οδος", "東京", "5"]);
    }

    #[test]
    fn stop_words_can_be_searched() {
        assert!(STOP_WORDS.is_sorted());
    }
}
