//! The bounds of a task and how its models decode.

use std::time::Duration;

/// Three attempts of six steps each. The paper lets its agents take ten steps.
const MAX_STEPS: u32 = 18;
/// Each further attempt brings less: `docs/evaluation.md`, "Another attempt".
const MAX_REFLECTIONS: u32 = 3;
/// About twelve steps with a long thought and long parameters each.
const MAX_TOKENS: u32 = 4096;
/// A person waits at the other end.
const MAX_TIME: Duration = Duration::from_secs(120);

/// The bounds of one task, every one with its value. Zero is a bound like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Planning loops.
    pub max_steps: u32,
    /// Verdicts "wrong" after which the best answer so far comes back unapproved.
    pub max_reflections: u32,
    /// Completion tokens over all agents.
    pub max_tokens: u32,
    /// From the moment a gateway first took the task up: waiting in the queue does not count.
    pub max_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_steps: MAX_STEPS, max_reflections: MAX_REFLECTIONS, max_tokens: MAX_TOKENS, max_time: MAX_TIME }
    }
}

/// How the agents' models decode in a task.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sampling {
    /// 0: greedy.
    pub temperature: f32,
    /// 0: off.
    pub top_k: u32,
    /// 0 or 1: off.
    pub top_p: f32,
    /// The same seed gives the same trajectory over the same corpus.
    pub seed: u64,
}

/// A sampling parameter outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` is `{value}`; expected {expected}")]
pub struct InvalidSampling {
    /// The field in `SamplingParams`.
    pub field: &'static str,
    /// What came.
    pub value: f32,
    /// The range.
    pub expected: &'static str,
}

impl Sampling {
    /// The settings, if each is within its range.
    ///
    /// # Errors
    /// Names the first parameter that is not.
    pub fn checked(self) -> Result<Sampling, InvalidSampling> {
        let Sampling { temperature, top_p, .. } = self;
        if !(0.0..=10.0).contains(&temperature) {
            return Err(InvalidSampling { field: "temperature", value: temperature, expected: "0 to 10" });
        }
        if !(0.0..=1.0).contains(&top_p) {
            return Err(InvalidSampling { field: "top_p", value: top_p, expected: "0 to 1" });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_has_ranges() {
        for (temperature, top_p) in [(f32::NAN, 0.0), (-1.0, 0.0), (0.0, 1.5), (f32::INFINITY, 0.0)] {
            let sampling = Sampling { temperature, top_p, ..Sampling::default() };
            assert!(sampling.checked().is_err(), "{temperature} {top_p}");
        }
    }
}
