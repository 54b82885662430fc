//! Whether an answer is right: HotpotQA's normalisation, exact match and F1.

use std::collections::HashMap;

/// Lower case, no punctuation, no articles, single blanks.
pub fn normalize(answer: &str) -> String {
    let lower = answer.to_lowercase();
    let plain: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    plain.split_whitespace().filter(|word| !matches!(*word, "a" | "an" | "the")).collect::<Vec<_>>().join(" ")
}

/// Whether two answers are the same after [`normalize`].
pub fn exact_match(answer: &str, gold: &str) -> bool {
    normalize(answer) == normalize(gold)
}

/// The harmonic mean of precision and recall over words; 0 where one says yes or no and the other something else.
pub fn f1(answer: &str, gold: &str) -> f64 {
    let (answer, gold) = (normalize(answer), normalize(gold));
    let closed = |text: &str| matches!(text, "yes" | "no" | "noanswer");
    if (closed(&answer) || closed(&gold)) && answer != gold {
        return 0.0;
    }
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    gold.split(' ').for_each(|word| *wanted.entry(word).or_default() += 1);
    let mut common = 0;
    for word in answer.split(' ') {
        if let Some(left) = wanted.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    let (given, asked) = (answer.split(' ').count() as f64, gold.split(' ').count() as f64);
    let (precision, recall) = (f64::from(common) / given, f64::from(common) / asked);
    2.0 * precision * recall / (precision + recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalisation_is_hotpots() {
        assert_eq!(normalize("The  Beatles, an English band."), "beatles english band");
        assert!(exact_match("the Loire", "Loire."));
        assert!(!exact_match("Lower Loire", "Loire"));
        assert!(exact_match("1006 km", "1006 km"));
    }

    #[test]
    fn f1_counts_words() {
        assert_eq!(f1("yes", "no"), 0.0);
        assert_eq!(f1("yes", "yes"), 1.0);
        assert_eq!(f1("yes sir", "yes"), 0.0);
        assert!((f1("river Loire", "Loire") - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(f1("", "Loire"), 0.0);
        // a repeated word counts once
        assert!((f1("Loire Loire", "Loire") - 2.0 / 3.0).abs() < 1e-9);
    }
}
