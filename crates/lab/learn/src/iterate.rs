//! Further rounds, beyond the paper. The group of the previous round generates trajectories, and
//! new adapters are trained on those that pass the filter. Rounds go on while exact match on the
//! validation questions does not fall by more than chance. The adapters of the last such round are
//! installed.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use autoact_in_process::{LocalGroup, RunOptions};
use autoact_score::with_options;
use serde::{Deserialize, Serialize};

use crate::calibrate::forget;
use crate::differentiate::{differentiate, differentiate_judgements, validation_questions};
use crate::error::LearnError;
use crate::keep::filter;
use crate::records::{AnswerRecord, QuestionRecord};
use crate::reflect::reflect;
use crate::reward::{Said, scores};
use crate::round::Round;
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{Store, read, read_json, write_atomic, write_json};
use crate::synthesize::{part, selected, synthesize};
use crate::train::train;
use crate::workplace::Workplace;

/// The adapters of a group.
pub(crate) const GROUP: [&str; 3] = ["plan", "tool", "reflect"];
/// Those of a round that is compared with others, which takes no judgement.
const PLANNING: [&str; 2] = ["plan", "tool"];

/// The round whose adapters are installed.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn chosen(run: &Run) -> Result<Round, LearnError> {
    Ok(Round::new(run, installed_round(run.dir())?))
}

/// The number of the round whose adapters a run directory has installed. It is 1 before rounds have
/// been compared.
///
/// # Errors
/// `iterate.json` cannot be read.
pub fn installed_round(run: &Path) -> Result<usize, LearnError> {
    let iterated: Option<Iterated> = read_json(&run.join("iterate.json"))?;
    Ok(iterated.map_or(1, |iterated| iterated.chosen))
}

/// `iterate.json`: the results of the rounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Iterated {
    /// The rounds, in order.
    pub rounds: Vec<RoundReport>,
    /// The round whose adapters are installed.
    pub chosen: usize,
}

/// A round's result on the validation questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round's number, from 1.
    pub round: usize,
    /// Number of questions. Their answers are generated, not checked by people.
    pub questions: usize,
    /// Fraction answered like the database (exact match).
    pub exact: f64,
    /// Why the round failed; empty if it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
}

/// Runs further rounds and installs the adapters of one.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn iterate(work: &mut Workplace, run: &Run) -> Result<(), LearnError> {
    let mut told = Iterated { rounds: Vec::new(), chosen: 1 };
    for number in 1..=work.task.settings.iterate.rounds {
        work.go_on(Stage::Iterate)?;
        let round = Round::new(run, number);
        let made = if number == 1 { Ok(()) } else { further(work, run, &round) };
        let report = match made {
            Ok(()) => validate(work, run, &round)?,
            Err(LearnError::TooFew { what, found, .. }) => {
                RoundReport { round: number, questions: 0, exact: 0.0, failed: format!("{what}: {found}") }
            }
            Err(error) => return Err(error),
        };
        let failed = !report.failed.is_empty();
        told.rounds.push(report);
        told.chosen = installed(&told.rounds);
        if failed || number - told.chosen > work.task.settings.iterate.patience {
            break;
        }
    }
    let chosen = Round::new(run, told.chosen);
    if chosen.number > 1 {
        train_judge(work, run, &chosen)?;
    }
    install(run, &chosen)?;
    write_json(&run.path("iterate.json"), &told)
}

/// The number of the round that is installed: the last one that answers hardly less of the validation
/// questions than the best, which is one standard error of a share. A later round has learned from more
/// questions, and on a hundred or two of them a point or two less is chance.
fn installed(rounds: &[RoundReport]) -> usize {
    let well = || rounds.iter().filter(|round| round.failed.is_empty());
    let best = well().map(|round| round.exact).fold(0.0, f64::max);
    let error = |round: &RoundReport| (best * (1.0 - best) / round.questions.max(1) as f64).sqrt();
    well().rfind(|round| round.exact >= best - error(round)).map_or(1, |round| round.round)
}

/// A round with trajectories by the group of the previous one.
fn further(work: &mut Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    Round::new(run, round.number - 1).load(work, &PLANNING)?;
    synthesize(work, run, round)?;
    filter(work, round)?;
    if work.task.settings.differentiate.retried {
        judge(work, run, round)?;
    }
    differentiate(work, round)?;
    work.dismiss();
    train(work, round, &PLANNING)
}

/// Trains the Reflect-Agent of the round that is installed, and of no other: it takes as long as
/// Plan-Agent's training.
fn train_judge(work: &mut Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    judge(work, run, round)?;
    differentiate_judgements(work, run, round)?;
    work.dismiss();
    train(work, round, &GROUP)
}

fn judge(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    Round::new(run, 1).load(work, &["reflect"])?;
    reflect(work, run, round)
}

/// Runs the round's group on the validation questions, on which no round trains. It runs without
/// reflection, because the comparison is about planning.
fn validate(work: &Workplace, run: &Run, round: &Round) -> Result<RoundReport, LearnError> {
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let tools = selected(work, run)?;
    let (mut store, mut records) = Store::<AnswerRecord>::open(&round.path("validation.jsonl"))?;
    let done: HashSet<usize> = records.iter().map(|record| record.at).collect();
    let todo: Vec<usize> = validation_questions(work, database.len()).into_iter().filter(|id| !done.contains(id)).collect();
    round.load(work, &PLANNING)?;
    let options = RunOptions { judgements: Some(0), ..RunOptions::default() };
    let voices = round.group();
    work.view.begin(Stage::Iterate, &part(round, "validation"), records.len() as u64, (records.len() + todo.len()) as u64);
    work.pool()?.each(
        &todo,
        &work.stop,
        |id, backend| {
            let entry = &database[*id];
            let question = with_options(&entry.question, &entry.options);
            let begun = Instant::now();
            let group = LocalGroup::new(Arc::clone(backend), Arc::clone(&work.library), voices.clone());
            let task = group.run(&question, &tools, &options)?;
            let said = Said::of(&task);
            let (exact, f1) = scores(&said, work.task.metric, &question, entry.answer.as_deref());
            Ok(AnswerRecord {
                row: round.number.to_string(),
                at: *id,
                kind: String::new(),
                exact,
                f1,
                question,
                gold: entry.answer.clone(),
                answer: said.answer().to_owned(),
                no_answer: said == Said::NoAnswer,
                approved: false,
                steps: task.steps(),
                millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            })
        },
        |_, record| {
            store.push(&record)?;
            records.push(record);
            work.view.advance(records.len() as u64, "");
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Iterate)?;
    let exact = records.iter().filter(|record| record.exact).count() as f64 / records.len().max(1) as f64;
    work.view.end(&format!("round {}: {:.1}% of {} validation questions", round.number, 100.0 * exact, records.len()));
    Ok(RoundReport { round: round.number, questions: records.len(), exact, failed: String::new() })
}

/// Copies a round's adapters to `adapters/`, where users find them.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn install(run: &Run, round: &Round) -> Result<(), LearnError> {
    for name in GROUP {
        for file in ["adapter_config.json", "adapter_model.safetensors", "training.json"] {
            let from = round.adapter(name).join(file);
            let bytes = std::fs::read(&from).map_err(LearnError::io("read", &from))?;
            write_atomic(&run.path(&format!("adapters/{name}/{file}")), &bytes)?;
        }
    }
    // a calibration belongs to the adapters that it was fitted with
    forget(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_round_that_is_hardly_worse_is_installed() {
        let rounds = |exact: &[f64]| -> Vec<RoundReport> {
            let round = |(at, exact): (usize, &f64)| RoundReport { round: at + 1, questions: 100, exact: *exact, failed: String::new() };
            exact.iter().enumerate().map(round).collect()
        };
        for (exact, expected) in [
            (&[0.5][..], 1),
            (&[0.5, 0.6, 0.7], 3),
            (&[0.5, 0.48], 2),
            (&[0.5, 0.4, 0.46], 3),
            (&[0.5, 0.6, 0.54], 2),
            (&[0.9, 0.8], 1),
            (&[0.0, 0.0], 2),
            (&[], 1),
        ] {
            assert_eq!(installed(&rounds(exact)), expected, "{exact:?}");
        }
        let mut failed = rounds(&[0.5, 0.0]);
        failed[1].failed = "too few".into();
        assert_eq!(installed(&failed), 1);
    }
}
