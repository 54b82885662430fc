//! Sampling of the next token from logits.

use autoact_base::random::SplitMix64;
use serde::{Deserialize, Serialize};

/// Sampling parameters. The same logits, parameters and seed give the same tokens. The random
/// number generator is this project's own, so that this also holds across releases of libraries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// 0: greedy; 1: the model's distribution; larger values flatten it.
    pub temperature: f32,
    /// Only the k most likely tokens; `None` or 0: all.
    pub top_k: Option<usize>,
    /// Nucleus sampling: only the most likely tokens that together reach this probability, after
    /// temperature and `top_k`.
    pub top_p: Option<f32>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Self {
        Self::greedy()
    }
}

impl Sampling {
    /// Always the most likely token.
    pub const fn greedy() -> Self {
        Self { temperature: 0.0, top_k: None, top_p: None, seed: 0 }
    }

    /// Sampling from the model's distribution at `temperature`.
    pub const fn with_temperature(temperature: f32, seed: u64) -> Self {
        Self { temperature, top_k: None, top_p: None, seed }
    }
}

/// Samples the tokens of one sequence.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    settings: Sampling,
    random: SplitMix64,
    /// Candidates of the last sample, kept to reuse the allocation.
    candidates: Vec<(u32, f32)>,
}

impl Sampler {
    pub(crate) fn new(settings: Sampling) -> Self {
        Self { settings, random: SplitMix64::new(settings.seed), candidates: Vec::new() }
    }

    /// Whether sampling is greedy: at a temperature near 0, or if it is NaN.
    fn is_greedy(&self) -> bool {
        self.settings.temperature.is_nan() || self.settings.temperature < 1e-6
    }

    /// Whether a token may be sampled from all logits first, and from the allowed ones only if it
    /// is refused. Each allowed token then has the same probability as with the mask:
    /// `p + (1 - a) p / a = p / a`, where `a` is the total probability of the allowed tokens. This
    /// does not hold for `top_k` and `top_p`, because the mask changes which tokens are the most
    /// likely.
    pub(crate) fn may_draw_first(&self) -> bool {
        self.is_greedy() || self.settings.top_k.is_none_or(|k| k == 0) && self.settings.top_p.is_none_or(|p| p >= 1.0)
    }

    /// The next token; `None` if no logit is finite. Tokens with minus infinity are never chosen.
    /// On equal logits, the lower id is chosen.
    pub(crate) fn sample(&mut self, logits: &[f32]) -> Option<u32> {
        let best = argmax(logits)?;
        let max = logits[best as usize];
        if !max.is_finite() {
            return None;
        }
        if self.is_greedy() {
            return Some(best);
        }
        let inverse = 1.0 / self.settings.temperature;
        self.candidates.clear();
        let weighed = logits.iter().enumerate().map(|(i, l)| (i as u32, ((l - max) * inverse).exp()));
        self.candidates.extend(weighed.filter(|(_, w)| *w > 0.0));
        let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if let Some(k) = self.settings.top_k.filter(|k| *k > 0 && *k < self.candidates.len()) {
            self.candidates.select_nth_unstable_by(k - 1, order);
            self.candidates.truncate(k);
            self.candidates.sort_unstable_by_key(|c| c.0);
        }
        if let Some(p) = self.settings.top_p.filter(|p| *p < 1.0) {
            self.candidates.sort_unstable_by(order);
            let goal = self.total() * f64::from(p.max(0.0));
            let mut sum = 0.0;
            let kept = self.candidates.iter().take_while(|(_, w)| {
                let below = sum < goal;
                sum += f64::from(*w);
                below
            });
            let kept = kept.count().max(1);
            self.candidates.truncate(kept);
        }
        let mut left = self.random.unit() * self.total();
        for (token, weight) in &self.candidates {
            left -= f64::from(*weight);
            if left < 0.0 {
                return Some(*token);
            }
        }
        self.candidates.last().map(|(token, _)| *token)
    }

    fn total(&self) -> f64 {
        self.candidates.iter().map(|(_, w)| f64::from(*w)).sum()
    }
}

/// The index of the largest logit. NaN is never chosen.
fn argmax(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (i, l) in logits.iter().enumerate() {
        if !l.is_nan() && best.is_none_or(|(_, b)| *l > b) {
            best = Some((i, *l));
        }
    }
    best.map(|(i, _)| i as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 6] = [0.0, 2.0, 1.0, f32::NEG_INFINITY, 1.5, -3.0];

    fn draw(settings: Sampling, n: usize) -> Vec<u32> {
        let mut sampler = Sampler::new(settings);
        (0..n).map(|_| sampler.sample(&LOGITS).unwrap()).collect()
    }

    #[test]
    fn seeds_are_pinned() {
        // Computed separately, in Python, from the definition.
        assert_eq!(draw(Sampling::with_temperature(1.0, 42), 12), [4, 1, 1, 1, 0, 4, 1, 4, 1, 2, 1, 1]);
        assert_eq!(draw(Sampling::with_temperature(1.0, 7), 12), [1, 0, 4, 2, 1, 1, 1, 1, 1, 1, 1, 4]);
    }

    #[test]
    fn greedy_takes_the_likeliest() {
        assert_eq!(draw(Sampling::greedy(), 3), [1, 1, 1]);
        assert_eq!(draw(Sampling { top_k: Some(1), ..Sampling::with_temperature(5.0, 1) }, 3), [1, 1, 1]);
        assert_eq!(draw(Sampling { top_p: Some(0.0), ..Sampling::with_temperature(5.0, 1) }, 3), [1, 1, 1]);
    }

    #[test]
    fn limits_hold_and_masked_tokens_never_come() {
        let all = draw(Sampling::with_temperature(2.0, 3), 500);
        assert!(!all.contains(&3) && all.contains(&0) && all.contains(&5));
        let two = draw(Sampling { top_k: Some(2), ..Sampling::with_temperature(2.0, 3) }, 200);
        assert!(two.iter().all(|t| [1, 4].contains(t)));
        // At temperature 1 the two most likely tokens have a probability of 0.70.
        let nucleus = draw(Sampling { top_p: Some(0.6), ..Sampling::with_temperature(1.0, 3) }, 200);
        assert!(nucleus.iter().all(|t| [1, 4].contains(t)));
    }

    #[test]
    fn frequencies_follow_the_distribution() {
        let draws = draw(Sampling::with_temperature(1.0, 9), 20_000);
        let share = draws.iter().filter(|t| **t == 1).count() as f64 / 20_000.0;
        let total: f64 = LOGITS.iter().map(|l| f64::from(*l).exp()).sum();
        assert!((share - 2f64.exp() / total).abs() < 0.01, "{share}");
    }

    #[test]
    fn drawing_first_and_asking_then_changes_no_frequency() {
        let allowed = |token: u32| token.is_multiple_of(2);
        let mut masked = LOGITS;
        masked.iter_mut().zip(0..).filter(|(_, token)| !allowed(*token)).for_each(|(logit, _)| *logit = f32::NEG_INFINITY);
        let mut sampler = Sampler::new(Sampling::with_temperature(1.0, 11));
        assert!(sampler.may_draw_first());
        let mut counts = [0f64; 6];
        for _ in 0..40_000 {
            let first = sampler.sample(&LOGITS).unwrap();
            counts[if allowed(first) { first } else { sampler.sample(&masked).unwrap() } as usize] += 1.0 / 40_000.0;
        }
        let total: f64 = masked.iter().map(|l| f64::from(*l).exp()).sum();
        for (count, logit) in counts.iter().zip(masked) {
            assert!((count - f64::from(logit).exp() / total).abs() < 0.01, "{counts:?}");
        }
        assert!(!Sampler::new(Sampling { top_k: Some(2), ..Sampling::with_temperature(1.0, 1) }).may_draw_first());
        assert!(!Sampler::new(Sampling { top_p: Some(0.9), ..Sampling::with_temperature(1.0, 1) }).may_draw_first());
        assert!(Sampler::new(Sampling { top_p: Some(1.0), top_k: Some(0), ..Sampling::with_temperature(1.0, 1) }).may_draw_first());
    }

    #[test]
    fn no_finite_logit_is_no_token() {
        let mut sampler = Sampler::new(Sampling::greedy());
        assert_eq!(sampler.sample(&[f32::NAN, f32::NEG_INFINITY]), None);
        assert_eq!(sampler.sample(&[]), None);
        assert_eq!(sampler.sample(&[f32::NAN, 0.0]), Some(1));
    }
}
