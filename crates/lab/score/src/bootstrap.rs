//! Confidence intervals of means over questions, by the percentile bootstrap with a seed.

use autoact_base::random::SplitMix64;
use serde::{Deserialize, Serialize};

/// Number of resamples, sufficient for a 95% interval that is stable in the printed digits.
const RESAMPLES: usize = 2_000;
const LEVEL: f64 = 0.95;

/// A mean, or another statistic, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The mean of the values, or the statistic.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the interval excludes zero, so that a difference is significant at the interval's
    /// level.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Paired values for different questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("paired values need the same questions on both sides, here are `{left}` and `{right}`")]
pub struct PairError {
    /// Values on the left.
    pub left: usize,
    /// Values on the right.
    pub right: usize,
}

/// Settings of the bootstrap. The same seed draws the same resamples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Number of resamples.
    pub resamples: usize,
    /// Confidence level: the fraction of the resamples' means inside the interval.
    pub level: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 2,000 resamples, 95%, seed 0.
    fn default() -> Self {
        Bootstrap { resamples: RESAMPLES, level: LEVEL, seed: 0 }
    }
}

impl Bootstrap {
    /// The mean of `values` with its interval; all zero without values.
    pub fn mean(&self, values: &[f64]) -> Interval {
        let count = values.len();
        if count == 0 {
            return Interval { mean: 0.0, low: 0.0, high: 0.0 };
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let mut draws = SplitMix64::new(self.seed);
        let means: Vec<f64> =
            (0..self.resamples).map(|_| (0..count).filter_map(|_| values.get(draws.below(count))).sum::<f64>() / count as f64).collect();
        self.interval(mean, means)
    }

    /// A statistic of `items` that is no mean, with its interval; `None` if the items have none.
    /// Resamples that have none, such as those of one class, are left out.
    pub fn statistic<T: Copy>(&self, items: &[T], statistic: impl Fn(&[T]) -> Option<f64>) -> Option<Interval> {
        let whole = statistic(items)?;
        let mut draws = SplitMix64::new(self.seed);
        let mut drawn = Vec::with_capacity(items.len());
        let mut resampled = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            drawn.clear();
            drawn.extend((0..items.len()).filter_map(|_| items.get(draws.below(items.len()))));
            resampled.extend(statistic(&drawn));
        }
        Some(self.interval(whole, resampled))
    }

    /// The value of the whole sample between the quantiles of the resamples' values.
    fn interval(&self, mean: f64, mut resampled: Vec<f64>) -> Interval {
        resampled.sort_by(f64::total_cmp);
        let outside = (1.0 - self.level.clamp(0.0, 1.0)) / 2.0;
        let at = |quantile: f64| resampled.get(((resampled.len().max(1) - 1) as f64 * quantile).round() as usize).copied().unwrap_or(mean);
        Interval { mean, low: at(outside), high: at(1.0 - outside) }
    }

    /// The mean of `left - right` over questions, with its interval.
    ///
    /// # Errors
    /// The lists differ in length.
    pub fn paired(&self, left: &[f64], right: &[f64]) -> Result<Interval, PairError> {
        if left.len() != right.len() {
            return Err(PairError { left: left.len(), right: right.len() });
        }
        let differences: Vec<f64> = left.iter().zip(right).map(|(left, right)| left - right).collect();
        Ok(self.mean(&differences))
    }
}
