//! HotpotQA's official scores of short answers.

use std::collections::HashMap;

/// What a word of an answer is compared as: lower case, no ASCII punctuation, no articles, single blanks.
///
/// The steps come in the official script's order, so its corners are the same: `a.` in `U.S.A.` is no article, because the full stops go
/// first, and an article may stand beside a sign that is no ASCII punctuation (`the–city`).
pub fn normalize(answer: &str) -> String {
    let plain: String = answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let bare = without_articles(&plain);
    bare.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Python's idea of white space: Unicode's, and the four separators of ASCII.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// A blank for every run of letters and digits that is `a`, `an` or `the`.
fn without_articles(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = first.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != word).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        out.push_str(if matches!(run, "a" | "an" | "the") { " " } else { run });
        rest = after;
    }
    out
}

/// Whether two answers are the same after [`normalize`].
pub fn exact_match(answer: &str, gold: &str) -> bool {
    normalize(answer) == normalize(gold)
}

/// The harmonic mean of precision and recall over words; 0 where one says `yes`, `no` or `noanswer` and the other something else, and
/// where either has no words.
pub fn f1(answer: &str, gold: &str) -> f64 {
    let (answer, gold) = (normalize(answer), normalize(gold));
    let closed = |text: &str| matches!(text, "yes" | "no" | "noanswer");
    if (closed(&answer) || closed(&gold)) && answer != gold {
        return 0.0;
    }
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    gold.split_whitespace().for_each(|word| *wanted.entry(word).or_default() += 1);
    let mut common = 0_u32;
    for word in answer.split_whitespace() {
        if let Some(left) = wanted.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    let (given, asked) = (answer.split_whitespace().count() as f64, gold.split_whitespace().count() as f64);
    let (precision, recall) = (f64::from(common) / given, f64::from(common) / asked);
    2.0 * precision * recall / (precision + recall)
}
