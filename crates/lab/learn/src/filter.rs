//! The filters of self-instruct: format, grounding and duplicates. Each rejection has a cause.

use std::collections::HashSet;

use autoact_score::normalize;

/// Why a generation is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The reply is cut short or lacks a part.
    Malformed,
    /// It does not end in a question mark.
    NoQuestionMark,
    /// Fewer than 3 or more than 60 words.
    QuestionLength,
    /// No answer, or more than 12 words.
    AnswerLength,
    /// The question contains its answer and does not offer it as an option.
    AnswerInQuestion,
    /// None of the pages shown contains the answer.
    Ungrounded,
    /// It is a question of the evaluation set, which must not be learned from.
    Evaluation,
    /// The same question, except for case, articles and punctuation.
    Duplicate,
    /// Nearly the same question.
    NearDuplicate,
    /// Not enough wrong options were found.
    NoOptions,
}

impl Cause {
    /// Its name in files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Cause::Malformed => "malformed",
            Cause::NoQuestionMark => "no_question_mark",
            Cause::QuestionLength => "question_length",
            Cause::AnswerLength => "answer_length",
            Cause::AnswerInQuestion => "answer_in_question",
            Cause::Ungrounded => "ungrounded",
            Cause::Evaluation => "evaluation",
            Cause::Duplicate => "duplicate",
            Cause::NearDuplicate => "near_duplicate",
            Cause::NoOptions => "no_options",
        }
    }
}

/// Allowed number of words of a question.
const QUESTION_WORDS: std::ops::RangeInclusive<usize> = 3..=60;
/// Maximum number of words of an answer: answers are names, numbers, yes or no.
const ANSWER_WORDS: usize = 12;

/// The format filter. `pages` are the texts shown, with titles. If there are none, or `grounded` is
/// false, the answer need not occur in them.
pub(crate) fn check_format(question: &str, answer: &str, pages: &[String], grounded: bool) -> Result<(), Cause> {
    if !question.ends_with('?') || question.matches('?').count() > 1 {
        return Err(Cause::NoQuestionMark);
    }
    if !QUESTION_WORDS.contains(&question.split_whitespace().count()) {
        return Err(Cause::QuestionLength);
    }
    let plain = normalize(answer);
    if plain.is_empty() || answer.split_whitespace().count() > ANSWER_WORDS {
        return Err(Cause::AnswerLength);
    }
    if matches!(plain.as_str(), "yes" | "no") {
        return Ok(());
    }
    if within(&plain, &normalize(question)) && !question.contains(" or ") {
        return Err(Cause::AnswerInQuestion);
    }
    if grounded && !pages.is_empty() && !pages.iter().any(|page| within(&plain, &normalize(page))) {
        return Err(Cause::Ungrounded);
    }
    Ok(())
}

/// Whether `whole` contains `part` at word boundaries. Both are normalised.
pub(crate) fn within(part: &str, whole: &str) -> bool {
    format!(" {whole} ").contains(&format!(" {part} "))
}

/// The accepted questions and the evaluation questions, for finding duplicates.
#[derive(Debug, Default)]
pub(crate) struct Known {
    exact: HashSet<String>,
    grams: Vec<HashSet<(String, String)>>,
    evaluation: HashSet<String>,
    similarity: f64,
}

impl Known {
    /// Starts with the evaluation questions only. From `similarity` on, the Jaccard index of word
    /// bigrams makes two questions near-duplicates.
    pub(crate) fn new<'a>(similarity: f64, evaluation: impl IntoIterator<Item = &'a str>) -> Known {
        Known { similarity, evaluation: evaluation.into_iter().map(normalize).collect(), ..Known::default() }
    }

    /// Checks that the question is new.
    pub(crate) fn check(&self, question: &str) -> Result<(), Cause> {
        let plain = normalize(question);
        if self.evaluation.contains(&plain) {
            return Err(Cause::Evaluation);
        }
        if self.exact.contains(&plain) {
            return Err(Cause::Duplicate);
        }
        let grams = pairs(&plain);
        if self.grams.iter().any(|known| jaccard(known, &grams) >= self.similarity) {
            return Err(Cause::NearDuplicate);
        }
        Ok(())
    }

    /// Adds an accepted question.
    pub(crate) fn insert(&mut self, question: &str) {
        let plain = normalize(question);
        self.grams.push(pairs(&plain));
        self.exact.insert(plain);
    }
}

/// Word bigrams, including the end of the text.
fn pairs(text: &str) -> HashSet<(String, String)> {
    let mut last = String::new();
    let words = text.split(' ').map(str::to_owned).chain([String::new()]);
    words.map(|word| (std::mem::replace(&mut last, word.clone()), word)).collect()
}

fn jaccard(a: &HashSet<(String, String)>, b: &HashSet<(String, String)>) -> f64 {
    let common = a.intersection(b).count();
    common as f64 / (a.len() + b.len() - common).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(question: &str, answer: &str) -> Result<(), Cause> {
        check_format(question, answer, &["Loire: It flows in France.".to_owned()], true)
    }

    #[test]
    fn the_format_filter_names_its_causes() {
        assert_eq!(format("Where is the Loire?", "France"), Ok(()));
        assert_eq!(format("Is it in Spain?", "no"), Ok(()));
        assert_eq!(format("Which is longer, the Loire or the Rhine?", "Loire"), Ok(()));
        assert_eq!(format("Where is the Loire", "France"), Err(Cause::NoQuestionMark));
        assert_eq!(format("Where? Is it there?", "France"), Err(Cause::NoQuestionMark));
        assert_eq!(format("Where then?", "France"), Err(Cause::QuestionLength));
        assert_eq!(format("Where is the Loire?", " . "), Err(Cause::AnswerLength));
        assert_eq!(format("Where is the Loire?", "Loire"), Err(Cause::AnswerInQuestion));
        assert_eq!(format("Where is the Loire?", "Fran"), Err(Cause::Ungrounded));
        assert_eq!(check_format("Where is the Loire?", "Fran", &[], true), Ok(()));
    }

    #[test]
    fn duplicates_are_exact_near_or_of_the_evaluation() {
        let mut known = Known::new(0.75, ["What is the currency of Chad?"]);
        known.insert("What is the longest river in the country of the Dasht-e Kavir?");
        assert_eq!(known.check("what is longest river in country of the Dasht-e Kavir"), Err(Cause::Duplicate));
        assert_eq!(known.check("What is the longest river in the country where the Dasht-e Kavir?"), Ok(()));
        assert_eq!(known.check("So what is the longest river in the country of the Dasht-e Kavir?"), Err(Cause::NearDuplicate));
        assert_eq!(known.check("What is the currency of chad"), Err(Cause::Evaluation));
        known.insert("What is the capital of Peru?");
        assert_eq!(known.check("What is the capital of Chad?"), Ok(()));
    }
}
