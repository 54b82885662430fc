//! Distributions of durations: an HDR histogram (three significant digits, from 1 µs to 1 h), and
//! the form in which reports store it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Maximum duration in microseconds; longer ones are counted as this.
const LONGEST_MICROS: u64 = 3_600_000_000;
/// The quantiles in reports.
pub const QUANTILES: [(&str, f64); 7] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// A histogram of durations.
#[derive(Debug, Clone)]
pub struct Durations {
    /// Always present, because the bounds above are valid.
    histogram: Option<Histogram<u64>>,
    sum: Duration,
    squares: f64,
}

impl Default for Durations {
    fn default() -> Self {
        Durations::with_digits(3)
    }
}

impl Durations {
    /// A histogram with this number of significant digits.
    pub(crate) fn with_digits(digits: u8) -> Durations {
        let histogram = Histogram::new_with_bounds(1, LONGEST_MICROS, digits.clamp(1, 5)).ok();
        Durations { histogram, sum: Duration::ZERO, squares: 0.0 }
    }

    /// Adds a duration.
    pub fn record(&mut self, duration: Duration) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        }
        self.sum += duration;
        self.squares += duration.as_secs_f64().powi(2);
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Their exact sum.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The duration at this quantile.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let some = self.histogram.as_ref().filter(|histogram| !histogram.is_empty());
        some.map(|histogram| Duration::from_micros(histogram.value_at_quantile(quantile))).unwrap_or_default()
    }

    /// The distribution for a report.
    pub fn distribution(&self) -> Distribution {
        let count = self.count();
        let mean = self.sum.as_secs_f64() / count.max(1) as f64;
        let variance = (self.squares / count.max(1) as f64 - mean * mean).max(0.0);
        let ms = |micros: u64| tidy(micros as f64 / 1e3);
        let some = self.histogram.as_ref().filter(|histogram| !histogram.is_empty());
        Distribution {
            count,
            mean_ms: tidy(mean * 1e3),
            stdev_ms: tidy(variance.sqrt() * 1e3),
            min_ms: some.map_or(0.0, |histogram| ms(histogram.min())),
            max_ms: some.map_or(0.0, |histogram| ms(histogram.max())),
            percentiles_ms: QUANTILES
                .iter()
                .map(|(name, quantile)| ((*name).to_owned(), tidy(self.quantile(*quantile).as_secs_f64() * 1e3)))
                .collect(),
            counts: some.map_or_else(Vec::new, |histogram| {
                histogram.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
            }),
        }
    }
}

/// Rounds to nine decimals, so that a value written as text is read back unchanged.
pub(crate) fn tidy(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// A distribution as reports store it. The counts are the whole histogram, from which other
/// percentiles and merged histograms can be computed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of durations.
    pub count: u64,
    /// Exact mean in milliseconds.
    pub mean_ms: f64,
    /// Exact standard deviation in milliseconds.
    pub stdev_ms: f64,
    /// Minimum in milliseconds.
    pub min_ms: f64,
    /// Maximum in milliseconds.
    pub max_ms: f64,
    /// Percentiles in milliseconds by name: `p50`, `p99.9`, …
    pub percentiles_ms: BTreeMap<String, f64>,
    /// In order: highest value of a bucket in microseconds, and its count.
    pub counts: Vec<(u64, u64)>,
}

impl Distribution {
    /// A named percentile in milliseconds.
    pub fn percentile(&self, name: &str) -> f64 {
        self.percentiles_ms.get(name).copied().unwrap_or_default()
    }

    /// The duration at this quantile in milliseconds.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let wanted = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (micros, count) in &self.counts {
            seen += count;
            if seen >= wanted {
                return *micros as f64 / 1e3;
            }
        }
        self.max_ms
    }

    /// Points (quantile, milliseconds) for a plot of the tail, from the median as far as there are
    /// values.
    pub fn tail(&self, nines: u8) -> Vec<(f64, f64)> {
        if self.count == 0 {
            return Vec::new();
        }
        let most = f64::from(nines).min((self.count as f64).log10());
        let steps = (most * 20.0) as u32;
        (0..=steps).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 20.0)).map(|quantile| (quantile, self.quantile(quantile))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    fn hundred() -> Durations {
        let mut durations = Durations::default();
        (1..=100).for_each(|millis| durations.record(ms(millis)));
        durations
    }

    #[test]
    fn three_digits_are_kept() {
        let durations = hundred();
        let distribution = durations.distribution();
        assert_eq!((distribution.count, durations.sum()), (100, ms(5050)));
        assert!((distribution.percentile("p50") - 50.0).abs() < 0.1, "{distribution:?}");
        assert!((distribution.percentile("p99") - 99.0).abs() < 0.1 && (distribution.max_ms - 100.0).abs() < 0.1);
        assert!((distribution.mean_ms - 50.5).abs() < 1e-9 && (distribution.stdev_ms - 28.866).abs() < 0.001);
        assert_eq!(distribution.counts.iter().map(|(_, count)| count).sum::<u64>(), 100);
    }

    #[test]
    fn the_counts_are_the_whole_histogram() {
        let durations = hundred();
        let distribution = durations.distribution();
        for quantile in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let here = durations.quantile(quantile).as_secs_f64() * 1e3;
            assert!((distribution.quantile(quantile) - here).abs() < 1e-9, "{quantile}: {here}");
        }
        let tail = distribution.tail(4);
        assert_eq!(tail.first().map(|point| point.0), Some(0.0));
        // of 100 values, the quantile 0.99 is the last one that can be shown
        assert!(tail.last().is_some_and(|(quantile, value)| (*quantile - 0.99).abs() < 1e-9 && *value < 100.0), "{tail:?}");
    }

    #[test]
    fn none_and_too_long_ones_are_no_trouble() {
        let mut durations = Durations::default();
        assert_eq!(
            durations.distribution(),
            Distribution { percentiles_ms: durations.distribution().percentiles_ms, ..Distribution::default() }
        );
        assert!(durations.distribution().tail(3).is_empty());
        durations.record(Duration::MAX / 4);
        assert_eq!(durations.count(), 1);
        durations.record(Duration::ZERO);
        assert!(durations.quantile(0.5) <= Duration::from_micros(1));
    }
}
