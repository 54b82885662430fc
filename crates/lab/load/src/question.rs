//! The questions of a load.

use std::path::Path;

use autoact_base::random::Rng;
use autoact_score::{Metric, with_options};
use serde::Deserialize;

use crate::error::LoadError;

/// A question, with its answer if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question as it is sent.
    pub text: String,
    /// The right answer.
    pub answer: Option<String>,
    /// Whether it is multiple-choice.
    choice: bool,
}

/// A line of a file of questions.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(alias = "text")]
    question: String,
    answer: Option<String>,
    #[serde(default)]
    options: Vec<String>,
}

impl Question {
    /// A question without a known answer.
    pub fn new(text: &str) -> Question {
        Question { text: text.to_owned(), answer: None, choice: false }
    }

    /// Whether an answer is right; `None` if the right answer is not known.
    pub fn is_right(&self, answer: &str) -> Option<bool> {
        let metric = if self.choice { Metric::MultipleChoice } else { Metric::F1 };
        self.answer.as_ref().map(|gold| metric.is_right(&self.text, answer, gold))
    }
}

/// Reads the questions of a file, one per line: text, or JSON with `question` (or `text`) and
/// optional `answer` and `options`.
pub fn questions(path: &Path) -> Result<Vec<Question>, LoadError> {
    let text = std::fs::read_to_string(path).map_err(LoadError::file("read", path))?;
    let mut questions = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if !line.trim_start().starts_with('{') {
            questions.push(Question::new(line.trim()));
            continue;
        }
        let Line { question, answer, options } =
            serde_json::from_str(line).map_err(|source| LoadError::Question { path: path.to_path_buf(), line: at + 1, source })?;
        questions.push(Question { text: with_options(&question, &options), answer, choice: !options.is_empty() });
    }
    if questions.is_empty() {
        return Err(LoadError::NoQuestions { path: path.to_path_buf() });
    }
    Ok(questions)
}

/// Shuffles the questions; the same seed gives the same order.
pub fn shuffled(mut questions: Vec<Question>, seed: u64) -> Vec<Question> {
    Rng::new(seed).shuffle(&mut questions);
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Question>, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("questions");
        std::fs::write(&path, text).unwrap();
        questions(&path)
    }

    #[test]
    fn a_line_is_text_or_json() {
        let lines = "Where is the Loire?\n\n{\"text\": \"Who?\", \"answer\": \"Ada\"}\n{\"question\": \"Which?\", \"options\": [\"a\", \"b\"], \"answer\": \"B\"}\n";
        let questions = read(lines).unwrap();
        assert_eq!(questions[0], Question::new("Where is the Loire?"));
        assert_eq!((questions[0].is_right("x"), questions[1].is_right("ada"), questions[1].is_right("x")), (None, Some(true), Some(false)));
        assert_eq!((questions[2].is_right("B"), questions[2].is_right("A")), (Some(true), Some(false)));
    }

    #[test]
    fn what_is_no_question_is_named() {
        assert!(matches!(read("Who?\n{\"answer\": 1}"), Err(LoadError::Question { line: 2, .. })));
        assert!(matches!(read("\n\n"), Err(LoadError::NoQuestions { .. })));
        assert!(matches!(questions(Path::new("/nowhere")), Err(LoadError::File { .. })));
    }

    #[test]
    fn the_order_is_the_seeds() {
        let all: Vec<Question> = (0..50).map(|number| Question::new(&number.to_string())).collect();
        assert_eq!(shuffled(all.clone(), 3), shuffled(all.clone(), 3));
        assert_ne!(shuffled(all.clone(), 3), shuffled(all.clone(), 4));
        assert_eq!(shuffled(all, 3).len(), 50);
    }
}
