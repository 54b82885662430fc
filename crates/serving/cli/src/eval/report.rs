//! Scores of an evaluation.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use autoact_kernels::Machine;
use autoact_score::Judged;
use autoact_wire::v1;
use serde_json::json;

use crate::args::EvalOptions;
use crate::eval::approval::{Approval, Rated};
use crate::eval::judgement::{Judgement, judgement_json, of_answer};
use crate::eval::set::EvalQuestion;
use crate::names::reason_name;

/// One question's result.
pub(crate) struct Outcome {
    question: EvalQuestion,
    answer: String,
    approved: bool,
    reason: String,
    exact: bool,
    f1: f64,
    rated: Rated,
    judgements: Vec<Judgement>,
    events: Vec<serde_json::Value>,
    elapsed: Duration,
}

impl Outcome {
    pub(super) fn new(
        question: EvalQuestion,
        finished: &v1::Finished,
        events: Vec<serde_json::Value>,
        judgements: Vec<Judgement>,
        elapsed: Duration,
    ) -> Outcome {
        let no_answer = finished.reason() == v1::FinishReason::NoAnswer;
        let reply = (!no_answer).then_some(finished.answer.as_str());
        let (exact, f1) = question.score(reply);
        let judged = of_answer(&judgements, finished);
        Outcome {
            rated: Rated {
                approved: finished.approved,
                right: exact,
                answerable: question.answer.is_some(),
                no_answer,
                confidence: judged.and_then(|judged| judged.confidence),
                evidence: judged.and_then(|judged| judged.evidence),
            },
            exact,
            judgements,
            f1,
            answer: finished.answer.clone(),
            approved: finished.approved,
            reason: reason_name(finished.reason()),
            question,
            events,
            elapsed,
        }
    }

    fn is_right(&self, judgement: &Judgement) -> bool {
        self.question.score(judgement.answer.as_deref()).0
    }

    /// Its judged answers, for programs.
    fn judgements(&self) -> Vec<serde_json::Value> {
        self.judgements.iter().map(|judgement| judgement_json(judgement, self.is_right(judgement))).collect()
    }

    /// Planning loops, `Finish` included.
    fn rounds(&self) -> usize {
        self.events.iter().filter(|event| event["event"] == "thought").count()
    }
}

/// Rows for people, below the name of what they are labelled by.
fn table(by: &str, rows: BTreeMap<String, Row>, total: Option<&Row>) -> String {
    let width = rows.keys().map(String::len).max().unwrap_or_default().max(10) + 2;
    let mut out = format!("{by:<width$}{:>10}{:>14}{:>8}{:>11}{:>8}\n", "questions", "exact match", "F1", "approved", "rounds");
    for (label, row) in rows.iter().map(|(label, row)| (label.as_str(), row)).chain(total.map(|total| ("all", total))) {
        // writing to a string cannot fail
        let _ = writeln!(
            out,
            "{label:<width$}{:>10}{:>13.1}%{:>8.3}{:>10.1}%{:>8.2}",
            row.count,
            100.0 * row.part(row.exact),
            row.f1 / row.count.max(1) as f64,
            100.0 * row.part(row.approved),
            row.part(row.rounds)
        );
    }
    out
}

/// All results so far.
#[derive(Default)]
pub(crate) struct Report {
    outcomes: Vec<Outcome>,
    pub(crate) elapsed: Duration,
    /// Where this program ran, and the group if it was the same machine.
    pub(crate) machine: Machine,
}

/// Sums over some of the results.
#[derive(Default)]
struct Row {
    count: usize,
    exact: usize,
    f1: f64,
    approved: usize,
    approved_exact: usize,
    rounds: usize,
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        self.count += 1;
        self.exact += usize::from(outcome.exact);
        self.f1 += outcome.f1;
        self.approved += usize::from(outcome.approved);
        self.approved_exact += usize::from(outcome.approved && outcome.exact);
        self.rounds += outcome.rounds();
    }

    fn part(&self, count: usize) -> f64 {
        count as f64 / self.count.max(1) as f64
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "questions": self.count, "exact_match": self.part(self.exact), "f1": self.f1 / self.count.max(1) as f64,
            "approved": self.part(self.approved), "rounds": self.part(self.rounds),
            "precision_of_approval": self.approved_exact as f64 / self.approved.max(1) as f64,
        })
    }
}

impl Report {
    pub(crate) fn push(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    pub(crate) fn exact_match(&self) -> f64 {
        let row = self.total();
        row.part(row.exact)
    }

    /// What approval is worth.
    fn approval(&self) -> Approval {
        Approval::of(&self.outcomes.iter().map(|outcome| outcome.rated).collect::<Vec<_>>())
    }

    /// All judged answers that have evidence.
    pub(super) fn judged(&self) -> Vec<Judged> {
        let judged = |outcome: &Outcome, one: &Judgement| {
            let question = outcome.question.question.clone();
            Some(Judged { question, evidence: one.evidence?, approved: one.approved, right: outcome.is_right(one) })
        };
        // that there is no answer needs no confidence
        let answers = |outcome: &'_ Outcome| -> Vec<Judged> {
            outcome.judgements.iter().filter(|one| one.answer.is_some()).filter_map(|one| judged(outcome, one)).collect()
        };
        self.outcomes.iter().flat_map(answers).collect()
    }

    /// Precision against coverage, as a page; `fitted` are confidences of a new calibration.
    pub(super) fn page(&self, options: &EvalOptions, fitted: Option<&[(f64, bool)]>) -> String {
        let swapped = if options.counterfactual { " on swapped facts" } else { "" };
        let title = format!("Precision of approval against coverage: set {}{swapped}, {} questions", options.set, self.outcomes.len());
        self.approval().page(&title, fitted)
    }

    fn total(&self) -> Row {
        let mut row = Row::default();
        self.outcomes.iter().for_each(|outcome| row.add(outcome));
        row
    }

    /// Sums by the label that `of` gives a question; one without a label is in no row.
    fn rows(&self, of: impl Fn(&EvalQuestion) -> String) -> BTreeMap<String, Row> {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for outcome in &self.outcomes {
            let label = of(&outcome.question);
            if !label.is_empty() {
                rows.entry(label).or_default().add(outcome);
            }
        }
        rows
    }

    fn latency(&self, quantile: f64) -> f64 {
        let mut times: Vec<f64> = self.outcomes.iter().map(|outcome| outcome.elapsed.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let at = ((times.len() as f64 - 1.0) * quantile).round().max(0.0) as usize;
        times.get(at).copied().unwrap_or_default()
    }

    /// For people.
    pub(crate) fn table(&self, options: &EvalOptions) -> String {
        let mut out = format!(
            "set {}{}, {} questions, seed {}, temperature {}, {:.0} s\n\n",
            options.set,
            if options.counterfactual { " on swapped facts" } else { "" },
            self.outcomes.len(),
            options.seed,
            options.temperature,
            self.elapsed.as_secs_f64()
        );
        let total = self.total();
        out.push_str(&table("kind", self.rows(EvalQuestion::label), Some(&total)));
        let forms = self.rows(|question| question.form.clone());
        if !forms.is_empty() {
            let _ = write!(out, "\n{}", table("form", forms, None));
        }
        let _ = writeln!(
            out,
            "\n{}\ntime to the answer with {} at once: median {:.2} s, p95 {:.2} s\nmachine of this program: {}",
            self.approval().text(),
            options.concurrency,
            self.latency(0.5),
            self.latency(0.95),
            self.machine
        );
        out
    }

    /// For programs.
    pub(crate) fn json(&self, options: &EvalOptions) -> serde_json::Value {
        let rows = |rows: BTreeMap<String, Row>| -> serde_json::Map<String, serde_json::Value> {
            rows.iter().map(|(label, row)| (label.clone(), row.json())).collect()
        };
        let kinds = rows(self.rows(EvalQuestion::label));
        let forms = rows(self.rows(|question| question.form.clone()));
        json!({
            "set": options.set, "counterfactual": options.counterfactual, "seed": options.seed, "temperature": options.temperature,
            "concurrency": options.concurrency, "seconds": self.elapsed.as_secs_f64(), "latency_p50_seconds": self.latency(0.5),
            "latency_p95_seconds": self.latency(0.95), "machine": self.machine, "all": self.total().json(), "kinds": kinds, "forms": forms,
            "approval": self.approval().json(),
        })
    }

    /// Every question with what the group did, a JSON object a line.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = String::new();
        for outcome in &self.outcomes {
            let row = json!({
                "id": outcome.question.id, "kind": outcome.question.label(), "form": outcome.question.form, "question": outcome.question.question,
                "gold": outcome.question.answer, "answer": outcome.answer, "exact": outcome.exact, "f1": outcome.f1,
                "approved": outcome.approved, "reason": outcome.reason, "seconds": outcome.elapsed.as_secs_f64(), "judgements": outcome.judgements(),
                "events": outcome.events,
            });
            let _ = writeln!(text, "{row}");
        }
        std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    }
}
