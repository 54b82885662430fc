//! What a group said in the end, and what that is worth.

use autoact_score::Metric;
use autoact_trajectory::{FinishReason, Task};

/// What a group said in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// An answer.
    Answer(String),
    /// That there is none.
    NoAnswer,
    /// Nothing: it came to no end.
    Nothing,
}

impl Said {
    /// What a task that ended, or stopped at its first answer, said.
    pub(crate) fn of(task: &Task) -> Said {
        let found_none = match task.finished() {
            Some(finished) => finished.reason == FinishReason::NoAnswer,
            None => task.no_answer().is_some(),
        };
        match task.best_answer() {
            _ if found_none => Said::NoAnswer,
            "" => Said::Nothing,
            answer => Said::Answer(answer.to_owned()),
        }
    }

    /// The answer; empty if there is none.
    pub(crate) fn answer(&self) -> &str {
        match self {
            Said::Answer(answer) => answer,
            Said::NoAnswer | Said::Nothing => "",
        }
    }

    /// Whether it is exactly right, and its reward, where `gold` is `None` if the question has no
    /// answer. `question` is needed for its options.
    pub(crate) fn score(&self, metric: Metric, question: &str, gold: Option<&str>) -> (bool, f64) {
        match self {
            Said::Answer(answer) => metric.score(question, Some(answer), gold),
            Said::NoAnswer => metric.score(question, None, gold),
            Said::Nothing => (false, 0.0),
        }
    }
}

/// Whether it is exactly right by `metric`, and its F1 over words.
pub(crate) fn scores(said: &Said, metric: Metric, question: &str, gold: Option<&str>) -> (bool, f64) {
    (said.score(metric, question, gold).0, said.score(Metric::F1, question, gold).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_no_answer_is_right_where_there_is_none() {
        let of = |said: &Said, gold| said.score(Metric::F1, "q", gold);
        let answer = Said::Answer("the Loire".into());
        assert_eq!((of(&answer, Some("Loire")), of(&answer, None)), ((true, 1.0), (false, 0.0)));
        assert_eq!((of(&Said::NoAnswer, Some("Loire")), of(&Said::NoAnswer, None)), ((false, 0.0), (true, 1.0)));
        assert_eq!((of(&Said::Nothing, Some("")), of(&Said::Nothing, None)), ((false, 0.0), (false, 0.0)));
    }
}
