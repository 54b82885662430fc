//! How likely a judged answer is right: a calibrated mix of how sure the agents were of their own
//! words. The verdict alone says little (DESIGN section 12).
//!
//! A [`Calibration`] belongs to the adapters and the base that it was fitted for. The confidence is
//! logistic: `1 / (1 + exp(-(intercept + Σ weight · (value - mean) / deviation)))`. A value is a part
//! of the evidence as the calibration's format counts it ([`Evidence::counted`]).

use serde::{Deserialize, Serialize};

use crate::call::Role;
use crate::fit::Fit;
use crate::next_attempt::NextAttempt;
use crate::usage::Usage;

/// The layout of a stored calibration. Format 1 counts all parts as they are, format 2 the mean
/// log-probabilities on a logarithmic scale, format 3 knows how an answer fits its question, and format
/// 4 how it fits what was read.
pub const CALIBRATION_FORMAT: u32 = 4;

/// The oldest layout that can be used.
const OLDEST_FORMAT: u32 = 1;

/// A log-probability nearer to 0 than this counts as this one.
const SURE: f64 = 1e-6;

/// How sure the agents were when an answer was judged, in natural logarithms, and how it fits its
/// question and what was read ([`Fit`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// ln p(` right`) − ln p(` wrong`) at the verdict.
    pub verdict: f64,
    /// The mean log-probability of a token of Plan-Agent's thoughts.
    pub thoughts: f64,
    /// The lowest mean of one of these thoughts.
    pub lowest_thought: f64,
    /// The mean log-probability of a token of Tool-Agent's inputs.
    pub inputs: f64,
    /// The lowest mean of one of these inputs.
    pub lowest_input: f64,
    /// The mean log-probability of a token of Reflect-Agent's thought.
    pub reflection: f64,
    /// The log-probability of all of Plan-Agent's thoughts together: the more is said, the lower.
    pub all_thoughts: f64,
    /// Whether the answer is of the kind that the question asks for: 1, -1 or, unknown, 0.
    pub answer_kind: f64,
    /// The share of the question's words that the passages have which the answer rests on.
    pub question_covered: f64,
    /// Whether the answer stands in an observation: 1 or 0.
    pub answer_shown: f64,
    /// The share of the attempt's tool calls that found what they asked for.
    pub calls_found: f64,
    /// The share of the thoughts' words that stand in the question or in what was read.
    pub thoughts_grounded: f64,
}

/// Number of parts that are told by the agents' words.
const SAID: usize = 7;

impl Evidence {
    /// The parts' names, in the order of [`values`](Self::values).
    pub const PARTS: [&str; 12] = [
        "verdict",
        "thoughts",
        "lowest_thought",
        "inputs",
        "lowest_input",
        "reflection",
        "all_thoughts",
        "answer_kind",
        "question_covered",
        "answer_shown",
        "calls_found",
        "thoughts_grounded",
    ];

    /// The parts' values.
    pub fn values(&self) -> [f64; Self::PARTS.len()] {
        [
            self.verdict,
            self.thoughts,
            self.lowest_thought,
            self.inputs,
            self.lowest_input,
            self.reflection,
            self.all_thoughts,
            self.answer_kind,
            self.question_covered,
            self.answer_shown,
            self.calls_found,
            self.thoughts_grounded,
        ]
    }

    /// The parts' values as a calibration of `format` counts them.
    pub fn counted(&self, format: u32) -> [f64; Self::PARTS.len()] {
        let mut values = self.values();
        if format != OLDEST_FORMAT {
            // all that is said, but the verdict, are log-probabilities
            values[1..SAID].iter_mut().for_each(|log_prob| *log_prob = sureness(*log_prob));
        }
        values
    }

    /// The evidence with these values, in the order of [`PARTS`](Self::PARTS).
    pub fn from_values(values: [f64; Self::PARTS.len()]) -> Evidence {
        let [verdict, thoughts, lowest_thought, inputs, lowest_input, reflection, all_thoughts, fit @ ..] = values;
        let [answer_kind, question_covered, answer_shown, calls_found, thoughts_grounded] = fit;
        Evidence {
            verdict,
            thoughts,
            lowest_thought,
            inputs,
            lowest_input,
            reflection,
            all_thoughts,
            answer_kind,
            question_covered,
            answer_shown,
            calls_found,
            thoughts_grounded,
        }
    }
}

/// A log-probability `x` as `-ln(-x)`. Most words are sure: their means differ by orders of
/// magnitude, all of which a few unsure ones hide where means are added.
fn sureness(log_prob: f64) -> f64 {
    -(-log_prob).max(SURE).ln()
}

/// What the calls of a task's Plan-Agent and Tool-Agent tell of their certainty so far.
///
/// An attempt after a judged answer repeats much of what was said, and what was said is likely to be
/// said again. So its means count at most what those of the attempts before it did. The sum of all
/// words only falls.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Likelihood {
    thoughts: Words,
    inputs: Words,
}

impl Likelihood {
    /// Takes in what a call of `role` cost.
    pub fn add(&mut self, role: Role, usage: &Usage) {
        match role {
            Role::Plan => self.thoughts.add(usage),
            Role::Tool => self.inputs.add(usage),
            Role::Reflect => {}
        }
    }

    /// An answer was judged: what follows is another attempt.
    pub fn judged(&mut self) {
        self.thoughts.judged();
        self.inputs.judged();
    }

    /// The evidence for an answer that is judged now: with the verdict's log-odds, what the judgement
    /// cost, and how the answer fits. `None` while a part is unknown.
    pub fn evidence(&self, log_odds: Option<f64>, judgement: &Usage, fit: impl FnOnce() -> Fit) -> Option<Evidence> {
        let (thoughts, lowest_thought) = self.thoughts.known()?;
        let all_thoughts = self.thoughts.sum;
        let (inputs, lowest_input) = self.inputs.known()?;
        let (verdict, reflection) = (log_odds?, judgement.mean_log_prob()?);
        let Fit { kind, covered, shown, found, grounded } = fit();
        Some(Evidence {
            verdict,
            thoughts,
            lowest_thought,
            inputs,
            lowest_input,
            reflection,
            all_thoughts,
            answer_kind: kind,
            question_covered: covered,
            answer_shown: shown,
            calls_found: found,
            thoughts_grounded: grounded,
        })
    }
}

/// The log-probabilities of several calls' words.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Words {
    sum: f64,
    tokens: u64,
    lowest: f64,
    /// The lowest of the means at the judgements so far.
    judged: f64,
    /// A call whose log-probabilities are unknown.
    unknown: bool,
}

impl Words {
    fn add(&mut self, usage: &Usage) {
        let Some((sum, mean)) = usage.log_prob.zip(usage.mean_log_prob()) else {
            self.unknown = true;
            return;
        };
        self.sum += sum;
        self.tokens = self.tokens.saturating_add(u64::from(usage.scored_tokens));
        self.lowest = self.lowest.min(mean);
    }

    fn judged(&mut self) {
        if let Some((mean, _)) = self.known() {
            self.judged = mean;
        }
    }

    /// The mean over all tokens, or that of an earlier judgement if it was lower, and the lowest
    /// mean of a call.
    fn known(&self) -> Option<(f64, f64)> {
        // exact for any number of tokens that a task can have
        (!self.unknown && self.tokens > 0).then(|| ((self.sum / self.tokens as f64).min(self.judged), self.lowest))
    }
}

/// What one part of the evidence counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The part: one of [`Evidence::PARTS`].
    pub part: String,
    /// Its mean over the histories that it was fitted on.
    pub mean: f64,
    /// Its standard deviation over them.
    pub deviation: f64,
    /// What a deviation from the mean counts.
    pub weight: f64,
}

/// How evidence becomes a confidence, and the confidence that an approval needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The layout: [`CALIBRATION_FORMAT`], or an older one.
    pub format: u32,
    /// The least confidence that an approval needs.
    pub threshold: f64,
    /// The share of right answers among the approved ones that the threshold was chosen for.
    pub precision: f64,
    /// The log-odds at the means.
    pub intercept: f64,
    /// The parts that count.
    pub terms: Vec<Term>,
    /// How many judged histories it was fitted on.
    pub histories: u32,
    /// What the group is given after a judgement "wrong", where a task does not say.
    #[serde(default, skip_serializing_if = "NextAttempt::continues")]
    pub next_attempt: NextAttempt,
}

/// A calibration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCalibration {
    /// It is not JSON of the known layout.
    #[error("it is no calibration: {0}")]
    Json(String),
    /// A later program wrote it.
    #[error("its format is {0}, expected {OLDEST_FORMAT} to {CALIBRATION_FORMAT}")]
    Format(u32),
    /// A number is out of its range, or none at all.
    #[error("`{field}` is {found}, expected {expected}")]
    Number {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// It uses a part that this program does not know, or one twice.
    #[error("the part `{0}` is unknown or is there twice")]
    Part(String),
}

impl Calibration {
    /// The threshold of a calibration that approves nothing: no confidence is as high.
    pub const NEVER: f64 = 1.0;

    /// Reads a calibration from JSON.
    ///
    /// # Errors
    /// The text is no calibration, or one that makes no sense.
    pub fn parse(json: &str) -> Result<Calibration, InvalidCalibration> {
        let calibration: Calibration = serde_json::from_str(json).map_err(|error| InvalidCalibration::Json(error.to_string()))?;
        calibration.check()?;
        Ok(calibration)
    }

    /// Whether it can be used.
    ///
    /// # Errors
    /// A later layout, numbers that are none, parts that are unknown.
    pub fn check(&self) -> Result<(), InvalidCalibration> {
        if !(OLDEST_FORMAT..=CALIBRATION_FORMAT).contains(&self.format) {
            return Err(InvalidCalibration::Format(self.format));
        }
        let number = |field, found: f64, fits: bool, expected| {
            if fits && found.is_finite() { Ok(()) } else { Err(InvalidCalibration::Number { field, found: found.to_string(), expected }) }
        };
        let share = |number: f64| (0.0..=1.0).contains(&number);
        number("threshold", self.threshold, share(self.threshold), "0 to 1")?;
        number("precision", self.precision, share(self.precision), "0 to 1")?;
        number("intercept", self.intercept, true, "a number")?;
        let mut seen = Vec::new();
        for Term { part, mean, deviation, weight } in &self.terms {
            if !Evidence::PARTS.contains(&part.as_str()) || seen.contains(&part) {
                return Err(InvalidCalibration::Part(part.chars().take(64).collect()));
            }
            seen.push(part);
            number("mean", *mean, true, "a number")?;
            number("deviation", *deviation, *deviation > 0.0, "above 0")?;
            number("weight", *weight, true, "a number")?;
        }
        Ok(())
    }

    /// The probability that the judged answer is right.
    pub fn confidence(&self, evidence: &Evidence) -> f64 {
        let values = evidence.counted(self.format);
        let value = |part: &str| Evidence::PARTS.iter().position(|name| *name == part).map_or(0.0, |at| values[at]);
        let counts = |term: &Term| term.weight * (value(&term.part) - term.mean) / term.deviation;
        let odds = self.intercept + self.terms.iter().map(counts).sum::<f64>();
        // rounding must not reach what no confidence reaches
        (1.0 / (1.0 + (-odds).exp())).min(Self::NEVER - f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calibration() -> Calibration {
        let term = |part: &str, mean, deviation, weight| Term { part: part.to_owned(), mean, deviation, weight };
        let terms = vec![term("thoughts", -0.5, 0.25, 2.0), term("verdict", 1.0, 2.0, 0.5)];
        Calibration {
            format: 1,
            threshold: 0.9,
            precision: 0.97,
            intercept: 1.0,
            terms,
            histories: 100,
            next_attempt: NextAttempt::Continues,
        }
    }

    fn fit() -> Fit {
        Fit { kind: 1.0, covered: 0.25, shown: 1.0, found: 0.5, grounded: 0.75 }
    }

    fn usage(log_prob: f64, scored_tokens: u32) -> Usage {
        Usage { log_prob: Some(log_prob), scored_tokens, ..Usage::default() }
    }

    #[test]
    fn a_confidence_is_logistic() {
        let at_the_means = Evidence { verdict: 1.0, thoughts: -0.5, ..Evidence::from_values([0.0; Evidence::PARTS.len()]) };
        let expected = |odds: f64| 1.0 / (1.0 + (-odds).exp());
        assert!((calibration().confidence(&at_the_means) - expected(1.0)).abs() < 1e-12);
        let surer = Evidence { thoughts: -0.25, verdict: 3.0, ..at_the_means };
        assert!((calibration().confidence(&surer) - expected(3.5)).abs() < 1e-12);
    }

    #[test]
    fn format_two_counts_orders_of_magnitude() {
        let calibration = Calibration { format: 2, ..calibration() };
        let evidence = Evidence::from_values([1.0, -1.0, -2.0, 0.0, -0.01, -1e-9, -20.0, -1.0, 0.5, 1.0, 0.5, 0.25]);
        let [verdict, thoughts, lowest_thought, inputs, lowest_input, reflection, all_thoughts, fit @ ..] = evidence.counted(2);
        assert_eq!((fit, evidence.counted(CALIBRATION_FORMAT)), ([-1.0, 0.5, 1.0, 0.5, 0.25], evidence.counted(2)));
        assert_eq!((verdict, thoughts, inputs, reflection), (1.0, 0.0, -SURE.ln(), -SURE.ln()));
        assert!((lowest_thought + 2.0_f64.ln()).abs() < 1e-12 && (lowest_input - 100.0_f64.ln()).abs() < 1e-12);
        assert!((all_thoughts + 20.0_f64.ln()).abs() < 1e-12);
        // intercept 1 and 2 deviations of 0.25 above the mean of -0.5, each of weight 2
        assert!((calibration.confidence(&evidence) - 1.0 / (1.0 + (-5.0_f64).exp())).abs() < 1e-12);
        assert_eq!(evidence.counted(1), evidence.values());
    }

    #[test]
    fn evidence_is_the_means_and_the_sum_of_words() {
        let mut likelihood = Likelihood::default();
        assert_eq!(likelihood.evidence(Some(1.0), &usage(-1.0, 2), fit), None);
        likelihood.add(Role::Plan, &usage(-4.0, 8));
        likelihood.add(Role::Plan, &usage(-4.0, 2));
        likelihood.add(Role::Tool, &usage(-1.0, 4));
        let evidence = likelihood.evidence(Some(1.5), &usage(-3.0, 6), fit).unwrap();
        assert_eq!(evidence.values(), [1.5, -0.8, -2.0, -0.25, -0.25, -0.5, -8.0, 1.0, 0.25, 1.0, 0.5, 0.75]);
        assert_eq!(likelihood.evidence(None, &usage(-3.0, 6), fit), None);
        assert_eq!(likelihood.evidence(Some(1.5), &Usage::default(), fit), None);
        likelihood.add(Role::Tool, &Usage::default());
        assert_eq!(likelihood.evidence(Some(1.5), &usage(-3.0, 6), fit), None);
    }

    #[test]
    fn a_later_attempt_is_no_surer_than_the_one_before() {
        let mut likelihood = Likelihood::default();
        likelihood.judged();
        let mut attempt = |thought: f64, input: f64| {
            likelihood.add(Role::Plan, &usage(thought, 10));
            likelihood.add(Role::Tool, &usage(input, 10));
            let evidence = likelihood.evidence(Some(1.0), &usage(-1.0, 2), fit).unwrap();
            likelihood.judged();
            (evidence.thoughts, evidence.inputs, evidence.all_thoughts)
        };
        assert_eq!(attempt(-4.0, -1.0), (-0.4, -0.1, -4.0));
        // means of -0.2 and -0.3
        assert_eq!(attempt(0.0, -5.0), (-0.4, -0.3, -4.0));
        // means of -0.4 and -0.2
        assert_eq!(attempt(-8.0, 0.0), (-0.4, -0.3, -12.0));
        assert_eq!(attempt(-8.0, 0.0), (-0.5, -0.3, -20.0));
    }

    #[test]
    fn a_calibration_is_checked() {
        let json = serde_json::to_string(&calibration()).unwrap();
        assert_eq!(Calibration::parse(&json).unwrap(), calibration());
        assert!(matches!(Calibration::parse("{"), Err(InvalidCalibration::Json(_))));
        let checked = |change: fn(&mut Calibration)| {
            let mut changed = calibration();
            change(&mut changed);
            changed.check().unwrap_err()
        };
        assert_eq!(checked(|it| it.format = CALIBRATION_FORMAT + 1), InvalidCalibration::Format(CALIBRATION_FORMAT + 1));
        assert_eq!(checked(|it| it.format = 0), InvalidCalibration::Format(0));
        assert!(matches!(checked(|it| it.threshold = 1.5), InvalidCalibration::Number { field: "threshold", .. }));
        assert!(matches!(checked(|it| it.intercept = f64::NAN), InvalidCalibration::Number { field: "intercept", .. }));
        assert!(matches!(checked(|it| it.terms[0].deviation = 0.0), InvalidCalibration::Number { field: "deviation", .. }));
        assert!(matches!(checked(|it| it.terms[0].part = "mood".into()), InvalidCalibration::Part(_)));
        assert!(matches!(checked(|it| it.terms[0].part = "verdict".into()), InvalidCalibration::Part(_)));
    }

    proptest! {
        #[test]
        fn a_confidence_is_a_probability(values in prop::array::uniform12(-1e6..1e6_f64)) {
            let evidence = Evidence::from_values(values);
            for format in OLDEST_FORMAT..=CALIBRATION_FORMAT {
                let calibration = Calibration { format, ..calibration() };
                prop_assert!((0.0..=1.0).contains(&calibration.confidence(&evidence)));
            }
        }
    }
}
