//! Trajectory synthesis: the meta-agent alone plans, fills in parameters and answers. Tools are
//! real.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_base::random::Rng;
use autoact_in_process::{Guide, LocalGroup, RunOptions, Voices};
use autoact_model::{Backend, WordBias};
use autoact_score::with_options;
use autoact_trajectory::{Limits, Sampling, ToolSpec};

use crate::error::LearnError;
use crate::frame::frame;
use crate::keep::{guessable, says_what_decides};
use crate::known_path::{KnownPath, Wording, hints};
use crate::misnamed::Misnamed;
use crate::pages::Pages;
use crate::records::{QuestionRecord, Selection, TrajectoryRecord, TurnRecord};
use crate::relation_words::lower_words;
use crate::reward::Said;
use crate::round::Round;
use crate::run::Run;
use crate::settings::Synthesize;
use crate::stage::Stage;
use crate::store::{Store, read, read_json};
use crate::workplace::Workplace;

/// A word in the thoughts of the first tries at so many questions is usual in thoughts.
const USUAL_TIMES: usize = 2;

/// One try at one question.
struct Try {
    id: usize,
    sample: usize,
    /// What chooses among the proposals; `None`: nothing does.
    path: Option<Arc<KnownPath>>,
}

impl Try {
    /// Without a known path.
    fn plain(id: usize, sample: usize) -> Try {
        Try { id, sample, path: None }
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

/// Generates several trajectories for every question in the database, and then, where none is right and
/// the path to the answer is known, such as follow it.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn synthesize(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    let settings = &work.task.settings.synthesize;
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let (store, there) = Store::<TrajectoryRecord>::open(&round.path("trajectories.jsonl"))?;
    let (tools, speakers) = (selected(work, run)?, round.speakers(run));
    let mut tries = Tries { work, round, database: &database, tools, speakers, store, there };
    let samples = settings.samples.unwrap_or(1);
    let guided = settings.hints.unwrap_or_default();
    let has_path = |id: &usize| guided > 0 && database[*id].formed && !hints(&database[*id]).is_empty();
    let later = round.number > 1 && settings.until_right;
    let is_enough = |id: &usize| later && (has_path(id) || !needs_all(&database[*id]));
    let (once, several): (Vec<usize>, Vec<usize>) = (0..database.len()).partition(is_enough);
    tries.make("trajectories", sampled(&once, 0..1).chain(sampled(&several, 0..samples)).collect())?;
    // by the tries before them alone, so that a run that is resumed makes the same ones
    let (on_paths, others): (Vec<usize>, Vec<usize>) = once.into_iter().chain(several).partition(has_path);
    let open = tries.open(others.into_iter().filter(is_enough).collect(), |one| one.sample == 0 && one.is_right());
    tries.make("trajectories of open questions", sampled(&open, 1..samples).collect())?;
    let misnamed = Misnamed::of(&work.vocabulary, &tries.there);
    let wording = Arc::new(Wording {
        usual: usual(&work.pages, &tries.there),
        misnamed,
        frame: frame(&work.pages, &tries.there, false),
        frame_of_comparisons: frame(&work.pages, &tries.there, true),
    });
    // what the filter drops for certain answers nothing: a guess, or a wrong name for what was asked for
    let mut open = on_paths;
    for sample in samples..samples + guided {
        let good = |one: &TrajectoryRecord| one.is_right() && says_what_decides(one) && !wording.misnamed.is_in_try(one);
        open = tries.open(open, |one| one.sample < sample && good(one));
        let path = |id: &usize| {
            let (entry, bias) = (&database[*id], settings.question_bias.unwrap_or_default());
            let path = KnownPath::of(entry, work.task.metric, telling_words(work, entry), bias, &wording)?;
            Some(Try { id: *id, sample, path: Some(Arc::new(path)) })
        };
        tries.make(&format!("on known paths, try {}", sample + 1 - samples), open.iter().filter_map(path).collect())?;
    }
    Ok(())
}

/// Tries without a known path.
fn sampled(questions: &[usize], samples: Range<usize>) -> impl Iterator<Item = Try> {
    questions.iter().flat_map(move |id| samples.clone().map(move |sample| Try::plain(*id, sample)))
}

/// The words of the pages, and those that the first, greedy tries use: no others make sense in a thought.
fn usual(pages: &Pages, there: &[TrajectoryRecord]) -> HashSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for record in there.iter().filter(|record| record.sample == 0) {
        let words: HashSet<String> = record.thoughts().flat_map(lower_words).collect();
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let texts = pages.all().iter().flat_map(|page| [&page.title, &page.text]);
    let usual = counts.into_iter().filter(|(_, count)| *count >= USUAL_TIMES).map(|(word, _)| word);
    texts.flat_map(|text| lower_words(text)).chain(usual).collect()
}

impl Tries<'_> {
    /// Those of the questions that none of the `good` tries answers.
    fn open(&self, mut questions: Vec<usize>, good: impl Fn(&TrajectoryRecord) -> bool) -> Vec<usize> {
        let answered: HashSet<usize> = self.there.iter().filter(|one| good(one)).map(|one| one.id).collect();
        questions.retain(|id| !answered.contains(id));
        questions
    }

    /// Makes those of the tries that are not there yet.
    fn make(&mut self, what: &str, tries: Vec<Try>) -> Result<(), LearnError> {
        if tries.is_empty() {
            return Ok(());
        }
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
        word_bias: if one.path.is_some() { Vec::new() } else { bias_on(work, entry, one.sample, round) },
        guide: one.path.clone().map(|path| path as Arc<dyn Guide>),
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
        hinted: one.path.is_some(),
        reward,
        failed: failed.unwrap_or_default(),
        tools: tools.iter().map(|tool| tool.name.clone()).collect(),
        turns: task.trajectory().turns.iter().map(TurnRecord::from).collect(),
        tokens: [task.prompt_tokens(), task.completion_tokens()],
        millis: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// The logit bias on the words of a question. The first, greedy try has none. The others' is halved
/// from round to round.
pub(crate) fn question_bias(work: &Workplace, question: &str, sample: usize, round: &Round) -> Vec<WordBias> {
    bias(&work.task.settings.synthesize, sample, round).map_or_else(Vec::new, |bias| WordBias::all(work.vocabulary.asked(question), bias))
}

/// The same, and on the words by which pages name what decides the answer: `Who is older?` has none.
fn bias_on(work: &Workplace, entry: &QuestionRecord, sample: usize, round: &Round) -> Vec<WordBias> {
    bias(&work.task.settings.synthesize, sample, round).map_or_else(Vec::new, |bias| WordBias::all(telling_words(work, entry), bias))
}

/// The words that thoughts about a question should use: its own, and those by which pages name what
/// decides the answer.
fn telling_words(work: &Workplace, entry: &QuestionRecord) -> Vec<String> {
    let named: BTreeSet<&String> = entry.stated.iter().flat_map(|stated| &stated.words).collect();
    work.vocabulary.asked(&entry.question).into_iter().chain(named.into_iter().cloned()).collect()
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
    use autoact_tools::{Corpus, Page};

    use super::*;

    #[test]
    fn the_greedy_try_has_no_bias_and_the_bias_halves_by_round() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::open(dir.path(), "t", crate::run::Origin::new(), None).unwrap();
        let settings = Synthesize { question_bias: Some(6.0), ..Synthesize::default() };
        let of = |settings: &Synthesize, sample, round| bias(settings, sample, &Round::new(&run, round));
        assert_eq!([of(&settings, 0, 1), of(&settings, 1, 1), of(&settings, 3, 2)], [None, Some(6.0), Some(3.0)]);
        assert_eq!(of(&Synthesize::default(), 1, 1), None);
        assert_eq!(of(&settings, 6, 1), Some(6.0));
    }

    #[test]
    fn usual_words_are_those_of_pages_and_of_several_greedy_tries() {
        let page = Page { title: "Loire".into(), text: "It flows in France.".into() };
        let pages = Pages::new(Arc::new(Corpus::from_pages(vec![page]).unwrap()));
        let step = |thought: &str| TurnRecord::Step { thought: thought.into(), tool: "T".into(), input: None, observation: None };
        let of = |id, sample, thought: &str| TrajectoryRecord { id, sample, turns: vec![step(thought)], ..TrajectoryRecord::default() };
        let there = [of(0, 0, "Need the mouth."), of(1, 0, "need the mouht"), of(2, 1, "need a guess"), of(3, 1, "a guess")];
        let mut words: Vec<String> = usual(&pages, &there).into_iter().collect();
        words.sort();
        assert_eq!(words, ["flows", "france", "in", "it", "loire", "need", "the"]);
    }
}
