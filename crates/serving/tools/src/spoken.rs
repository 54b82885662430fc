//! Sums in words: `twelve plus thirty`, `84 divided by six`.

use std::sync::LazyLock;

use text2num::{Language, replace_numbers_in_text};

/// Operators in words, and their signs; longer ones first.
const OPERATORS: [(&[&str], &str); 9] = [
    (&["multiplied", "by"], "*"),
    (&["divided", "by"], "/"),
    (&["take", "away"], "-"),
    (&["added", "to"], "+"),
    (&["plus"], "+"),
    (&["minus"], "-"),
    (&["less"], "-"),
    (&["times"], "*"),
    (&["over"], "/"),
];

/// The text with numbers in digits and operators as signs; `None` if it has none of either. Whether
/// it is an expression then is for [`crate::expression`] to say.
pub(crate) fn in_signs(text: &str) -> Option<String> {
    static ENGLISH: LazyLock<Language> = LazyLock::new(Language::english);
    // from 0 on: `one` alone is a number, too
    let digits = replace_numbers_in_text(&text.to_lowercase(), &*ENGLISH, 0.0);
    let words: Vec<&str> = digits.split_whitespace().collect();
    let mut signs = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match OPERATORS.iter().find(|(spelt, _)| words[at..].starts_with(spelt)) {
            Some((spelt, sign)) => {
                signs.push(*sign);
                at += spelt.len();
            }
            None => {
                signs.push(words[at]);
                at += 1;
            }
        }
    }
    let written = signs.join(" ");
    (written != text).then_some(written)
}

#[cfg(test)]
mod tests {
    use super::in_signs;

    #[test]
    fn words_become_numbers_and_signs() {
        for (text, expected) in [
            ("twelve plus thirty", "12 + 30"),
            ("Nine times eight", "9 * 8"),
            ("Six x seven", "6 x 7"),
            ("three hundred and twelve minus one", "312 - 1"),
            ("84 divided by six", "84 / 6"),
            ("one thousand and six take away 5", "1006 - 5"),
            ("17 added to twenty-three", "17 + 23"),
            ("forty over 8", "40 / 8"),
            ("seven > 3", "7 > 3"),
        ] {
            assert_eq!(in_signs(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(in_signs("1 + 2"), None);
    }
}
