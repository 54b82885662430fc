//! Trajectory synthesis: the meta-agent alone plans, fills in parameters and answers. Tools are
//! real.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_base::random::Rng;
use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, WordBias};
use autoact_score::with_options;
use autoact_trajectory::{Limits, Sampling, ToolSpec};

use crate::error::LearnError;
use crate::records::{QuestionRecord, Selection, TrajectoryRecord, TurnRecord};
use crate::reward::Said;
use crate::round::Round;
use crate::run::Run;
use crate::settings::Synthesize;
use crate::stage::Stage;
use crate::store::{Store, read, read_json};
use crate::workplace::Workplace;

/// One try at one question.
struct Try {
    id: usize,
    sample: usize,
}

/// Generates several trajectories for every question in the database.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn synthesize(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    let settings = &work.task.settings.synthesize;
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let tools = selected(work, run)?;
    let (mut store, there) = Store::<TrajectoryRecord>::open(&round.path("trajectories.jsonl"))?;
    let done: HashSet<(usize, usize)> = there.iter().map(|record| (record.id, record.sample)).collect();
    let all = (0..database.len()).flat_map(|id| (0..settings.samples).map(move |sample| Try { id, sample }));
    let todo: Vec<Try> = all.filter(|one| !done.contains(&(one.id, one.sample))).collect();
    let total = (database.len() * settings.samples) as u64;
    let mut count = there.len() as u64;
    let mut right = there.iter().filter(|record| record.is_right()).count();
    let begun = Instant::now();
    let pool = work.pool()?;
    let speakers = round.speakers(run);
    work.view.begin(Stage::Synthesize, &part(round, "trajectories"), count, total);
    pool.each(
        &todo,
        &work.stop,
        |one, backend| attempt(work, &database[one.id], one, &tools, &speakers, round, backend),
        |_, record| {
            store.push(&record)?;
            count += 1;
            right += usize::from(record.is_right());
            let rate = (count - there.len() as u64) as f64 / begun.elapsed().as_secs_f64().max(1e-3);
            work.view.advance(count, &format!("{rate:.1}/s, reward 1: {:.0}%", 100.0 * right as f64 / count as f64));
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Synthesize)?;
    work.view.end(&format!("{count} trajectories of {} questions, {right} with reward 1", database.len()));
    Ok(())
}

/// The selected tools, T_s.
pub(crate) fn selected(work: &Workplace, run: &Run) -> Result<Vec<ToolSpec>, LearnError> {
    let path = run.path("tools.json");
    let selection: Option<Selection> = read_json(&path)?;
    let names = selection.map(|selection| selection.selected).unwrap_or_default();
    // the digest of the library is an input of the run, so the names are in it
    work.library.select(&names).map_err(|unknown| LearnError::Line { path, line: 1, reason: unknown.to_string() })
}

fn attempt(
    work: &Workplace,
    entry: &QuestionRecord,
    one: &Try,
    tools: &[ToolSpec],
    speakers: &Voices,
    round: &Round,
    backend: &Arc<dyn Backend>,
) -> Result<TrajectoryRecord, LearnError> {
    let settings = &work.task.settings.synthesize;
    let seed =
        Rng::labelled(work.task.seed ^ ((one.id as u64) << 24 | (one.sample as u64) << 8 | round.number as u64), "synthesize").next_u64();
    // the first try is greedy
    let temperature = if one.sample == 0 { 0.0 } else { settings.temperature };
    let options = RunOptions {
        limits: Limits { max_steps: settings.max_steps, max_time: Duration::from_secs(settings.seconds), ..Limits::default() },
        sampling: Sampling { temperature, seed, ..Sampling::default() },
        judgements: Some(0),
        word_bias: bias(settings, one, round).map(|bias| WordBias { words: work.vocabulary.asked(&entry.question), bias }),
        ..RunOptions::default()
    };
    let begun = Instant::now();
    let question = with_options(&entry.question, &entry.options);
    let group = LocalGroup::new(Arc::clone(backend), Arc::clone(&work.library), speakers.clone());
    let task = group.run(&question, tools, &options)?;
    let failed = task.finished().map(|finished| format!("{}: {}", finished.reason.as_str(), finished.detail));
    let said = if failed.is_some() { Said::Nothing } else { Said::of(&task) };
    let (_, reward) = said.score(work.task.metric, &question, entry.answer.as_deref());
    Ok(TrajectoryRecord {
        id: one.id,
        sample: one.sample,
        question,
        gold: entry.answer.clone(),
        answer: said.answer().to_owned(),
        no_answer: said == Said::NoAnswer,
        reward,
        failed: failed.unwrap_or_default(),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        turns: task.trajectory().turns.iter().map(TurnRecord::from).collect(),
        tokens: [task.prompt_tokens(), task.completion_tokens()],
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The logit bias on the question's words. The first, greedy try has none. The others' is halved
/// from round to round.
fn bias(settings: &Synthesize, one: &Try, round: &Round) -> Option<f32> {
    let bias = settings.question_bias.unwrap_or_default() * 0.5f32.powi(i32::try_from(round.number).unwrap_or(i32::MAX) - 1);
    (one.sample > 0 && bias > 0.0).then_some(bias)
}

/// The name of a part of a round, for progress.
pub(crate) fn part(round: &Round, what: &str) -> String {
    if round.number == 1 { what.to_owned() } else { format!("{what}, round {}", round.number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greedy_try_has_no_bias_and_the_bias_halves_by_round() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::open(dir.path(), "t", crate::run::Origin::new(), None).unwrap();
        let settings = Synthesize { question_bias: Some(6.0), ..Synthesize::default() };
        let of = |settings: &Synthesize, sample, round| bias(settings, &Try { id: 0, sample }, &Round::new(&run, round));
        assert_eq!([of(&settings, 0, 1), of(&settings, 1, 1), of(&settings, 3, 2)], [None, Some(6.0), Some(3.0)]);
        assert_eq!(of(&Synthesize::default(), 1, 1), None);
    }
}
