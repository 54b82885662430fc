//! What an approval by the learned group is worth: a calibration fitted on the validation questions,
//! on which no round trains. It is written beside Reflect-Agent's adapter, where services look.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions};
use autoact_registry::CALIBRATION_FILE;
use autoact_score::{Fitted, Judged, fit_within_reach, with_options};
use autoact_trajectory::{Calibration, Evidence, JudgedAnswers, NextAttempt};
use serde::{Deserialize, Serialize};

use crate::differentiate::validation_questions;
use crate::error::LearnError;
use crate::iterate::chosen;
use crate::records::QuestionRecord;
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{Store, read, read_json, write_json};
use crate::synthesize::selected;
use crate::workplace::Workplace;

/// `calibration-answers.jsonl`: the judged answers to one validation question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AnswersRecord {
    /// The question's number.
    id: usize,
    /// Its answers. Those that there is none need no confidence and are left out.
    answers: Vec<AnswerRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct AnswerRecord {
    /// The answer.
    answer: String,
    /// The verdict.
    approved: bool,
    /// Whether it is right by the task's measure.
    right: bool,
    /// The parts of the evidence, in the order of [`Evidence::PARTS`].
    evidence: Vec<f64>,
}

/// `calibrated.json`: what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationReport {
    /// Number of validation questions asked.
    pub questions: usize,
    /// Number of judged answers with evidence.
    pub answers: usize,
    /// The share of approved answers that is to be right.
    pub precision: f64,
    /// The share that the threshold was chosen for: less where no threshold reaches what is asked
    /// for. `None`: there is no calibration.
    #[serde(default)]
    pub reached: Option<f64>,
    /// The confidence that an approval needs; `None`: there is no calibration.
    pub threshold: Option<f64>,
    /// The share of right answers that it would approve, on answers that its fit has not seen.
    pub coverage: Option<f64>,
    /// The share of wrong answers that it would not approve, on the same answers.
    #[serde(default)]
    pub caught: Option<f64>,
    /// Why there is none; empty if there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Fits and installs the calibration of the chosen round's group, whose adapters are loaded: for the
/// precision of the task, or for less where no threshold reaches it, because a confidence also tells
/// the better of two answers. If none can be fitted, there is none, and verdicts alone decide.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn calibrate(work: &Workplace, run: &Run) -> Result<Option<Calibration>, LearnError> {
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let tools = selected(work, run)?;
    let (mut store, mut records) = Store::<AnswersRecord>::open(&run.path("calibration-answers.jsonl"))?;
    // what a release with other parts wrote is asked again
    records.retain(|record| record.answers.iter().all(|answer| answer.evidence.len() == Evidence::PARTS.len()));
    let done: HashSet<usize> = records.iter().map(|record| record.id).collect();
    let todo: Vec<usize> = validation_questions(work, database.len()).into_iter().filter(|id| !done.contains(id)).collect();
    let voices = chosen(run)?.group();
    // a group that has learned nothing of what follows a rejection is better off without it
    let next_attempt = if work.task.settings.differentiate.retried { NextAttempt::Continues } else { NextAttempt::Anew };
    work.view.begin(Stage::Evaluate, "calibration", records.len() as u64, (records.len() + todo.len()) as u64);
    work.pool()?.each(
        &todo,
        &work.stop,
        |id, backend| {
            let entry = &database[*id];
            let question = with_options(&entry.question, &entry.options);
            let group = LocalGroup::new(Arc::clone(backend), Arc::clone(&work.library), voices.clone());
            let (_, log) =
                group.run_logged(&question, &tools, &RunOptions { next_attempt: Some(next_attempt), ..RunOptions::default() })?;
            let mut judged = JudgedAnswers::default();
            log.events.iter().for_each(|event| judged.take(event));
            let answers = judged.into_all().into_iter().filter_map(|one| {
                let (answer, evidence) = (one.answer?, one.evidence?.values().to_vec());
                let right = work.task.metric.score(&question, Some(&answer), entry.answer.as_deref()).0;
                evidence.iter().all(|value| value.is_finite()).then_some(AnswerRecord { answer, approved: one.approved, right, evidence })
            });
            Ok(AnswersRecord { id: *id, answers: answers.collect() })
        },
        |_, record| {
            store.push(&record)?;
            records.push(record);
            work.view.advance(records.len() as u64, "");
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Evaluate)?;
    // whatever the order in which the questions were answered
    records.sort_by_key(|record| record.id);
    let of = |record: &AnswersRecord| -> Vec<Judged> {
        let question = record.id.to_string();
        let judged = |one: &AnswerRecord| {
            let evidence = Evidence::from_values(one.evidence.as_slice().try_into().ok()?);
            Some(Judged { question: question.clone(), evidence, approved: one.approved, right: one.right })
        };
        record.answers.iter().filter_map(judged).collect()
    };
    let judged: Vec<Judged> = records.iter().flat_map(of).collect();
    let precision = work.task.settings.evaluate.precision;
    let fitted = fit_within_reach(&judged, precision);
    let report = CalibrationReport {
        questions: records.len(),
        answers: judged.len(),
        precision,
        reached: fitted.as_ref().ok().map(|fitted| fitted.calibration.precision),
        threshold: fitted.as_ref().ok().map(|fitted| fitted.calibration.threshold),
        coverage: fitted.as_ref().ok().map(|fitted| approved(&judged, fitted, true)),
        caught: fitted.as_ref().ok().map(|fitted| 1.0 - approved(&judged, fitted, false)),
        why: fitted.as_ref().err().map(ToString::to_string).unwrap_or_default(),
    };
    work.view.end(&report.to_string());
    let calibration = fitted.ok().map(|fitted| Calibration { next_attempt, ..fitted.calibration });
    let path = run.path(&format!("adapters/reflect/{CALIBRATION_FILE}"));
    match &calibration {
        Some(calibration) => write_json(&path, calibration)?,
        None => forget(run)?,
    }
    write_json(&run.path("calibrated.json"), &report)?;
    Ok(calibration)
}

/// Removes the calibration of other adapters.
///
/// # Errors
/// The file cannot be removed.
pub(crate) fn forget(run: &Run) -> Result<(), LearnError> {
    let path = run.path(&format!("adapters/reflect/{CALIBRATION_FILE}"));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LearnError::io("remove", &path)(error)),
        _ => Ok(()),
    }
}

/// What came of the calibration of a run, if it got that far.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn calibrated(run: &Run) -> Result<Option<CalibrationReport>, LearnError> {
    read_json(&run.path("calibrated.json"))
}

/// The share of the right answers, or of the wrong ones, that the threshold approves.
fn approved(judged: &[Judged], fitted: &Fitted, right: bool) -> f64 {
    let these = || judged.iter().zip(&fitted.confidences).filter(|(one, _)| one.right == right);
    let approved = these().filter(|(one, confidence)| one.approved && **confidence >= fitted.calibration.threshold).count();
    approved as f64 / these().count().max(1) as f64
}

impl fmt::Display for CalibrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.threshold, self.coverage) {
            (Some(threshold), Some(coverage)) => {
                let reached = self.reached.unwrap_or(self.precision);
                write!(f, "approval needs a confidence of {threshold:.2}, for {:.0}% precision", 100.0 * reached)?;
                if reached < self.precision {
                    write!(f, " ({:.0}% is out of reach)", 100.0 * self.precision)?;
                }
                write!(f, "; it finds {:.0}% of the right answers to {} validation questions", 100.0 * coverage, self.questions)?;
                self.caught.map_or(Ok(()), |caught| write!(f, ", and {:.0}% of the wrong ones are not approved", 100.0 * caught))
            }
            _ => write!(f, "no calibration, so verdicts alone decide: {}", self.why),
        }
    }
}
