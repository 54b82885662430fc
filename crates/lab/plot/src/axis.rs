//! Axes: positions of values and ticks.

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
    /// For quantiles: 0.9, 0.99 and 0.999 have equal distances.
    Tail,
}

/// An axis with its name and range.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) name: String,
    scale: Scale,
    low: f64,
    high: f64,
    unit: fn(f64) -> String,
    fixed: bool,
}

impl Axis {
    /// A linear axis from 0 to the largest value.
    pub fn linear(name: &str) -> Axis {
        Axis { name: name.to_owned(), scale: Scale::Linear, low: 0.0, high: 0.0, unit: number, fixed: false }
    }

    /// A logarithmic axis from the smallest to the largest value.
    pub fn log(name: &str) -> Axis {
        Axis { scale: Scale::Log, low: f64::INFINITY, ..Axis::linear(name) }
    }

    /// An axis of quantiles from 0 to `1 - 10^-nines`.
    pub fn tail(name: &str, nines: u8) -> Axis {
        let high = f64::from(nines.clamp(1, 6));
        Axis { scale: Scale::Tail, high, fixed: true, ..Axis::linear(name) }
    }

    /// Sets the function that formats labels.
    #[must_use]
    pub fn unit(mut self, unit: fn(f64) -> String) -> Axis {
        self.unit = unit;
        self
    }

    /// Sets a fixed range, independent of the values.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Axis {
        (self.low, self.high, self.fixed) = (low, high, true);
        self
    }

    /// Extends the range to include values.
    pub(crate) fn show(&mut self, values: impl IntoIterator<Item = f64>) {
        if self.fixed {
            return;
        }
        for value in values.into_iter().filter(|value| value.is_finite() && (self.scale != Scale::Log || *value > 0.0)) {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    /// The relative position of a value: 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => {
                let (low, high) = self.decades();
                (value.max(f64::MIN_POSITIVE) / low).ln() / (high / low).ln()
            }
            Scale::Tail => nines(value) / self.high,
        };
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The range of a logarithmic axis, extended to ticks.
    fn decades(&self) -> (f64, f64) {
        let below = |value: f64| {
            let power = 10f64.powf(value.log10().floor());
            [5.0, 2.0, 1.0].into_iter().map(|one| one * power).find(|tick| *tick <= value * 1.001).unwrap_or(power)
        };
        let above = |value: f64| {
            let power = 10f64.powf(value.log10().floor());
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|tick| *tick >= value * 0.999).unwrap_or(10.0 * power)
        };
        let (low, high) = (below(self.low), above(self.high));
        if high > low { (low, high) } else { (low, 10.0 * low) }
    }

    /// The ticks with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let values: Vec<f64> = match self.scale {
            Scale::Tail => (0..=self.high as u32).map(|nines| 1.0 - 0.1f64.powi(nines.cast_signed())).collect(),
            Scale::Log if self.low > 0.0 && self.high >= self.low => {
                let (low, high) = self.decades();
                ticks(low, high)
            }
            Scale::Linear if self.high > self.low => steps(self.low, self.high),
            _ => vec![self.low].into_iter().filter(|low| low.is_finite()).collect(),
        };
        values.into_iter().map(|value| (self.place(value), (self.unit)(value))).collect()
    }
}

/// The number of nines of a quantile: 2 for 0.99.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|one| one * power).find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    (0..8).map(|at| (first + f64::from(at)) * step).take_while(|value| *value <= high * (1.0 + 1e-9)).collect()
}

fn ticks(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    // over many decades, only powers of ten
    let few = to - from <= 3;
    let within = |value: &f64| *value >= low * 0.999 && *value <= high * 1.001;
    let all = (from..=to).flat_map(|power| [1.0, 2.0, 5.0].into_iter().map(move |one| (one, one * 10f64.powi(power))));
    all.filter(|(one, value)| within(value) && (few || *one == 1.0)).map(|(_, value)| value).collect()
}

/// A number with up to four decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_within_the_axis_at_round_values() {
        let mut axis = Axis::linear("x");
        axis.show([3.0, 97.0, f64::NAN]);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "50"]);
        let mut axis = Axis::log("x");
        axis.show([0.5, 4000.0, 0.0, -1.0]);
        assert!(axis.ticks().iter().all(|(place, _)| (0.0..=1.0).contains(place)), "{:?}", axis.ticks());
        assert!(axis.place(0.5).abs() < 1e-9 && axis.place(4000.0) > 0.9);
        // also if no power of ten is near
        let mut axis = Axis::log("x");
        axis.show([22.0, 38.0]);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["20", "50"]);
    }

    #[test]
    fn quantiles_stand_by_their_nines() {
        let axis = Axis::tail("quantile", 3);
        let places: Vec<f64> = [0.0, 0.9, 0.99, 0.999, 1.0].into_iter().map(|quantile| (axis.place(quantile) * 300.0).round()).collect();
        assert_eq!(places, [0.0, 100.0, 200.0, 300.0, 300.0]);
    }

    #[test]
    fn an_axis_without_values_is_no_trouble() {
        for mut axis in [Axis::linear("x"), Axis::log("x")] {
            axis.show([]);
            assert!(axis.place(1.0).is_finite());
            assert!(axis.ticks().iter().all(|(place, label)| place.is_finite() && !label.contains("NaN") && !label.contains("inf")));
            axis.show([2.0]);
            assert!(axis.place(2.0).is_finite());
        }
    }
}
