//! The reward of an answer, as AutoAct defines it for each kind of task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::answer::{exact_match, f1};
use crate::choice::{named, options};

/// The reward of an answer, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// F1 over words: the paper's reward for short answers.
    #[default]
    F1,
    /// 1 for an exact match, else 0.
    ExactMatch,
    /// 1 for the right option, else 0: the paper's reward for ScienceQA.
    MultipleChoice,
}

/// An unknown metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no metric; expected `f1`, `exact_match` or `multiple_choice`")]
pub struct UnknownMetric {
    /// What was asked for.
    pub name: String,
}

impl Metric {
    /// The reward of `answer`; `question` is needed for its options.
    pub fn reward(self, question: &str, answer: &str, gold: &str) -> f64 {
        match self {
            Metric::F1 => f1(answer, gold),
            Metric::ExactMatch | Metric::MultipleChoice => f64::from(u8::from(self.is_right(question, answer, gold))),
        }
    }

    /// Whether `answer` is exactly right: the same after normalisation, or the right option.
    pub fn is_right(self, question: &str, answer: &str, gold: &str) -> bool {
        if self == Metric::MultipleChoice {
            let options = options(question);
            // if the question does not contain the right option, the answers are compared as text
            if let Some(right) = named(gold, &options) {
                return named(answer, &options) == Some(right);
            }
        }
        exact_match(answer, gold)
    }

    /// Whether a reply is exactly right, and its reward. A reply or a gold answer of `None` says that
    /// there is no answer.
    pub fn score(self, question: &str, reply: Option<&str>, gold: Option<&str>) -> (bool, f64) {
        match (reply, gold) {
            (Some(reply), Some(gold)) => (self.is_right(question, reply, gold), self.reward(question, reply, gold)),
            (None, None) => (true, 1.0),
            _ => (false, 0.0),
        }
    }

    /// `f1`, `exact_match` or `multiple_choice`.
    pub fn as_str(self) -> &'static str {
        match self {
            Metric::F1 => "f1",
            Metric::ExactMatch => "exact_match",
            Metric::MultipleChoice => "multiple_choice",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Metric::F1, Metric::ExactMatch, Metric::MultipleChoice]
            .into_iter()
            .find(|metric| metric.as_str() == name)
            .ok_or_else(|| UnknownMetric { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_no_answer_is_right_where_there_is_none() {
        let score = |reply, gold| Metric::F1.score("Where is it?", reply, gold);
        assert_eq!(score(None, None), (true, 1.0));
        assert_eq!(score(None, Some("Lima")), (false, 0.0));
        assert_eq!(score(Some("Lima"), None), (false, 0.0));
        assert_eq!(score(Some(""), None), (false, 0.0), "an answer is missing, which is not the same");
        assert_eq!(score(Some("the Lima"), Some("Lima")), (true, 1.0));
    }

    #[test]
    fn rewards_follow_their_metric() {
        assert!((Metric::F1.reward("", "river Loire", "the Loire") - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(Metric::ExactMatch.reward("", "river Loire", "the Loire"), 0.0);
        assert_eq!(Metric::ExactMatch.reward("", "Loire.", "the Loire"), 1.0);
        let question = "Which?\nOptions: (A) stretchy (B) transparent";
        assert_eq!(Metric::MultipleChoice.reward(question, "transparent", "B"), 1.0);
        assert_eq!(Metric::MultipleChoice.reward(question, "A. stretchy", "B. transparent"), 0.0);
        assert_eq!(Metric::MultipleChoice.reward(question, "neither", "B"), 0.0);
        assert_eq!(Metric::MultipleChoice.reward("Which?", "b", "B"), 1.0);
    }

    #[test]
    fn names_round_trip() {
        for metric in [Metric::F1, Metric::ExactMatch, Metric::MultipleChoice] {
            assert_eq!(metric.to_string().parse(), Ok(metric));
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.as_str());
        }
        assert!("bleu".parse::<Metric>().unwrap_err().to_string().contains("`bleu`"));
    }
}
