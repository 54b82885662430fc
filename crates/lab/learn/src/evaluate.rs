//! Evaluation: the learned group and the base on the task's evaluation questions, and Reflect-Agent
//! on validation trajectories.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::Backend;
use autoact_score::{Metric, with_options};
use autoact_trajectory::{Calibration, Sampling, ToolSpec};

use crate::calibrate::calibrate;
use crate::differentiate::held_back;
use crate::error::LearnError;
use crate::iterate::{GROUP, chosen};
use crate::records::{AnswerRecord, JudgementRecord, TrajectoryRecord};
use crate::reflect::{approves, histories, judge};
use crate::reward::{Said, scores};
use crate::round::Round;
use crate::row::{AUTOACT, BASE, ONE_ROUND, Row};
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{Store, read};
use crate::synthesize::selected;
use crate::variants;
use crate::workplace::{EvaluationQuestion, Workplace};

/// The rows to evaluate.
pub(crate) fn rows(run: &Run, variants: bool) -> Result<Vec<Row>, LearnError> {
    let row = |name, title, voices, without_reflection| Row { name, title, voices, without_reflection };
    let chosen = chosen(run)?;
    let mut rows = vec![row(AUTOACT, "AutoAct", chosen.group(), false), row(BASE, "− fine-tuning", Voices::base(), false)];
    if chosen.number > 1 {
        rows.push(row(ONE_ROUND, "AutoAct, one round", Round::new(run, 1).group(), false));
    }
    if variants {
        rows.extend(variants::rows(run, &chosen)?);
    }
    Ok(rows)
}

/// Evaluates every row on every question, then the reflections.
///
/// # Errors
/// The model, an adapter or a file fails, or a stop was requested.
pub(crate) fn evaluate(work: &mut Workplace, run: &Run) -> Result<(), LearnError> {
    let chosen = chosen(run)?;
    if work.variants {
        variants::prepare(work, run, &chosen)?;
        chosen.load(work, &variants::adapters(run, &chosen)?)?;
    }
    chosen.load(work, &GROUP)?;
    if chosen.number > 1 {
        Round::new(run, 1).load(work, &GROUP)?;
    }
    let calibration = calibrate(work, run)?;
    answer(work, run, calibration.as_ref())?;
    judge_held_out(work, run)
}

/// The learned group needs the confidence of its calibration; the others' verdicts decide.
fn answer(work: &Workplace, run: &Run, calibration: Option<&Calibration>) -> Result<(), LearnError> {
    let tools = selected(work, run)?;
    let (mut store, there) = Store::<AnswerRecord>::open(&run.path("evaluation.jsonl"))?;
    let done: HashSet<(String, usize)> = there.iter().map(|record| (record.row.clone(), record.at)).collect();
    let rows = rows(run, work.variants)?;
    let asked = spread(work.evaluation.len(), work.task.settings.evaluate.questions);
    // question by question, so that an interrupted evaluation has all rows for the questions it did
    let all = asked.iter().flat_map(|at| rows.iter().map(|row| (row, *at)));
    let todo: Vec<(&Row, usize)> = all.filter(|(row, at)| !done.contains(&(row.name.to_owned(), *at))).collect();
    let (mut count, total) = (there.len(), rows.len() * asked.len());
    let mut records = there;
    work.view.begin(Stage::Evaluate, "answers", count as u64, total as u64);
    work.pool()?.each(
        &todo,
        &work.stop,
        |(row, at), backend| {
            let calibration = calibration.filter(|_| row.name == AUTOACT);
            ask(work, row, *at, &work.evaluation[*at], &tools, backend, calibration)
        },
        |_, record| {
            store.push(&record)?;
            records.push(record);
            count += 1;
            work.view.advance(count as u64, &told(&rows, &records));
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Evaluate)?;
    work.view.end(&told(&rows, &records));
    Ok(())
}

fn told(rows: &[Row], records: &[AnswerRecord]) -> String {
    let of = |row: &Row| {
        let mine: Vec<_> = records.iter().filter(|record| record.row == row.name).collect();
        let right = mine.iter().filter(|record| record.exact).count();
        format!("{} {:.1}%", row.name, 100.0 * right as f64 / mine.len().max(1) as f64)
    };
    rows.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// `wanted` of `count` indices, evenly spread; 0 selects all.
fn spread(count: usize, wanted: usize) -> Vec<usize> {
    if wanted == 0 || wanted >= count {
        return (0..count).collect();
    }
    (0..wanted).map(|at| at * count / wanted).collect()
}

fn ask(
    work: &Workplace,
    row: &Row,
    at: usize,
    question: &EvaluationQuestion,
    tools: &[ToolSpec],
    backend: &Arc<dyn Backend>,
    calibration: Option<&Calibration>,
) -> Result<AnswerRecord, LearnError> {
    let options = RunOptions { judgements: row.without_reflection.then_some(0), ..RunOptions::default() };
    let asked = with_options(&question.question, &question.options);
    let begun = Instant::now();
    let group = LocalGroup::new(Arc::clone(backend), Arc::clone(&work.library), row.voices.clone());
    let group = calibration.into_iter().fold(group, |group, calibration| group.calibrated(calibration.clone()));
    let task = group.run(&asked, tools, &options)?;
    let said = Said::of(&task);
    let metric = if question.options.is_empty() { Metric::ExactMatch } else { Metric::MultipleChoice };
    let (exact, f1) = scores(&said, metric, &asked, question.answer.as_deref());
    Ok(AnswerRecord {
        row: row.name.to_owned(),
        at,
        kind: question.label(),
        question: question.question.clone(),
        gold: question.answer.clone(),
        exact,
        f1,
        answer: said.answer().to_owned(),
        no_answer: said == Said::NoAnswer,
        approved: task.finished().is_some_and(|finished| finished.approved),
        steps: task.steps(),
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Reflections on the validation trajectories, by the learned Reflect-Agent and by the base.
fn judge_held_out(work: &Workplace, run: &Run) -> Result<(), LearnError> {
    let kept: Vec<TrajectoryRecord> = read(&run.path("kept.jsonl"))?;
    let all: Vec<TrajectoryRecord> = read(&run.path("trajectories.jsonl"))?;
    let part = work.task.settings.differentiate.validation;
    let of_all = histories(&kept, &all, work.task.settings.reflect.wrong_per_question);
    let held_out: Vec<_> = of_all.into_iter().filter(|one| held_back(one.id, work.task.seed, part)).collect();
    let (mut store, there) = Store::<JudgementRecord>::open(&run.path("held-out-judgements.jsonl"))?;
    let done: HashSet<(String, usize, usize)> = there.iter().map(|record| (record.row.clone(), record.id, record.sample)).collect();
    let chosen = chosen(run)?;
    let mut judges = vec![(AUTOACT, Some(chosen.voice("reflect"))), (BASE, None)];
    if chosen.number > 1 {
        judges.push((ONE_ROUND, Some(Round::new(run, 1).voice("reflect"))));
    }
    let todo: Vec<_> = judges
        .iter()
        .flat_map(|judge| held_out.iter().map(move |one| (judge.clone(), *one)))
        .filter(|((row, _), one)| !done.contains(&((*row).to_owned(), one.id, one.sample)))
        .collect();
    let mut count = there.len();
    work.view.begin(Stage::Evaluate, "judgements", count as u64, (judges.len() * held_out.len()) as u64);
    work.pool()?.each(
        &todo,
        &work.stop,
        |((row, adapter), one), backend| {
            let judgement = judge(work, one, adapter.as_deref(), Sampling::default(), &[], backend)?;
            let approved = judgement.as_ref().is_some_and(approves);
            Ok(JudgementRecord { row: (*row).to_owned(), id: one.id, sample: one.sample, right: one.is_right(), approved })
        },
        |_, record| {
            store.push(&record)?;
            count += 1;
            work.view.advance(count as u64, "");
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Evaluate)?;
    work.view.end(&format!("{} held-out histories", held_out.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_spread_over_the_file() {
        assert_eq!(spread(3, 0), [0, 1, 2]);
        assert_eq!(spread(3, 9), [0, 1, 2]);
        assert_eq!(spread(10, 4), [0, 2, 5, 7]);
    }

    #[test]
    fn every_adapter_that_a_row_speaks_with_is_trained() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::open(dir.path(), "t", crate::run::Origin::new(), None).unwrap();
        let round = Round::new(&run, 1);
        std::fs::create_dir_all(run.path("datasets")).unwrap();
        for name in ["one", "unfiltered-plan", "unfiltered-tool", "unfiltered-reflect", "25-plan", "25-tool", "25-reflect"] {
            std::fs::write(run.path(&format!("datasets/{name}.jsonl")), "").unwrap();
        }
        for variants in [false, true] {
            let compared = if variants { variants::adapters(&run, &round).unwrap() } else { Vec::new() };
            let names = GROUP.into_iter().chain(compared.iter().map(String::as_str));
            let trained: Vec<String> = names.map(|name| round.voice(name)).collect();
            for row in rows(&run, variants).unwrap() {
                for voice in [row.voices.plan, row.voices.tool, row.voices.reflect].into_iter().flatten() {
                    assert!(trained.contains(&voice), "{voice}");
                }
            }
        }
    }
}
