//! Small text helpers: what counts as the same word, the same title, one line.

pub use autoact_base::lines::{one_line, several_lines};
pub use autoact_base::names::{canonical, fold};
pub use autoact_trajectory::{CUT_MARK, cut};
use tantivy::tokenizer::{AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer, TokenStream};

/// Words longer than this many bytes are no words of a language; they are not indexed.
const LONGEST_WORD: usize = 40;

/// Words that say nothing about a page. A query made of nothing else keeps them.
const STOP_WORDS: [&str; 46] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "did", "do", "does", "for", "from", "had", "has", "have", "how", "in", "is",
    "it", "its", "of", "on", "or", "s", "that", "the", "their", "there", "these", "this", "to", "was", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "will", "with", "you",
];

/// The analyzer of pages, queries and memories: words, lowercase, without diacritics, English
/// stems.
pub fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(LONGEST_WORD))
        .filter(AsciiFoldingFilter)
        .filter(LowerCaser)
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The stems of a text's words, in order, repeated ones included.
pub fn stems(text: &str) -> Vec<String> {
    stems_with(&mut analyzer(), text)
}

/// [`stems`] with an analyzer at hand, for callers that need it often.
pub(crate) fn stems_with(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let text = canonical(text);
    let mut stems = Vec::new();
    analyzer.token_stream(&text).process(&mut |token| stems.push(token.text.clone()));
    stems
}

/// The distinct stems of a query without stop words, unless it has nothing else; in order of
/// appearance.
pub fn query_stems(query: &str) -> Vec<String> {
    let mut analyzer = analyzer();
    let all = stems_with(&mut analyzer, query);
    let meaning: Vec<String> = all.iter().filter(|stem| !is_stop_word(stem)).cloned().collect();
    let mut kept = if meaning.is_empty() { all } else { meaning };
    let mut seen = std::collections::HashSet::new();
    kept.retain(|stem| seen.insert(stem.clone()));
    kept
}

/// Stop words are short enough to be their own stems, but for a few whose stem is compared here as
/// well.
pub(crate) fn is_stop_word(stem: &str) -> bool {
    STOP_WORDS.contains(&stem) || matches!(stem, "doe" | "ha" | "wa" | "whi" | "thi")
}

/// A short quotation of what somebody wrote, for messages.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 120;
    cut(one_line(text), LONGEST).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_lose_their_stop_words() {
        assert_eq!(query_stems("What is the capital of France? France!"), ["capit", "franc"]);
        assert_eq!(query_stems("does this have a cat"), ["cat"]);
        assert_eq!(query_stems("The Who"), ["the", "who"]);
    }

    #[test]
    fn every_stop_word_is_known_by_its_stem() {
        for word in STOP_WORDS {
            assert!(stems(word).iter().all(|stem| is_stop_word(stem)), "{word} has the stem {:?}", stems(word));
        }
    }
}
