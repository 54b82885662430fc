//! What approval and confidence are worth, over the answers of an evaluation.

use std::fmt::Write as _;

use autoact_plot::{Axis, Page, Plot, Series};
use autoact_score::{Bootstrap, Interval, auroc, calibration_error, curve, precision_covering};
use autoact_trajectory::Evidence;
use serde_json::{Map, Value, json};

use super::compare::table::{fraction, percent};

/// The coverages at which the precision is told, whatever threshold the group has: groups with
/// different ones are compared by it.
const COVERAGES: [f64; 3] = [0.8, 0.85, 0.9];

/// One question's answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rated {
    pub(super) approved: bool,
    pub(super) right: bool,
    /// Whether the question has an answer.
    pub(super) answerable: bool,
    /// The group said that there is none.
    pub(super) no_answer: bool,
    pub(super) confidence: Option<f64>,
    pub(super) evidence: Option<Evidence>,
}

/// A number for each of some answers, and whether they are right.
type Scored = Vec<(f64, bool)>;

/// The measures, with 95% bootstrap intervals over questions.
pub(super) struct Approval {
    /// Fraction of the answers that were approved. All zero without answers.
    pub(super) share: Interval,
    /// Fraction of the approved answers that are right.
    pub(super) precision: Option<Interval>,
    /// Fraction of the right answers that were approved.
    pub(super) coverage: Option<Interval>,
    /// Fraction of the wrong answers that were not approved.
    caught: Option<Interval>,
    /// Of the questions that have an answer, the fraction whose right answer was approved.
    answered: Option<Interval>,
    /// Of the questions that have an answer, the fraction where the group said that there is none.
    given_up: Option<Interval>,
    /// Of the questions without an answer, the fraction where the group said so.
    not_found: Option<Interval>,
    /// Of the questions without an answer, the fraction that got an approved answer.
    made_up: Option<Interval>,
    /// Answers with a confidence.
    confidences: Scored,
    /// Per part of the evidence: its value for each answer that has evidence.
    parts: Vec<(&'static str, Scored)>,
}

fn share(flags: impl Iterator<Item = bool>) -> Option<Interval> {
    let values: Vec<f64> = flags.map(|flag| f64::from(u8::from(flag))).collect();
    (!values.is_empty()).then(|| Bootstrap::default().mean(&values))
}

/// The precision that a threshold with at least this coverage would have, with its interval.
fn precise(scored: &[(f64, bool)], coverage: f64) -> Option<Interval> {
    Bootstrap::default().statistic(scored, |scored| precision_covering(coverage, scored))
}

/// AUROC with its interval.
pub(super) fn ranked(scored: &[(f64, bool)]) -> Option<Interval> {
    Bootstrap::default().statistic(scored, auroc)
}

impl Approval {
    pub(super) fn of(rated: &[Rated]) -> Approval {
        // a confidence is that of an answer: that there is none needs no confidence
        let answers = || rated.iter().filter(|one| !one.no_answer);
        let part = |(at, name): (usize, &&'static str)| {
            let scored = answers().filter_map(|one| Some((one.evidence?.values()[at], one.right))).collect();
            (*name, scored)
        };
        Approval {
            share: share(rated.iter().map(|one| one.approved)).unwrap_or(Interval { mean: 0.0, low: 0.0, high: 0.0 }),
            precision: share(rated.iter().filter(|one| one.approved).map(|one| one.right)),
            coverage: share(rated.iter().filter(|one| one.right && one.answerable).map(|one| one.approved)),
            caught: share(answers().filter(|one| !one.right).map(|one| !one.approved)),
            answered: share(rated.iter().filter(|one| one.answerable).map(|one| one.approved && one.right)),
            given_up: share(rated.iter().filter(|one| one.answerable).map(|one| one.no_answer)),
            not_found: share(rated.iter().filter(|one| !one.answerable).map(|one| one.no_answer)),
            made_up: share(rated.iter().filter(|one| !one.answerable).map(|one| one.approved)),
            confidences: answers().filter_map(|one| Some((one.confidence?, one.right))).collect(),
            parts: Evidence::PARTS.iter().enumerate().map(part).collect(),
        }
    }

    /// How many answers have evidence.
    fn with_evidence(&self) -> usize {
        self.parts.first().map_or(0, |(_, scored)| scored.len())
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let or_dash = |interval: &Option<Interval>, show: fn(&Interval) -> String| interval.as_ref().map_or_else(|| "–".to_owned(), show);
        let mut out = format!(
            "{:<24}{}\n{:<24}{}  approved answers that are right\n{:<24}{}  right answers that are approved\n{:<24}{}  wrong answers that are not approved\n",
            "approved",
            percent(&self.share),
            "precision of approval",
            or_dash(&self.precision, percent),
            "coverage",
            or_dash(&self.coverage, percent),
            "caught",
            or_dash(&self.caught, percent)
        );
        // writing to a string cannot fail
        if self.not_found.is_some() {
            let lines = [
                ("answered", &self.answered, "questions with an answer whose right answer is approved"),
                ("given up", &self.given_up, "questions with an answer that got \"not found\""),
                ("not found", &self.not_found, "questions without an answer that got \"not found\""),
                ("made up", &self.made_up, "questions without an answer that got an approved one"),
            ];
            for (name, interval, what) in lines {
                let _ = writeln!(out, "{name:<24}{}  {what}", or_dash(interval, percent));
            }
        }
        if self.confidences.is_empty() {
            let _ = writeln!(out, "{:<24}uncalibrated", "confidence");
        } else {
            let error = calibration_error(&self.confidences).unwrap_or_default();
            let ranked = or_dash(&ranked(&self.confidences), fraction);
            let _ = writeln!(out, "{:<24}AUROC {ranked}, calibration error {error:.3}, {} answers", "confidence", self.confidences.len());
            for coverage in COVERAGES {
                let name = format!("precision at {:.0}%", 100.0 * coverage);
                let precision = or_dash(&precise(&self.confidences, coverage), percent);
                let _ = writeln!(out, "{name:<24}{precision}  if the threshold covered so many right answers");
            }
        }
        if self.with_evidence() > 0 {
            let _ = writeln!(out, "\n{:<24}AUROC, {} answers", "part of the evidence", self.with_evidence());
            for (name, scored) in &self.parts {
                let _ = writeln!(out, "{:<24}{}", name.replace('_', " "), or_dash(&ranked(scored), fraction));
            }
        }
        out
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let parts: Map<String, Value> = self.parts.iter().map(|(name, scored)| ((*name).to_owned(), json!(ranked(scored)))).collect();
        json!({
            "approved": self.share, "precision": self.precision, "coverage": self.coverage, "caught": self.caught,
            "answered": self.answered, "given_up": self.given_up, "not_found": self.not_found, "made_up": self.made_up,
            "confidence": (!self.confidences.is_empty()).then(|| json!({
                "answers": self.confidences.len(), "auroc": ranked(&self.confidences),
                "calibration_error": calibration_error(&self.confidences),
                "precision_at": COVERAGES.map(|coverage| json!({ "coverage": coverage, "precision": precise(&self.confidences, coverage) })),
            })),
            "evidence": (self.with_evidence() > 0).then(|| json!({ "answers": self.with_evidence(), "auroc": parts })),
        })
    }

    /// Precision against coverage, as a page; `fitted` are the confidences of a calibration that
    /// was just fitted, of answers that it has not seen.
    pub(super) fn page(&self, title: &str, fitted: Option<&[(f64, bool)]>) -> String {
        let mut page = Page::new(title);
        page.note(
            "Each point of a line is a threshold. Coverage: the fraction of the right answers that are above it. Precision: the \
             fraction of the answers above it that are right. Verdicts are left out: every judged answer counts.",
        );
        let line = |name: &str, scored: &[(f64, bool)]| {
            Series::new(name, curve(scored).into_iter().map(|point| (100.0 * point.coverage, 100.0 * point.precision)))
        };
        let axes =
            |title: &str| Plot::new(title, Axis::linear("coverage, %").range(0.0, 100.0), Axis::linear("precision, %").range(0.0, 100.0));
        let mut confidence = axes("confidence").size(640.0, 320.0);
        if !self.confidences.is_empty() {
            confidence = confidence.with(line("confidence", &self.confidences).bold());
        }
        if let Some(fitted) = fitted {
            confidence = confidence.with(line("fitted now, by a fit without the answer's fold", fitted).bold());
        }
        page.section("Confidence");
        if self.confidences.is_empty() && fitted.is_none() {
            page.say("Uncalibrated: no answer has a confidence.");
        } else {
            page.push(&confidence.svg());
        }
        if self.with_evidence() > 0 {
            page.section("Parts of the evidence");
            page.plots(self.parts.iter().map(|(name, scored)| {
                let name = name.replace('_', " ");
                axes(&name).with(line(&name, scored).bold()).svg()
            }));
        }
        page.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(approved: bool, right: bool, sure: Option<f64>) -> Rated {
        let evidence =
            sure.map(|sure| Evidence { verdict: -sure, lowest_thought: 0.0, ..Evidence::from_values([sure; Evidence::PARTS.len()]) });
        Rated { approved, right, answerable: true, no_answer: false, confidence: sure, evidence }
    }

    #[test]
    fn approval_is_measured() {
        let all =
            [rated(true, true, Some(0.9)), rated(true, true, Some(0.8)), rated(true, false, Some(0.3)), rated(false, true, Some(0.5))];
        let approval = Approval::of(&all);
        let json = approval.json();
        let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-12;
        assert!(near(&json["approved"]["mean"], 0.75) && near(&json["precision"]["mean"], 2.0 / 3.0), "{json}");
        assert!(near(&json["coverage"]["mean"], 2.0 / 3.0) && near(&json["confidence"]["auroc"]["mean"], 1.0), "{json}");
        assert!(
            near(&json["evidence"]["auroc"]["verdict"]["mean"], 0.0) && near(&json["evidence"]["auroc"]["lowest_thought"]["mean"], 0.5)
        );
        let text = approval.text();
        assert!(text.contains("AUROC 1.000 [1.000, 1.000], calibration error 0.275, 4 answers"), "{text}");
        // all right answers are above the wrong one
        let precise = &json["confidence"]["precision_at"][1];
        assert!(near(&precise["coverage"], 0.85) && near(&precise["precision"]["mean"], 1.0), "{json}");
        assert!(text.lines().any(|line| line.starts_with("precision at 85%") && line.contains("100.0%")), "{text}");
        let page = approval.page("t", None);
        assert!(page.contains("coverage, %") && !page.contains("Uncalibrated"), "{page}");
    }

    #[test]
    fn questions_without_an_answer_are_counted_apart() {
        let unanswerable = |approved, no_answer| Rated { answerable: false, no_answer, ..rated(approved, no_answer, None) };
        let given_up = Rated { no_answer: true, ..rated(false, false, None) };
        let all = [rated(true, true, None), given_up, unanswerable(true, false), unanswerable(false, true), unanswerable(false, false)];
        let json = Approval::of(&all).json();
        let near = |name: &str, expected: f64| (json[name]["mean"].as_f64().unwrap() - expected).abs() < 1e-12;
        assert!(near("precision", 0.5) && near("coverage", 1.0) && near("answered", 0.5) && near("given_up", 0.5), "{json}");
        assert!(near("not_found", 1.0 / 3.0) && near("made_up", 1.0 / 3.0), "{json}");
        let text = Approval::of(&all).text();
        assert!(text.lines().any(|line| line.starts_with("made up") && line.contains("33.3%")), "{text}");
    }

    #[test]
    fn nothing_is_made_up() {
        let approval = Approval::of(&[rated(false, false, None)]);
        let json = approval.json();
        assert!(
            ["precision", "coverage", "not_found", "made_up", "confidence", "evidence"].iter().all(|name| json[*name].is_null()),
            "{json}"
        );
        assert!(approval.text().contains("uncalibrated\n") && !approval.text().contains("evidence"), "{}", approval.text());
        assert!(approval.page("t", None).contains("Uncalibrated"));
        assert_eq!(Approval::of(&[]).json()["approved"]["mean"], 0.0);
    }
}
