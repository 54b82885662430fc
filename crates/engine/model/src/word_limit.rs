//! A limit to given words. A small model breaks words, and says others than it was asked for.

use std::collections::HashSet;
use std::sync::Arc;

use crate::Tokenizer;

/// The words that the first line of a completion may have. Unlike a bias it takes nothing from the
/// model's choice among them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordLimit {
    words: Arc<HashSet<String>>,
    whole: Vec<String>,
}

impl WordLimit {
    /// These words, as they are spelt and with a capital. A word is a run of letters and digits, and
    /// so is a number with a point or comma in it. Letters of
    /// a script without case are no words, and free: there, spaces do not tell where a word ends.
    pub fn new(words: impl IntoIterator<Item = String>) -> WordLimit {
        let words = words.into_iter().flat_map(|word| [capital(&word), word]);
        WordLimit { words: Arc::new(words.collect()), ..WordLimit::default() }
    }

    /// The same, with values that no further word follows where they are said first: a sentence ends with
    /// them, or goes on after a comma.
    #[must_use]
    pub fn with_whole(self, values: impl IntoIterator<Item = String>) -> WordLimit {
        WordLimit { whole: values.into_iter().filter(|value| !value.is_empty()).collect(), ..self }
    }
}

/// A limit, ready to be asked about tokens.
#[derive(Debug)]
pub(crate) struct TokenLimit {
    words: Arc<HashSet<String>>,
    /// What the words begin with, themselves included.
    beginnings: HashSet<String>,
    whole: Vec<String>,
}

/// What a completion's end means for the next token.
#[derive(Debug)]
pub(crate) struct LimitHere<'a> {
    limit: &'a TokenLimit,
    /// The word that the completion ends in.
    word: String,
    /// It ends in a value that no further word follows.
    is_whole: bool,
}

impl TokenLimit {
    pub(crate) fn new(of: &WordLimit) -> TokenLimit {
        let beginnings = of.words.iter().flat_map(|word| word.char_indices().map(|(at, c)| word[..at + c.len_utf8()].to_owned()));
        TokenLimit { words: Arc::clone(&of.words), beginnings: beginnings.collect(), whole: of.whole.clone() }
    }

    /// The limit after this completion; `None`: there is none, because the first line has ended.
    pub(crate) fn after(&self, completion: &[u32], tokenizer: &Tokenizer) -> Option<LimitHere<'_>> {
        self.after_text(&tokenizer.decode(completion))
    }

    fn after_text(&self, text: &str) -> Option<LimitHere<'_>> {
        if text.contains('\n') {
            return None;
        }
        let mut word = String::new();
        for c in text.chars() {
            self.go_on(&mut word, c);
        }
        Some(LimitHere {
            limit: self,
            word,
            is_whole: self.whole.iter().any(|value| text.find(value.as_str()).is_some_and(|at| at + value.len() == text.len())),
        })
    }

    /// The word after one more character; empty: none. Returns whether it was complete where it ends.
    fn go_on(&self, word: &mut String, c: char) -> bool {
        let is_point = matches!(c, '.' | ',') && word.ends_with(char::is_numeric);
        if is_of_word(c) || (is_point && self.beginnings.contains(&format!("{word}{c}"))) {
            word.push(c);
            return true;
        }
        let complete = word.is_empty() || self.words.contains(word.trim_end_matches(['.', ',']));
        word.clear();
        complete
    }
}

impl LimitHere<'_> {
    /// Whether the completion may go on with this token.
    pub(crate) fn allows(&self, token: u32, tokenizer: &Tokenizer) -> bool {
        let ends = tokenizer.eos().contains(&token);
        // half a letter is judged with its other half
        std::str::from_utf8(tokenizer.bytes(token)).is_ok_and(|text| self.allows_text(if ends { "\n" } else { text }))
    }

    fn allows_text(&self, text: &str) -> bool {
        if self.is_whole && text.starts_with(|c: char| c == ' ' || c.is_alphanumeric()) {
            return false;
        }
        let mut word = self.word.clone();
        for c in text.chars() {
            if !self.limit.go_on(&mut word, c) {
                return false;
            }
            if c == '\n' {
                return true;
            }
        }
        word.is_empty() || self.limit.beginnings.contains(&word)
    }
}

/// A word with a capital.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

fn is_of_word(c: char) -> bool {
    c.is_lowercase() || c.is_uppercase() || c.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_from_their_beginnings() {
        let limit = TokenLimit::new(
            &WordLimit::new(["need", "the", "raised", "Österby", "20", "1.25"].map(str::to_owned)).with_whole(["the 20".to_owned()]),
        );
        let allowed = |text: &str, next: &str| limit.after_text(text).is_none_or(|here| here.allows_text(next));
        for (text, next) in [
            ("", "Need"),
            ("Need", ":"),
            ("Need: ", "ra"),
            ("Need: ra", "ised"),
            ("raised", " the"),
            ("the ", "Öster"),
            ("", "Ös"),
            ("the", "\nAny words"),
            ("the\nAny", "where"),
            ("", "20"),
            ("20", "."),
            ("1", ".2"),
            ("is 1.25", "."),
            ("1.25. ", "Need"),
            ("in the 20", ","),
            ("the 20. Need the 20", " need"),
            ("", "東京の"),
            ("", "。 the"),
            ("need", ""),
        ] {
            assert!(allowed(text, next), "{text}|{next}");
        }
        for (text, next) in [
            ("", "of"),
            ("ra", "iseD"),
            ("the ", "ö"),
            ("ra", " the"),
            ("ra", "\n"),
            ("the", "m"),
            ("the", "m "),
            ("2", "."),
            ("1", "\n"),
            ("1", ". "),
            ("1.", " the"),
            ("1.2", " "),
            ("in the 20", " need"),
            ("need", " rais the"),
        ] {
            assert!(!allowed(text, next), "{text}|{next}");
        }
    }
}
