//! Precision and recall of Reflect-Agent's verdicts.

use serde::{Deserialize, Serialize};

/// The confusion matrix of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdicts {
    /// Approved, and right.
    pub approved_right: usize,
    /// Approved, but wrong.
    pub approved_wrong: usize,
    /// Rejected, but right.
    pub rejected_right: usize,
    /// Rejected, and wrong.
    pub rejected_wrong: usize,
}

impl Verdicts {
    /// Counts one verdict.
    pub fn add(&mut self, approved: bool, right: bool) {
        let count = match (approved, right) {
            (true, true) => &mut self.approved_right,
            (true, false) => &mut self.approved_wrong,
            (false, true) => &mut self.rejected_right,
            (false, false) => &mut self.rejected_wrong,
        };
        *count += 1;
    }

    /// Number of verdicts.
    pub fn total(&self) -> usize {
        self.approved() + self.rejected_right + self.rejected_wrong
    }

    /// Number of verdicts "right".
    pub fn approved(&self) -> usize {
        self.approved_right + self.approved_wrong
    }

    /// Fraction of the approved answers that are right; `None` if none was approved.
    pub fn precision(&self) -> Option<f64> {
        part(self.approved_right, self.approved())
    }

    /// Fraction of the right answers that were approved; `None` if none is right.
    pub fn recall(&self) -> Option<f64> {
        part(self.approved_right, self.approved_right + self.rejected_right)
    }

    /// Fraction of the rejected answers that are wrong; `None` if none was rejected.
    pub fn rejection_precision(&self) -> Option<f64> {
        part(self.rejected_wrong, self.rejected_right + self.rejected_wrong)
    }

    /// Fraction of the wrong answers that were rejected; `None` if none is wrong.
    pub fn rejection_recall(&self) -> Option<f64> {
        part(self.rejected_wrong, self.approved_wrong + self.rejected_wrong)
    }

    /// Fraction of verdicts that are true; `None` without verdicts.
    pub fn accuracy(&self) -> Option<f64> {
        part(self.approved_right + self.rejected_wrong, self.total())
    }
}

fn part(count: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

impl FromIterator<(bool, bool)> for Verdicts {
    /// From pairs of (approved, right).
    fn from_iter<I: IntoIterator<Item = (bool, bool)>>(pairs: I) -> Self {
        let mut verdicts = Verdicts::default();
        pairs.into_iter().for_each(|(approved, right)| verdicts.add(approved, right));
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted() {
        let verdicts: Verdicts = [(true, true), (true, true), (true, false), (false, true), (false, false)].into_iter().collect();
        assert_eq!(verdicts, Verdicts { approved_right: 2, approved_wrong: 1, rejected_right: 1, rejected_wrong: 1 });
        assert_eq!((verdicts.total(), verdicts.precision(), verdicts.recall()), (5, Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!((verdicts.rejection_precision(), verdicts.rejection_recall(), verdicts.accuracy()), (Some(0.5), Some(0.5), Some(0.6)));
    }

    #[test]
    fn nothing_is_not_a_number() {
        let verdicts = Verdicts::default();
        let all =
            [verdicts.precision(), verdicts.recall(), verdicts.rejection_precision(), verdicts.rejection_recall(), verdicts.accuracy()];
        assert_eq!(all, [None; 5]);
    }
}
