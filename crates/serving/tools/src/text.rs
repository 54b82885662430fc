//! Small text helpers: what counts as the same word, the same title, one line.

pub use autoact_base::lines::{one_line, several_lines};
pub use autoact_trajectory::{CUT_MARK, cut};
use tantivy::tokenizer::{AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer, TokenStream};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

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

/// Composed form (NFC): the form all text is kept and compared in.
pub fn canonical(text: &str) -> String {
    text.nfc().collect()
}

/// What two spellings of one title share: lowercase, no diacritics, no punctuation, single spaces.
pub fn fold(title: &str) -> String {
    let mut folded = String::with_capacity(title.len());
    let mut gap = false;
    let mut push = |c: char, gap: &mut bool| {
        if *gap && !folded.is_empty() {
            folded.push(' ');
        }
        *gap = false;
        folded.push(c);
    };
    for c in title.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase) {
        match plain(c) {
            Some(letters) => letters.chars().for_each(|letter| push(letter, &mut gap)),
            None if c.is_alphanumeric() => push(c, &mut gap),
            None if matches!(c, '\'' | '’') => {} // d'Ivoire and dIvoire are one title
            None => gap = true,
        }
    }
    if folded.is_empty() { title.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase() } else { folded }
}

/// Letters that do not decompose but that people write without their stroke.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ı' => "i",
        'þ' => "th",
        'ħ' => "h",
        _ => return None,
    })
}

/// A short quotation of what somebody wrote, for messages.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 120;
    cut(one_line(text), LONGEST).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn titles_fold() {
        assert_eq!(fold("  São   Tomé "), "sao tome");
        assert_eq!(fold("Sa\u{303}o Tome\u{301}"), "sao tome");
        assert_eq!(fold("Łódź"), "lodz");
        assert_eq!(fold("Côte d’Ivoire"), fold("cote d'ivoire"));
        assert_eq!(fold("\"Loire.\""), "loire");
        assert_eq!(fold("++"), "++");
    }

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

    proptest! {
        #[test]
        fn folding_is_stable(title in ".{0,40}") {
            let folded = fold(&title);
            prop_assert_eq!(fold(&folded), folded);
        }
    }
}
