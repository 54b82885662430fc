//! `report.json`: the results in numbers, computed from the files of the run directory alone.

use std::collections::BTreeMap;

use autoact_score::{Bootstrap, Interval, Verdicts};
use serde::{Deserialize, Serialize};

use crate::calibrate::{CalibrationReport, calibrated};
use crate::error::LearnError;
use crate::evaluate::rows;
use crate::iterate::{GROUP, Iterated};
use crate::keep::Kept;
use crate::records::{
    AnswerRecord, CurvePoint, DocumentRecord, JudgementRecord, QuestionRecord, ReflectionRecord, RejectedRecord, Selection,
    TrajectoryRecord,
};
use crate::round::Round;
use crate::row::{AUTOACT, BASE, ONE_ROUND, Row};
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{read, read_json};
use crate::train::Trained;
use crate::variants;
use crate::workplace::Workplace;

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The task's name.
    pub task: String,
    /// Its description.
    pub description: String,
    /// The base model's directory.
    pub model: String,
    /// SHA-256 digest (hex) of the base's weights.
    pub base_digest: String,
    /// The run directory.
    pub run: String,
    /// Self-instruct.
    pub instruct: InstructReport,
    /// Tool selection.
    pub selection: Option<Selection>,
    /// Synthesis and reward filter.
    pub filter: Option<Kept>,
    /// Steps and tokens of the trajectories.
    pub synthesis: SynthesisReport,
    /// The meta-agent's judgements.
    pub reflect: ReflectReport,
    /// Number of documents by data set.
    pub documents: BTreeMap<String, usize>,
    /// The training runs.
    pub training: Vec<Trained>,
    /// Their loss curves, by adapter.
    pub curves: BTreeMap<String, Vec<CurvePoint>>,
    /// Results of further rounds on the validation questions.
    pub iterated: Option<Iterated>,
    /// The rows of the results table on the evaluation questions.
    pub evaluation: Vec<RowReport>,
    /// Difference in exact match between the installed group and the base over the same questions,
    /// with its 95% confidence interval.
    pub gain: Option<Interval>,
    /// The judges' results on validation trajectories.
    pub judges: Vec<JudgeReport>,
    /// What came of the calibration; `None`: the run has not come that far.
    #[serde(default)]
    pub calibration: Option<CalibrationReport>,
    /// The version in the adapter registry, if published.
    #[serde(default)]
    pub version: Option<String>,
    /// Duration of each stage in seconds.
    pub seconds: BTreeMap<Stage, f64>,
    /// Peak memory in bytes.
    pub peak_memory: u64,
}

/// Counts of self-instruct.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InstructReport {
    /// The task's examples.
    pub examples: usize,
    /// Number of generations.
    pub generated: usize,
    /// Those that became questions.
    pub accepted: usize,
    /// Questions without an answer that were made of these.
    #[serde(default)]
    pub unanswerable: usize,
    /// Rejected generations by cause.
    pub rejected: BTreeMap<String, usize>,
    /// A sample of the questions, for readers of the report.
    pub samples: Vec<QuestionRecord>,
}

/// Counts of synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SynthesisReport {
    /// Mean number of steps.
    pub steps: f64,
    /// Number of prompt tokens.
    pub prompt_tokens: u64,
    /// Number of generated tokens.
    pub completion_tokens: u64,
}

/// Counts of the meta-agent's judgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReflectReport {
    /// Number of right trajectories judged.
    pub right: usize,
    /// Of those: the number with a judgement that agrees with the reward.
    pub right_agreed: usize,
    /// Number of wrong trajectories judged.
    pub wrong: usize,
    /// Of those: the number with a judgement that agrees with the reward.
    pub wrong_agreed: usize,
    /// Number of trajectories whose first judgement agrees.
    pub first_agreed: usize,
}

/// A row of the results table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowReport {
    /// Its name in files.
    pub row: String,
    /// Its name in the paper.
    pub title: String,
    /// Number of questions answered.
    pub questions: usize,
    /// Fraction with exact match, with its 95% confidence interval.
    pub exact: Interval,
    /// Mean F1.
    pub f1: f64,
    /// Fraction approved by Reflect-Agent.
    pub approved: f64,
    /// Fraction of the approved answers that are right.
    pub approved_right: f64,
    /// Mean number of steps.
    pub steps: f64,
    /// Mean duration of a question in seconds.
    pub seconds: f64,
    /// By kind of question: number of exact matches, number of questions.
    pub kinds: BTreeMap<String, (usize, usize)>,
}

/// A judge's results on validation trajectories. The positive class is rejection, because a judge's
/// task is to find wrong answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeReport {
    /// Its name.
    pub row: String,
    /// Right trajectories, and how many of them were approved.
    pub right: (usize, usize),
    /// Wrong trajectories, and how many of them were rejected.
    pub wrong: (usize, usize),
    /// Fraction of the rejected trajectories that are wrong.
    pub precision: Option<f64>,
    /// Fraction of the wrong trajectories that were rejected.
    pub recall: Option<f64>,
    /// Fraction judged correctly.
    pub accuracy: Option<f64>,
}

/// Number of generated questions that the report shows.
const SAMPLES: usize = 12;

/// Computes the report from the files that exist so far.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn compute(work: &Workplace, run: &Run) -> Result<Report, LearnError> {
    let answers: Vec<AnswerRecord> = read(&run.path("evaluation.jsonl"))?;
    let judgements: Vec<JudgementRecord> = read(&run.path("held-out-judgements.jsonl"))?;
    let trajectories: Vec<TrajectoryRecord> = read(&run.path("trajectories.jsonl"))?;
    let mut training = Vec::new();
    let mut curves = BTreeMap::new();
    let mut documents = BTreeMap::new();
    let iterated: Option<Iterated> = read_json(&run.path("iterate.json"))?;
    for number in 1..=iterated.as_ref().map_or(1, |iterated| iterated.rounds.len()) {
        let round = Round::new(run, number);
        for name in GROUP.into_iter().map(str::to_owned).chain(variants::adapters(run, &round)?) {
            let title = if number == 1 { name.clone() } else { format!("{name}, round {number}") };
            training.extend(read_json::<Trained>(&round.adapter(&name).join("training.json"))?);
            let curve: Vec<CurvePoint> = read(&round.training(&name).join("curve.jsonl"))?;
            let data: Vec<DocumentRecord> = read(&round.path(&format!("datasets/{name}.jsonl")))?;
            if !curve.is_empty() {
                curves.insert(title.clone(), curve);
            }
            if !data.is_empty() {
                documents.insert(title, data.len());
            }
        }
    }
    let (seconds, peak_memory) = run.costs();
    let mean = |of: &dyn Fn(&TrajectoryRecord) -> f64| trajectories.iter().map(of).sum::<f64>() / trajectories.len().max(1) as f64;
    Ok(Report {
        task: work.task.info.name.clone(),
        description: work.task.info.description.clone(),
        model: work.model.display().to_string(),
        base_digest: work.base_digest().to_owned(),
        run: run.dir().display().to_string(),
        instruct: instructed(work, run)?,
        selection: read_json(&run.path("tools.json"))?,
        filter: read_json(&run.path("filter.json"))?,
        synthesis: SynthesisReport {
            steps: mean(&|one| one.turns.len() as f64),
            prompt_tokens: trajectories.iter().map(|one| one.tokens[0]).sum(),
            completion_tokens: trajectories.iter().map(|one| one.tokens[1]).sum(),
        },
        reflect: reflected(&read(&run.path("reflections.jsonl"))?),
        documents,
        training,
        curves,
        iterated,
        gain: gain(&answers, work.task.seed),
        evaluation: rows(run, true)?.iter().filter_map(|row| evaluated(row, &answers, work.task.seed)).collect(),
        judges: [AUTOACT, BASE, ONE_ROUND].into_iter().filter_map(|row| judged(row, &judgements)).collect(),
        calibration: calibrated(run)?,
        version: None,
        seconds: seconds.clone(),
        peak_memory: peak_memory.max(crate::memory::peak()),
    })
}

fn instructed(work: &Workplace, run: &Run) -> Result<InstructReport, LearnError> {
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let rejections: Vec<RejectedRecord> = read(&run.path("rejected.jsonl"))?;
    let mut rejected: BTreeMap<String, usize> = BTreeMap::new();
    rejections.into_iter().for_each(|one| *rejected.entry(one.cause).or_default() += 1);
    let generated: Vec<QuestionRecord> = database.into_iter().filter(|entry| entry.attempt.is_some()).collect();
    let unanswerable = generated.iter().filter(|entry| entry.answer.is_none()).count();
    let accepted = generated.len() - unanswerable;
    let step = (generated.len() / SAMPLES).max(1);
    Ok(InstructReport {
        examples: work.task.examples.len(),
        generated: accepted + rejected.values().sum::<usize>(),
        accepted,
        unanswerable,
        rejected,
        samples: generated.into_iter().step_by(step).take(SAMPLES).collect(),
    })
}

fn reflected(records: &[ReflectionRecord]) -> ReflectReport {
    let count = |right: bool, agreed: bool| records.iter().filter(|one| one.right == right && (!agreed || one.agreed().is_some())).count();
    ReflectReport {
        right: count(true, false),
        right_agreed: count(true, true),
        wrong: count(false, false),
        wrong_agreed: count(false, true),
        first_agreed: records.iter().filter(|one| one.first_agrees()).count(),
    }
}

fn evaluated(row: &Row, answers: &[AnswerRecord], seed: u64) -> Option<RowReport> {
    let mine: Vec<&AnswerRecord> = answers.iter().filter(|answer| answer.row == row.name).collect();
    if mine.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&AnswerRecord) -> f64| mine.iter().map(|answer| of(answer)).sum::<f64>() / mine.len() as f64;
    let flag = |value: bool| if value { 1.0 } else { 0.0 };
    let approved: Vec<_> = mine.iter().filter(|answer| answer.approved).collect();
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for answer in &mine {
        let entry = kinds.entry(answer.kind.clone()).or_default();
        entry.0 += usize::from(answer.exact);
        entry.1 += 1;
    }
    Some(RowReport {
        row: row.name.to_owned(),
        title: row.title.to_owned(),
        questions: mine.len(),
        exact: estimate(&mine.iter().map(|answer| flag(answer.exact)).collect::<Vec<_>>(), seed),
        f1: mean(&|answer| answer.f1),
        approved: mean(&|answer| flag(answer.approved)),
        approved_right: approved.iter().filter(|answer| answer.exact).count() as f64 / approved.len().max(1) as f64,
        steps: mean(&|answer| f64::from(answer.steps)),
        seconds: mean(&|answer| answer.millis as f64 / 1e3),
        kinds,
    })
}

/// The paired difference between the installed group and the base, over the questions that both
/// answered.
fn gain(answers: &[AnswerRecord], seed: u64) -> Option<Interval> {
    let of = |row: &str| -> BTreeMap<usize, f64> {
        answers.iter().filter(|answer| answer.row == row).map(|answer| (answer.at, f64::from(u8::from(answer.exact)))).collect()
    };
    let (ours, base) = (of(AUTOACT), of(BASE));
    let differences: Vec<f64> = ours.iter().filter_map(|(at, ours)| Some(ours - base.get(at)?)).collect();
    (!differences.is_empty()).then(|| estimate(&differences, seed))
}

fn estimate(values: &[f64], seed: u64) -> Interval {
    Bootstrap { seed, ..Bootstrap::default() }.mean(values)
}

fn judged(row: &str, judgements: &[JudgementRecord]) -> Option<JudgeReport> {
    let own = judgements.iter().filter(|one| one.row == row);
    let verdicts: Verdicts = own.map(|one| (one.approved, one.right)).collect();
    (verdicts.total() > 0).then(|| JudgeReport {
        row: row.to_owned(),
        right: (verdicts.approved_right + verdicts.rejected_right, verdicts.approved_right),
        wrong: (verdicts.approved_wrong + verdicts.rejected_wrong, verdicts.rejected_wrong),
        precision: verdicts.rejection_precision(),
        recall: verdicts.rejection_recall(),
        accuracy: verdicts.accuracy(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_are_measured_on_rejections() {
        let one = |right, approved| JudgementRecord { row: "autoact".into(), id: 0, sample: 0, right, approved };
        let judgements = [one(true, true), one(true, false), one(false, false), one(false, false), one(false, true)];
        let report = judged("autoact", &judgements).unwrap();
        assert_eq!((report.precision, report.recall, report.accuracy), (Some(2.0 / 3.0), Some(2.0 / 3.0), Some(0.6)));
        assert!(judged("base", &judgements).is_none());
    }
}
