//! Fitting a [`Calibration`] on judged answers: how evidence becomes a confidence, and the
//! threshold that an approval needs.

use std::collections::BTreeMap;

use autoact_trajectory::{CALIBRATION_FORMAT, Calibration, Evidence, NextAttempt, Term};

use crate::logistic::Logistic;
use crate::ranking::threshold_for;

/// Parts that the questions are split into for confidences of answers that a fit has not seen.
pub const FOLDS: usize = 5;
/// Questions with a right answer, and with a wrong one, that a fit needs at least: fewer do not
/// tell the parts apart.
pub const LEAST_QUESTIONS: usize = 10;
/// The penalty on the weights of standardised parts: a weight of 1 costs as much as half a nat of
/// log loss. Parts are correlated, and histories are few.
const PENALTY: f64 = 1.0;
/// A part whose standard deviation is below this share of its size is constant.
const CONSTANT: f64 = 1e-9;

/// How much less precision is tried at a time where what was asked for cannot be reached.
const STEP: f64 = 0.05;
/// The least precision that is worth telling.
const LEAST_PRECISION: f64 = 0.5;

/// An answer that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What it answers. All answers to a question are in the same fold.
    pub question: String,
    /// How sure the agents were.
    pub evidence: Evidence,
    /// The verdict: only an answer with the verdict "right" can be approved.
    pub approved: bool,
    /// Whether it is right.
    pub right: bool,
}

/// What a fit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The calibration, fitted on all judged answers.
    pub calibration: Calibration,
    /// The answers' confidences, in their order, each by a fit without its fold. The threshold was
    /// chosen on these: answers that a fit has seen would look better than others do.
    pub confidences: Vec<f64>,
}

/// Why no calibration was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// There is too little to learn from.
    #[error(
        "`{right}` questions have a right answer and `{wrong}` a wrong one, with evidence; expected at least \
         {LEAST_QUESTIONS} of each"
    )]
    TooFew {
        /// Questions with a right answer.
        right: usize,
        /// Questions with a wrong one.
        wrong: usize,
    },
    /// The precision is no share.
    #[error("the precision is `{found}`, expected more than 0 and less than 1")]
    Precision {
        /// What was asked for.
        found: f64,
    },
    /// No threshold is precise enough on as many answers as there are.
    #[error("no threshold is sure to reach a precision of {precision}; the best one is sure of {best:.3}")]
    Unreachable {
        /// What was asked for.
        precision: f64,
        /// The highest lower bound of a threshold's precision.
        best: f64,
    },
}

/// Fits a logistic mix of the parts of the evidence, and chooses the least threshold at which
/// approved answers are right with at least `precision` ([`threshold_for`]).
///
/// Parts are standardised. One that is constant does not count. Nor does one that would count against
/// an answer: each part is such that more of it is better, and what few answers say against that is
/// chance. They are left out one by one, the worst first. Answers whose evidence is not
/// finite are passed over: their confidence is 0. The same answers give the same bits, in any order
/// of the questions up to rounding.
///
/// # Errors
/// Fewer than [`LEAST_QUESTIONS`] questions of a class, a precision that is no share, or one that
/// no threshold reaches.
pub fn fit(judged: &[Judged], precision: f64) -> Result<Fitted, FitError> {
    let found = Confident::of(judged, precision)?;
    let threshold = found.threshold(judged, precision).map_err(|best| FitError::Unreachable { precision, best })?;
    Ok(found.with(threshold, precision))
}

/// [`fit`], or a calibration that approves nothing where no threshold reaches `precision`: its
/// threshold is [`Calibration::NEVER`], and its confidences still tell the better of two answers.
/// Where there is too little to tell the parts apart, every answer has the confidence of the share
/// that is right.
///
/// # Errors
/// No answer has evidence, or the precision is no share.
pub fn fit_or_approve_none(judged: &[Judged], precision: f64) -> Result<Fitted, FitError> {
    let found = match Confident::of(judged, precision) {
        Err(too_few @ FitError::TooFew { .. }) => Confident::alike(judged).ok_or(too_few)?,
        found => found?,
    };
    let threshold = found.threshold(judged, precision).unwrap_or(Calibration::NEVER);
    Ok(found.with(threshold, precision))
}

/// [`fit`] for the highest precision below `precision` that a threshold reaches, in steps of 5 points
/// down to 50%. `None` if there is none.
pub fn fit_within_reach(judged: &[Judged], precision: f64) -> Option<Fitted> {
    let Err(FitError::Unreachable { best, .. }) = fit(judged, precision) else { return None };
    // no threshold is sure of more than the best one
    let steps = ((precision - best) / STEP - f64::EPSILON.sqrt()).ceil().max(1.0);
    let lower = precision - steps * STEP;
    if lower < LEAST_PRECISION { None } else { fit(judged, lower).ok() }
}

/// Confidences without a threshold.
struct Confident {
    /// Fitted on all answers.
    mix: Calibration,
    /// The answers' confidences, each by a fit without its fold.
    confidences: Vec<f64>,
}

impl Confident {
    fn of(judged: &[Judged], precision: f64) -> Result<Confident, FitError> {
        if !(precision > 0.0 && precision < 1.0) {
            return Err(FitError::Precision { found: precision });
        }
        let folds = folds(judged.iter().filter(usable))?;
        let mix = |left_out: Option<usize>| {
            let fitted_on = |one: &&Judged| left_out.is_none_or(|fold| folds.get(one.question.as_str()) != Some(&fold));
            mix(&judged.iter().filter(usable).filter(fitted_on).collect::<Vec<_>>())
        };
        let unseen: Vec<Calibration> = (0..FOLDS).map(|fold| mix(Some(fold))).collect();
        let confidence = |one: &Judged| {
            let fold = folds.get(one.question.as_str()).filter(|_| usable(&one)).and_then(|fold| unseen.get(*fold));
            fold.map_or(0.0, |calibration| calibration.confidence(&one.evidence))
        };
        Ok(Confident { confidences: judged.iter().map(confidence).collect(), mix: mix(None) })
    }

    /// The same confidence for every answer: the share that is right, as if there were one more of
    /// each class. `None` without answers.
    fn alike(judged: &[Judged]) -> Option<Confident> {
        let (right, wrong): (Vec<&Judged>, Vec<&Judged>) = judged.iter().filter(usable).partition(|one| one.right);
        let histories = u32::try_from(right.len() + wrong.len()).unwrap_or(u32::MAX);
        let intercept = ((right.len() + 1) as f64 / (wrong.len() + 1) as f64).ln();
        let mix = without_threshold(intercept, Vec::new(), histories);
        let confidence = |one: &Judged| if usable(&one) { mix.confidence(&one.evidence) } else { 0.0 };
        let confidences = judged.iter().map(confidence).collect();
        (histories > 0).then_some(Confident { mix, confidences })
    }

    /// The least threshold that is sure to reach `precision`, or the highest lower bound of a
    /// threshold's precision.
    fn threshold(&self, judged: &[Judged], precision: f64) -> Result<f64, f64> {
        let approvable = judged.iter().zip(&self.confidences).filter(|(one, _)| one.approved && usable(one));
        threshold_for(precision, &approvable.map(|(one, confidence)| (*confidence, one.right)).collect::<Vec<_>>())
    }

    fn with(self, threshold: f64, precision: f64) -> Fitted {
        Fitted { calibration: Calibration { threshold, precision, ..self.mix }, confidences: self.confidences }
    }
}

/// Whether the evidence can be counted.
fn usable(one: &&Judged) -> bool {
    one.evidence.values().into_iter().all(f64::is_finite)
}

/// Each question's fold: in turn, by their texts, those with a wrong answer first. So each fold has
/// its part of both classes, and a question is in the same one whatever the order.
fn folds<'a>(judged: impl Iterator<Item = &'a Judged>) -> Result<BTreeMap<&'a str, usize>, FitError> {
    // per question: whether it has a right answer, and whether a wrong one
    let mut questions: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for one in judged {
        let (right, wrong) = questions.entry(&one.question).or_default();
        *right |= one.right;
        *wrong |= !one.right;
    }
    let right = questions.values().filter(|(right, _)| *right).count();
    let wrong = questions.values().filter(|(_, wrong)| *wrong).count();
    if right.min(wrong) < LEAST_QUESTIONS {
        return Err(FitError::TooFew { right, wrong });
    }
    let mut sorted: Vec<(&str, (bool, bool))> = questions.into_iter().collect();
    sorted.sort_by_key(|(_, (_, wrong))| !wrong);
    Ok(sorted.into_iter().enumerate().map(|(at, (question, _))| (question, at % FOLDS)).collect())
}

/// The mix without a threshold.
fn mix(judged: &[&Judged]) -> Calibration {
    let count = judged.len().max(1) as f64;
    let standard = |part: usize| {
        let values = || judged.iter().map(|one| one.evidence.counted(CALIBRATION_FORMAT)[part]);
        let mean = values().sum::<f64>() / count;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let varies = deviation.is_finite() && deviation > CONSTANT * mean.abs().max(CONSTANT);
        varies.then_some((part, mean, deviation))
    };
    let mut standards: Vec<(usize, f64, f64)> = (0..Evidence::PARTS.len()).filter_map(standard).collect();
    let Logistic { intercept, weights } = loop {
        let row = |one: &&Judged| {
            let values = one.evidence.counted(CALIBRATION_FORMAT);
            (standards.iter().map(|(part, mean, deviation)| (values[*part] - mean) / deviation).collect(), one.right)
        };
        let rows: Vec<(Vec<f64>, bool)> = judged.iter().map(row).collect();
        let fitted = Logistic::fit(&rows, standards.len(), PENALTY);
        let least = fitted.weights.iter().enumerate().min_by(|(_, one), (_, other)| one.total_cmp(other));
        match least {
            Some((at, weight)) if *weight < 0.0 => standards.remove(at),
            _ => break fitted,
        };
    };
    let term = |((part, mean, deviation), weight): ((usize, f64, f64), f64)| Term {
        part: Evidence::PARTS[part].to_owned(),
        mean,
        deviation,
        weight,
    };
    let terms = standards.into_iter().zip(weights).map(term).collect();
    let histories = u32::try_from(judged.len()).unwrap_or(u32::MAX);
    without_threshold(intercept, terms, histories)
}

fn without_threshold(intercept: f64, terms: Vec<Term>, histories: u32) -> Calibration {
    let next_attempt = NextAttempt::default();
    Calibration { format: CALIBRATION_FORMAT, threshold: Calibration::NEVER, precision: 1.0, intercept, terms, histories, next_attempt }
}
