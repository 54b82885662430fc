//! Arrival times, computed before the load, so that the group cannot delay an arrival.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use autoact_base::random::Rng;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;

/// Maximum number of arrivals; more would fit neither into a report nor into a day.
const MOST_ARRIVALS: usize = 10_000_000;
/// Maximum rate per second. Above it, the client itself is the bottleneck.
const MOST_RATE: f64 = 100_000.0;

/// The distribution of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// A Poisson process, as independent users arrive: exponential gaps.
    #[default]
    Poisson,
    /// Constant gaps.
    Constant,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        })
    }
}

/// An unknown distribution of arrivals.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not known; expected `poisson` or `constant`")]
pub struct UnknownArrivals(String);

impl FromStr for Arrivals {
    type Err = UnknownArrivals;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "poisson" => Ok(Arrivals::Poisson),
            "constant" => Ok(Arrivals::Constant),
            other => Err(UnknownArrivals(other.to_owned())),
        }
    }
}

/// The arrival times since the start of a load, in order. The same settings give the same schedule.
pub fn schedule(arrivals: Arrivals, rate: f64, duration: Duration, seed: u64) -> Result<Vec<Duration>, LoadError> {
    if !(rate > 0.0 && rate <= MOST_RATE) {
        return Err(LoadError::Rate(rate));
    }
    let expected = rate * duration.as_secs_f64();
    if expected > MOST_ARRIVALS as f64 {
        return Err(LoadError::Long { rate, duration, most: MOST_ARRIVALS });
    }
    let end = duration.as_secs_f64();
    let mut random = Rng::new(seed);
    let mut times = Vec::with_capacity(expected as usize + 16);
    let mut at = match arrivals {
        Arrivals::Poisson => random.exponential() / rate,
        Arrivals::Constant => 0.0,
    };
    while at < end {
        times.push(Duration::from_secs_f64(at));
        at = match arrivals {
            Arrivals::Poisson => at + random.exponential() / rate,
            // by multiplication, because a sum of gaps would drift
            Arrivals::Constant => times.len() as f64 / rate,
        };
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poisson(seed: u64) -> Vec<Duration> {
        schedule(Arrivals::Poisson, 20.0, Duration::from_secs(1000), seed).unwrap()
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_independent_ones() {
        let times = poisson(7);
        // 20000 expected, with a standard deviation of 141
        assert!((19_500..20_500).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.05).abs() < 0.002, "{mean}");
        // the standard deviation of an exponential distribution equals its mean
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
        assert!(gaps.iter().all(|gap| *gap >= 0.0));
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(poisson(7), poisson(7));
        assert_ne!(poisson(7), poisson(8));
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let times = schedule(Arrivals::Constant, 3.0, Duration::from_secs(100), 0).unwrap();
        assert_eq!((times.len(), times[0], times[297]), (300, Duration::ZERO, Duration::from_secs(99)));
    }

    #[test]
    fn a_rate_that_is_none_is_an_error() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(matches!(schedule(Arrivals::Poisson, rate, Duration::from_secs(1), 0), Err(LoadError::Rate(_))), "{rate}");
        }
        assert!(matches!(schedule(Arrivals::Poisson, 1e5, Duration::from_secs(1000), 0), Err(LoadError::Long { .. })));
        assert!("uniform".parse::<Arrivals>().is_err());
        assert_eq!(Arrivals::Poisson.to_string().parse::<Arrivals>().unwrap(), Arrivals::Poisson);
    }
}
