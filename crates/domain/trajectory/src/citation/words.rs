//! The words of a text by which a claim and a passage are compared.

use std::collections::BTreeMap;

/// Function words of English, and the words by which an agent says yes or no: they are everywhere.
const COMMON: [&str; 84] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "before", "but", "by", "can", "did", "do",
    "does", "each", "false", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "know", "less", "more", "most", "need", "no", "not", "of", "on", "or", "our", "same", "she", "should", "so", "some", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "true", "was", "we", "were", "what", "when", "where",
    "whether", "which", "while", "who", "whose", "why", "will", "with", "would", "yes", "you",
];

/// How much a number counts. It is rarely in two sentences by chance.
const NUMBER: u32 = 4;
/// How much a name counts: a word with a capital.
pub(crate) const NAME: u32 = 3;
/// How much any other word counts.
const PLAIN: u32 = 1;

/// Marks the second occurrence of a word.
const AGAIN: &str = " 2";

/// Distinct words of a text, folded, with what each counts. A word that occurs again is a word of
/// its own: `The University of Jena is in Jena` says more than its title.
pub(crate) type Words = BTreeMap<String, u32>;

/// The words of a text. Case, English endings and separators of thousands do not matter. Scripts
/// without blanks are compared by pairs of characters.
pub(crate) fn words(text: &str) -> Words {
    let mut found = Words::new();
    read(text, &mut found);
    found
}

/// The words of a sentence under a title. The title counts as said before it, unless the sentence
/// has it.
pub(super) fn words_under(title: &Words, sentence: &str) -> Words {
    let alone = words(sentence);
    if title.keys().all(|word| alone.contains_key(word)) {
        return alone;
    }
    let mut found = title.clone();
    read(sentence, &mut found);
    // what only the title says is not in the sentence
    found.retain(|word, _| alone.contains_key(word) || word.ends_with(AGAIN) && !title.contains_key(word));
    found
}

/// The word of which `word` is an occurrence.
pub(crate) fn once(word: &str) -> &str {
    word.strip_suffix(AGAIN).unwrap_or(word)
}

fn read(text: &str, found: &mut Words) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            c if c.is_ascii_digit() => number_end(rest),
            c if is_unspaced(c) => run(rest, is_unspaced),
            c if c.is_alphabetic() => run(rest, |c| c.is_alphanumeric() && !is_unspaced(c)),
            c => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let (token, after) = rest.split_at(end);
        add(token, first, found);
        rest = after;
    }
}

fn add(token: &str, first: char, found: &mut Words) {
    let mut insert = |mut key: String, weight| {
        if found.contains_key(&key) {
            key.push_str(AGAIN);
        }
        let known = found.entry(key).or_insert(weight);
        *known = weight.max(*known);
    };
    if first.is_ascii_digit() {
        insert(token.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect(), NUMBER);
    } else if is_unspaced(first) {
        let chars: Vec<char> = token.chars().collect();
        chars.windows(2.min(chars.len())).for_each(|pair| insert(pair.iter().collect(), PLAIN));
    } else {
        let lower = token.to_lowercase();
        let name = first.is_uppercase();
        // articles and prepositions of many languages are no longer than two letters
        if !COMMON.contains(&lower.as_str()) && (name || token.chars().count() > 2) {
            insert(stem(lower), if name { NAME } else { PLAIN });
        }
    }
}

/// Without an English ending: `founded` and `founding` are one word.
fn stem(mut word: String) -> String {
    for (ending, instead) in [("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")] {
        if let Some(begin) = word.strip_suffix(ending)
            && begin.chars().count() > 2
        {
            word.truncate(begin.len());
            word.push_str(instead);
            break;
        }
    }
    word
}

/// Where the number ends that `text` begins with: `2,000`, `3.14`.
fn number_end(text: &str) -> usize {
    let digits = |at: usize| text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    while let Some(separator) = text[end..].chars().next() {
        let after = end + separator.len_utf8();
        match (separator, digits(after)) {
            ('.', 1..) | (',' | '\'' | '’' | '\u{a0}' | '\u{202f}', 3) => end = after + digits(after),
            _ => break,
        }
    }
    end
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// A letter of a script that puts no blanks between words: Thai to Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, u32)]) {
        let expected: Words = expected.iter().map(|(word, weight)| ((*word).to_owned(), *weight)).collect();
        assert_eq!(words(text), expected);
    }

    #[test]
    fn names_and_numbers_count_more() {
        check("The Loire is 1,006 km long.", &[("loir", 3), ("1006", 4), ("long", 1)]);
        check("It was founded in 1365; the founding year.", &[("found", 1), ("1365", 4), ("found 2", 1), ("year", 1)]);
        check("3.14, 2 and 5.", &[("3.14", 4), ("2", 4), ("5", 4)]);
        check("The capital of the U.S. is Washington, D.C..", &[("capital", 1), ("u", 3), ("s", 3), ("washington", 3), ("d", 3), ("c", 3)]);
        check("214969km²", &[("214969", 4), ("km²", 1)]);
    }

    #[test]
    fn a_title_is_said_before_its_sentences() {
        let title = words("Bratislava Castle");
        let under = |sentence: &str| words_under(&title, sentence).into_keys().collect::<Vec<_>>();
        assert_eq!(under("It is a sight of Bratislava."), ["bratislava", "bratislava 2", "sight"]);
        assert_eq!(under("Bratislava Castle is old."), ["bratislava", "castl", "old"]);
        assert_eq!(once("castl 2"), "castl");
    }

    #[test]
    fn scripts_without_blanks_are_compared_by_pairs() {
        check("東京は", &[("東京", 1), ("京は", 1)]);
        check("是 3 人", &[("是", 1), ("3", 4), ("人", 1)]);
    }

    proptest! {
        #[test]
        fn any_text_has_words(text in any::<String>()) {
            words(&text);
        }
    }
}
