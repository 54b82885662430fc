//! Exact match and F1 of short answers, as HotpotQA's official evaluation script computes them.

use std::collections::HashMap;

/// The normal form in which answers are compared: lower case, no ASCII punctuation, no articles,
/// single spaces.
///
/// The order of the steps is the official script's, and so are its special cases. `a.` in `U.S.A.`
/// is no article, because full stops are removed first. An article may be next to a sign that is
/// not ASCII punctuation (`the–city`).
pub fn normalize(answer: &str) -> String {
    let plain: String = answer.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let bare = without_articles(&plain);
    bare.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// White space as Python defines it: Unicode's, and the four ASCII separators.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Replaces each article (`a`, `an`, `the` as a maximal run of letters and digits) by a space.
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

/// Whether two answers are equal after [`normalize`].
pub fn exact_match(answer: &str, gold: &str) -> bool {
    normalize(answer) == normalize(gold)
}

/// F1 over words, from 0 to 1: the harmonic mean of precision and recall. It is 0 if one answer is
/// `yes`, `no` or `noanswer` and the other is different, and if either has no words.
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
