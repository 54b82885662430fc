//! What confidences tell of all judged answers, approved or not.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Bootstrap, Interval};
use crate::ranking::{auroc, caught_keeping};

/// The share of the right answers that [`Discrimination::caught`] is measured at.
const KEPT: f64 = 0.9;

/// How well confidences tell right answers from wrong ones, with intervals over questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discrimination {
    /// Number of right answers.
    pub right: usize,
    /// Number of wrong answers.
    pub wrong: usize,
    /// The probability that a right answer has a higher confidence than a wrong one.
    pub auroc: Interval,
    /// The share of the right answers that are to be kept.
    pub kept: f64,
    /// The least confidence of those that are kept.
    pub confidence: f64,
    /// The share of the wrong answers whose confidence is below it.
    pub caught: Interval,
}

impl Discrimination {
    /// Of each question's answers: their confidences, and whether they are right. `None` if all are
    /// right, or all wrong, or a confidence is no number.
    pub fn of(questions: &[Vec<(f64, bool)>]) -> Option<Discrimination> {
        let questions: Vec<&[(f64, bool)]> = questions.iter().map(Vec::as_slice).collect();
        let answers = questions.concat();
        let right = answers.iter().filter(|(_, right)| *right).count();
        let caught = |drawn: &[&[(f64, bool)]]| caught_keeping(KEPT, &drawn.concat());
        Some(Discrimination {
            right,
            wrong: answers.len() - right,
            auroc: Bootstrap::default().statistic(&questions, |drawn| auroc(&drawn.concat()))?,
            kept: KEPT,
            confidence: caught(&questions)?.threshold,
            caught: Bootstrap::default().statistic(&questions, |drawn| Some(caught(drawn)?.share))?,
        })
    }
}

impl fmt::Display for Discrimination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Discrimination { right, wrong, auroc, kept, confidence, caught } = self;
        let [kept, mean, low, high] = [*kept, caught.mean, caught.low, caught.high].map(|share| 100.0 * share);
        write!(f, "a confidence of {confidence:.2} keeps {kept:.0}% of the right answers and catches {mean:.0}% ({low:.0} to {high:.0}) ")?;
        write!(f, "of the wrong ones, of {right} right and {wrong} wrong answers (AUROC {:.2})", auroc.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_caught_is_told_with_what_is_kept() {
        let questions: Vec<Vec<(f64, bool)>> = (0..20).map(|at| vec![(0.9, true), (if at < 10 { 0.1 } else { 0.95 }, false)]).collect();
        let found = Discrimination::of(&questions).unwrap();
        assert_eq!((found.right, found.wrong, found.auroc.mean, found.caught.mean, found.confidence), (20, 20, 0.5, 0.5, 0.9));
        assert!(found.caught.low < 0.5 && found.caught.high > 0.5, "{found:?}");
        assert!(found.to_string().contains("keeps 90%"), "{found}");
        assert_eq!([Discrimination::of(&[]), Discrimination::of(&[vec![(0.5, true)]])], [None, None]);
    }
}
