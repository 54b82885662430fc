//! Trajectory synthesis: the meta-agent alone plans, fills in parameters and answers. Tools are
//! real.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_base::random::Rng;
use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, WordBias};
use autoact_score::{normalize, with_options};
use autoact_trajectory::{Limits, Sampling, ToolSpec};

use crate::error::LearnError;
use crate::filter::within;
use crate::keep::guessable;
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
    /// What Plan-Agent is hinted at.
    hints: Vec<Hint>,
}

/// A text that leads to the answer, or the answer itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hint {
    text: String,
    /// The name of the page that has it. A thought names the page first, and then what it says.
    after: String,
}

impl Try {
    /// Without hints.
    fn plain(id: usize, sample: usize) -> Try {
        Try { id, sample, hints: Vec::new() }
    }
}

impl Hint {
    fn biased(&self, bias: f32) -> WordBias {
        WordBias { word: self.text.clone(), bias, after: self.after.clone() }
    }
}

/// The tries of a round: those that are there, and what makes more.
struct Tries<'a> {
    work: &'a Workplace,
    round: &'a Round,
    database: &'a [QuestionRecord],
    tools: Vec<ToolSpec>,
    speakers: Voices,
    store: Store<TrajectoryRecord>,
    there: Vec<TrajectoryRecord>,
}

/// Generates several trajectories for every question in the database, and hinted ones for questions
/// that none of them answers right.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn synthesize(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    let settings = &work.task.settings.synthesize;
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let (store, there) = Store::<TrajectoryRecord>::open(&round.path("trajectories.jsonl"))?;
    let (tools, speakers) = (selected(work, run)?, round.speakers(run));
    let mut tries = Tries { work, round, database: &database, tools, speakers, store, there };
    let further = round.number > 1 && settings.until_right;
    let first = |entry: &QuestionRecord| if further && !needs_all(entry) { 1 } else { settings.samples };
    let all = database.iter().enumerate().flat_map(|(id, entry)| (0..first(entry)).map(move |sample| Try::plain(id, sample)));
    tries.make("trajectories", all.collect())?;
    if further {
        // by the first try alone, so that a run that is resumed makes the same ones
        let solved: HashSet<usize> = tries.there.iter().filter(|one| one.sample == 0 && one.is_right()).map(|one| one.id).collect();
        let open = database.iter().enumerate().filter(|(id, entry)| !needs_all(entry) && !solved.contains(id));
        tries.make(
            "trajectories of open questions",
            open.flat_map(|(id, _)| (1..settings.samples).map(move |sample| Try::plain(id, sample))).collect(),
        )?;
    }
    let hinted = hinted(settings, &database, &tries.there);
    if !hinted.is_empty() {
        tries.make("with hints", hinted)?;
    }
    Ok(())
}

impl Tries<'_> {
    /// Makes those of the tries that are not there yet.
    fn make(&mut self, what: &str, tries: Vec<Try>) -> Result<(), LearnError> {
        let Tries { work, round, database, tools, speakers, store, there } = self;
        let done: HashSet<(usize, usize)> = there.iter().map(|record| (record.id, record.sample)).collect();
        let wanted: HashSet<(usize, usize)> = tries.iter().map(|one| (one.id, one.sample)).collect();
        let todo: Vec<Try> = tries.into_iter().filter(|one| !done.contains(&(one.id, one.sample))).collect();
        let total = wanted.len();
        let questions = wanted.iter().map(|(id, _)| id).collect::<HashSet<_>>().len();
        let mut count = total - todo.len();
        let mut right = there.iter().filter(|record| record.is_right() && wanted.contains(&(record.id, record.sample))).count();
        let (begun, before) = (Instant::now(), count);
        work.view.begin(Stage::Synthesize, &part(round, what), count as u64, total as u64);
        work.pool()?.each(
            &todo,
            &work.stop,
            |one, backend| attempt(work, &database[one.id], one, tools, speakers, round, backend),
            |_, record| {
                store.push(&record)?;
                count += 1;
                right += usize::from(record.is_right());
                there.push(record);
                let rate = (count - before) as f64 / begun.elapsed().as_secs_f64().max(1e-3);
                work.view.advance(count as u64, &format!("{rate:.1}/s, reward 1: {:.0}%", 100.0 * right as f64 / count as f64));
                Ok::<(), LearnError>(())
            },
        )?;
        store.sync()?;
        work.go_on(Stage::Synthesize)?;
        work.view.end(&format!("{count} trajectories of {questions} questions, {right} with reward 1"));
        Ok(())
    }
}

/// Whether one right try is too few to believe the answer.
fn needs_all(entry: &QuestionRecord) -> bool {
    entry.stated.is_empty() && guessable(&with_options(&entry.question, &entry.options), entry.answer.as_deref())
}

/// Tries with hints, at questions in the form of the examples that no try without one answers right.
fn hinted(settings: &Synthesize, database: &[QuestionRecord], there: &[TrajectoryRecord]) -> Vec<Try> {
    let solved: HashSet<usize> = there.iter().filter(|record| record.is_right() && !record.hinted).map(|record| record.id).collect();
    let open = database.iter().enumerate().filter(|(id, entry)| entry.formed && !solved.contains(id));
    let tries = settings.samples..settings.samples + settings.hints.unwrap_or_default();
    open.flat_map(|(id, entry)| {
        let hints = hints(entry);
        // there is nothing to hint at where the question itself has the answer
        let tries = if hints.is_empty() { 0..0 } else { tries.clone() };
        tries.map(move |sample| Try { id, sample, hints: hints.clone() })
    })
    .collect()
}

/// What the pages of a question lead to: the names of all but the first, and the answer. What the
/// question says itself is none. Of an answer that could be guessed, what decides it.
fn hints(entry: &QuestionRecord) -> Vec<Hint> {
    if !entry.stated.is_empty() {
        let stated = entry.pages.iter().zip(&entry.stated);
        return stated.map(|(page, told)| Hint { text: told.value.clone(), after: page.clone() }).collect();
    }
    let Some(answer) = entry.answer.as_ref().filter(|answer| !guessable(&entry.question, Some(answer.as_str()))) else {
        return Vec::new();
    };
    let question = normalize(&entry.question);
    let led_to = entry.pages.iter().zip(entry.pages.iter().skip(1).chain([answer]));
    let hints = led_to.map(|(page, text)| Hint { text: text.clone(), after: page.clone() });
    hints.filter(|hint| !within(&normalize(&hint.text), &question)).collect()
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
        word_bias: bias_on(work, entry, one.sample, round),
        hints: one.hints.iter().map(|hint| hint.biased(hint_bias(settings, one))).collect(),
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
        stated: entry.stated.clone(),
        answer: said.answer().to_owned(),
        no_answer: said == Said::NoAnswer,
        hinted: !one.hints.is_empty(),
        reward,
        failed: failed.unwrap_or_default(),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        turns: task.trajectory().turns.iter().map(TurnRecord::from).collect(),
        tokens: [task.prompt_tokens(), task.completion_tokens()],
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The logit bias on hints: one and a half of that on the question's words, and more from try to try.
/// Too small a one does not change what a thought says, and too great a one breaks its sentences.
fn hint_bias(settings: &Synthesize, one: &Try) -> f32 {
    settings.question_bias.unwrap_or_default() * (1.5 + 0.25 * one.sample.saturating_sub(settings.samples) as f32)
}

/// The logit bias on the words of a question. The first, greedy try has none. The others' is halved
/// from round to round.
pub(crate) fn question_bias(work: &Workplace, question: &str, sample: usize, round: &Round) -> Vec<WordBias> {
    bias(&work.task.settings.synthesize, sample, round).map_or_else(Vec::new, |bias| WordBias::all(work.vocabulary.asked(question), bias))
}

/// The same, and on the words by which pages name what decides the answer: `Who is older?` has none.
fn bias_on(work: &Workplace, entry: &QuestionRecord, sample: usize, round: &Round) -> Vec<WordBias> {
    let mut words = question_bias(work, &entry.question, sample, round);
    if let Some(bias) = bias(&work.task.settings.synthesize, sample, round) {
        let named: BTreeSet<&String> = entry.stated.iter().flat_map(|stated| &stated.words).collect();
        words.extend(WordBias::all(named, bias));
    }
    words
}

fn bias(settings: &Synthesize, sample: usize, round: &Round) -> Option<f32> {
    let bias = settings.question_bias.unwrap_or_default() * 0.5f32.powi(i32::try_from(round.number).unwrap_or(i32::MAX) - 1);
    (sample > 0 && bias > 0.0).then_some(bias)
}

/// The name of a part of a round, for progress.
pub(crate) fn part(round: &Round, what: &str) -> String {
    if round.number == 1 { what.to_owned() } else { format!("{what}, round {}", round.number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::StatedRecord;

    #[test]
    fn the_greedy_try_has_no_bias_and_the_bias_halves_by_round() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::open(dir.path(), "t", crate::run::Origin::new(), None).unwrap();
        let settings = Synthesize { question_bias: Some(6.0), ..Synthesize::default() };
        let of = |settings: &Synthesize, sample, round| bias(settings, sample, &Round::new(&run, round));
        assert_eq!([of(&settings, 0, 1), of(&settings, 1, 1), of(&settings, 3, 2)], [None, Some(6.0), Some(3.0)]);
        assert_eq!(of(&Synthesize::default(), 1, 1), None);
        assert_eq!(of(&settings, 6, 1), Some(6.0));
        assert_eq!([4, 5, 6].map(|sample| hint_bias(&settings, &Try::plain(0, sample))), [9.0, 10.5, 12.0]);
    }

    fn entry(question: &str, answer: &str, pages: &[&str]) -> QuestionRecord {
        QuestionRecord {
            attempt: Some(0),
            question: question.into(),
            answer: Some(answer.into()),
            options: Vec::new(),
            pages: pages.iter().map(|page| (*page).to_owned()).collect(),
            formed: true,
            ..QuestionRecord::default()
        }
    }

    #[test]
    fn what_a_question_does_not_say_is_hinted_at() {
        let chain = entry("Who heads the department of Pavel Ek?", "Nadia Haddad", &["Pavel Ek", "Sales Department"]);
        let hint = |text: &str, after: &str| Hint { text: text.into(), after: after.into() };
        assert_eq!(hints(&chain), [hint("Sales Department", "Pavel Ek"), hint("Nadia Haddad", "Sales Department")]);
        assert!(hints(&entry("Does Pavel Ek work in the Sales Department?", "yes", &["Pavel Ek", "Sales Department"])).is_empty());
        let compared = entry("Which is larger, the Graz Office or the Lyon Office?", "Lyon Office", &["Graz Office", "Lyon Office"]);
        assert!(hints(&compared).is_empty());
        let told = |value: &str| StatedRecord { value: value.into(), words: Vec::new() };
        let certain = QuestionRecord { stated: ["40", "25"].map(told).to_vec(), ..compared };
        assert_eq!(hints(&certain), [hint("40", "Graz Office"), hint("25", "Lyon Office")]);
        assert!(hints(&QuestionRecord { answer: None, ..chain }).is_empty());
    }

    #[test]
    fn only_questions_in_a_form_that_no_try_answers_are_hinted() {
        let formed = |at: usize| entry(&format!("Who heads office {at}?"), "Ek", &["Office"]);
        let database = [formed(0), formed(1), QuestionRecord { formed: false, ..formed(2) }, formed(3)];
        let record = |id, reward, hinted| TrajectoryRecord { id, sample: 0, hinted, reward, ..TrajectoryRecord::default() };
        // the last one was answered with a hint before the run was stopped
        let there = [record(0, 1.0, false), record(1, 0.5, false), record(2, 0.0, false), record(3, 0.0, false), record(3, 1.0, true)];
        let settings = Synthesize { hints: Some(2), ..Synthesize::default() };
        let tries: Vec<_> = hinted(&settings, &database, &there).into_iter().map(|one| (one.id, one.sample)).collect();
        assert_eq!(tries, [(1, 4), (1, 5), (3, 4), (3, 5)]);
        assert!(hinted(&Synthesize::default(), &database, &there).is_empty());
    }
}
