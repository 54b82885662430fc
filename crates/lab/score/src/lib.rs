//! Scores of answers and their confidence: HotpotQA's exact match and F1, the reward of multiple
//! choice, bootstrap intervals, paired differences, and the precision and recall of verdicts. Pure
//! functions without a model and without I/O.

mod answer;
mod bootstrap;
mod choice;
mod metric;
mod verdicts;

pub use answer::{exact_match, f1, normalize};
pub use bootstrap::{Bootstrap, Interval, PairError};
pub use choice::{label, named, options, with_options, without_options};
pub use metric::{Metric, UnknownMetric};
pub use verdicts::Verdicts;
