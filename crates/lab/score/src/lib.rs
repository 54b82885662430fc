//! Scores of answers and their confidence: HotpotQA's exact match and F1, the reward of multiple
//! choice, bootstrap intervals, paired differences, the precision and recall of verdicts, how well
//! a number tells right answers from wrong ones, and the calibration of confidences. Pure functions
//! without a model and without I/O.

mod answer;
mod bootstrap;
mod calibration;
mod choice;
mod discrimination;
mod logistic;
mod metric;
mod ranking;
mod verdicts;

pub use answer::{exact_match, f1, normalize};
pub use bootstrap::{Bootstrap, Interval, PairError};
pub use calibration::{FOLDS, FitError, Fitted, Judged, LEAST_QUESTIONS, fit, fit_or_approve_none, fit_within_reach};
pub use choice::{label, named, options, with_options, without_options};
pub use discrimination::Discrimination;
pub use metric::{Metric, UnknownMetric};
pub use ranking::{
    Caught, CurvePoint, auroc, calibration_error, caught_keeping, curve, precision_at_least, precision_covering, threshold_for,
};
pub use verdicts::Verdicts;
