//! What an approval by the learned group is worth: a calibration fitted on the validation questions,
//! on which no round trains. It is written beside Reflect-Agent's adapter, where services look.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions};
use autoact_registry::CALIBRATION_FILE;
use autoact_score::{Discrimination, FitError, Fitted, Judged, fit, fit_or_approve_none, fit_within_reach, with_options};
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

/// Fewer questions with a certain answer than these do not stand for all.
const FEWEST_CERTAIN: usize = 50;

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
    /// The confidence that an approval needs; `None`: nothing is approved.
    pub threshold: Option<f64>,
    /// The share of right answers that it would approve, on answers that its fit has not seen.
    pub coverage: Option<f64>,
    /// The share of wrong answers that it would not approve, on the same answers.
    #[serde(default)]
    pub caught: Option<f64>,
    /// What a lower precision would approve, where nothing is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<Lower>,
    /// How well confidences tell right answers from wrong ones; `None`: there are too few of either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discrimination: Option<Discrimination>,
    /// Why nothing is approved; empty if something is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A precision that can be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lower {
    /// The precision.
    pub precision: f64,
    /// The confidence for it.
    pub threshold: f64,
    /// The share of right answers that have this confidence.
    pub coverage: f64,
}

/// Fits and installs the calibration of the chosen round's group, whose adapters are loaded. Where no
/// threshold is sure to reach the task's precision, nothing is approved, and the confidence tells the
/// better of two answers. Without evidence there is no calibration, and verdicts alone decide.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn calibrate(work: &Workplace, run: &Run) -> Result<Option<Calibration>, LearnError> {
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let tools = selected(work, run)?;
    let asked = certain(validation_questions(work, database.len()), &database);
    let (mut store, mut records) = Store::<AnswersRecord>::open(&run.path("calibration-answers.jsonl"))?;
    // what a release with other parts wrote is asked again, and what one asked beside is left out
    records.retain(|record| record.answers.iter().all(|answer| answer.evidence.len() == Evidence::PARTS.len()));
    records.retain(|record| asked.contains(&record.id));
    let done: HashSet<usize> = records.iter().map(|record| record.id).collect();
    let todo: Vec<usize> = asked.into_iter().filter(|id| !done.contains(id)).collect();
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
    let fitted = fit_or_approve_none(&judged, precision);
    let report = CalibrationReport::of(records.len(), &judged, precision, &fitted);
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

/// The questions whose answers are certain: those in the form of an example, whose answers the pages
/// decide, and those that have none. An answer that the base wrote to a question of its own may be
/// wrong, and nobody has checked it: with these among them, right answers would count as wrong.
/// Where few questions are certain, all of them.
fn certain(questions: Vec<usize>, database: &[QuestionRecord]) -> Vec<usize> {
    let formed = questions.iter().filter(|id| database[**id].formed).count();
    let is_certain = |id: &usize| formed < FEWEST_CERTAIN || database[*id].formed || database[*id].answer.is_none();
    questions.into_iter().filter(is_certain).collect()
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

impl CalibrationReport {
    fn of(questions: usize, judged: &[Judged], precision: f64, fitted: &Result<Fitted, FitError>) -> CalibrationReport {
        let approving = fitted.as_ref().ok().filter(|fitted| fitted.calibration.threshold < Calibration::NEVER);
        // what a fit that has to reach the precision says
        let why = || fit(judged, precision).err().map(|error| error.to_string()).unwrap_or_default();
        let lower = |fitted: Fitted| {
            let Calibration { precision, threshold, .. } = fitted.calibration;
            Lower { precision, threshold, coverage: approved(judged, &fitted, true) }
        };
        CalibrationReport {
            questions,
            answers: judged.len(),
            precision,
            threshold: approving.map(|fitted| fitted.calibration.threshold),
            coverage: approving.map(|fitted| approved(judged, fitted, true)),
            caught: approving.map(|fitted| 1.0 - approved(judged, fitted, false)),
            lower: approving.map_or_else(|| fit_within_reach(judged, precision).map(lower), |_| None),
            discrimination: fitted.as_ref().ok().and_then(|fitted| discrimination(judged, fitted)),
            why: if approving.is_some() { String::new() } else { why() },
        }
    }
}

/// How well the confidences of a fit tell right answers from wrong ones; `None` if nothing counts in it.
fn discrimination(judged: &[Judged], fitted: &Fitted) -> Option<Discrimination> {
    let mut questions: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for (one, confidence) in judged.iter().zip(&fitted.confidences) {
        questions.entry(&one.question).or_default().push((*confidence, one.right));
    }
    let questions: Vec<Vec<(f64, bool)>> = questions.into_values().collect();
    if fitted.calibration.terms.is_empty() { None } else { Discrimination::of(&questions) }
}

/// The share of the right answers, or of the wrong ones, that the threshold approves.
fn approved(judged: &[Judged], fitted: &Fitted, right: bool) -> f64 {
    let these = || judged.iter().zip(&fitted.confidences).filter(|(one, _)| one.right == right);
    let approved = these().filter(|(one, confidence)| one.approved && **confidence >= fitted.calibration.threshold).count();
    approved as f64 / these().count().max(1) as f64
}

impl fmt::Display for CalibrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        let (Some(threshold), Some(coverage)) = (self.threshold, self.coverage) else {
            write!(f, "nothing is approved, because {}", self.why)?;
            let Some(lower) = &self.lower else { return Ok(()) };
            let (precision, found) = (percent(lower.precision), percent(lower.coverage));
            return write!(
                f,
                "; a confidence of {:.2} reaches {precision} and finds {found} of the right answers: ask with `--min-confidence`, or set \
                 `evaluate.precision`",
                lower.threshold
            );
        };
        let (precision, found) = (percent(self.precision), percent(coverage));
        write!(f, "approval needs a confidence of {threshold:.2}, for {precision} precision; it finds {found} of the right answers ")?;
        write!(f, "to {} validation questions", self.questions)?;
        self.caught.map_or(Ok(()), |caught| write!(f, ", and {} of the wrong ones are not approved", percent(caught)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two answers to each of `questions`; the first is right, and its thoughts are likelier.
    fn judged(questions: usize) -> Vec<Judged> {
        let one = |at: usize| {
            let right = at.is_multiple_of(2);
            let thoughts = if right { -0.1 } else { -1.0 } - 0.001 * at as f64;
            let evidence = Evidence { thoughts, ..Evidence::from_values([0.0; Evidence::PARTS.len()]) };
            Judged { question: (at / 2).to_string(), evidence, approved: true, right }
        };
        (0..2 * questions).map(one).collect()
    }

    #[test]
    fn answers_that_the_base_wrote_to_its_own_questions_are_left_out_where_enough_are_certain() {
        let entry = |at: usize| QuestionRecord {
            question: format!("question {at}"),
            answer: (at % 3 < 2).then(|| "1912".to_owned()),
            formed: at.is_multiple_of(3),
            ..QuestionRecord::default()
        };
        let asked = |count: usize| certain((0..count).collect(), &(0..count).map(entry).collect::<Vec<_>>());
        let free = |id: &usize| id % 3 == 1;
        assert!(!asked(3 * FEWEST_CERTAIN).iter().any(free));
        assert_eq!(asked(3 * FEWEST_CERTAIN).len(), 2 * FEWEST_CERTAIN, "formed ones, and those without an answer");
        let few = 3 * FEWEST_CERTAIN - 3;
        assert_eq!(asked(few), (0..few).collect::<Vec<_>>());
    }

    #[test]
    fn the_discrimination_of_confidences_is_over_questions() {
        let judged = judged(20);
        let found = discrimination(&judged, &fit_or_approve_none(&judged, 0.9).unwrap()).unwrap();
        assert_eq!((found.right, found.wrong, found.auroc.mean, found.caught.mean), (20, 20, 1.0, 1.0));
        // too few of either tell nothing
        let few = &judged[..8];
        assert_eq!(discrimination(few, &fit_or_approve_none(few, 0.9).unwrap()), None);
    }
}
