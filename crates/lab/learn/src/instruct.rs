//! Self-instruct: generates questions from the task's examples, in rounds. Accepted questions are
//! examples for later rounds.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use autoact_base::random::Rng;
use autoact_model::{Backend, GenerateRequest, Grammar, Sampling};
use autoact_score::normalize;
use autoact_trajectory::ToolSpec;

use crate::error::LearnError;
use crate::filter::{Cause, Known, check_format};
use crate::form::Forms;
use crate::keep::guessable;
use crate::options;
use crate::pool::{EnginePool, complete};
use crate::prompt::{Entry, few_shot, introduction, read_reply, reply_form};
use crate::records::{QuestionRecord, RejectedRecord, StatedRecord};
use crate::relation_words::beside;
use crate::run::Run;
use crate::stage::Stage;
use crate::store::Store;
use crate::unanswerable::{wanted, without_answer};
use crate::workplace::Workplace;

/// Maximum number of tokens of a reply: a question, its answer, and a margin of about 40.
const REPLY_TOKENS: usize = 120;
/// Probability that the examples in a prompt have as many pages as the new question.
const ALIKE: f64 = 0.7;
/// Attempts at a question without an answer, for each that is wanted.
const TRIES_PER_UNANSWERABLE: usize = 20;
/// Largest share, in percent, of the questions whose answer could be guessed (yes or no, one of two
/// names). There are more of these than of others, because any two pages make one.
const MOST_GUESSABLE: usize = 25;
/// With forms, self-instruct ends where fewer than `FEWEST_NEW` of the last `LATEST` generations were
/// accepted: then the pages have been asked what they can be asked in these forms.
const LATEST: u64 = 640;
const FEWEST_NEW: usize = 32;

/// The reply to one generation, with the pages that its prompt showed.
struct Reply {
    attempt: u64,
    pages: Vec<usize>,
    /// Whether it follows an example.
    formed: bool,
    /// What decides its answer, if it is certain though it could be guessed.
    stated: Vec<String>,
    /// Empty if no form gave a new question, so that nothing was generated.
    text: String,
}

/// Generates questions until the database is full or the attempts are used up.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn instruct(work: &Workplace, run: &mut Run) -> Result<(), LearnError> {
    let settings = &work.task.settings.instruct;
    let (mut questions, mut database) = Store::<QuestionRecord>::open(&run.path("questions.jsonl"))?;
    let (mut rejected, losses) = Store::<RejectedRecord>::open(&run.path("rejected.jsonl"))?;
    let mut causes: BTreeMap<String, u64> = BTreeMap::new();
    losses.iter().for_each(|loss| *causes.entry(loss.cause.clone()).or_default() += 1);
    let unanswerable: Vec<QuestionRecord> = database.extract_if(.., |entry| entry.answer.is_none()).collect();
    for example in work.task.examples.iter().skip(database.len()) {
        let pages = work.pages.about(&example.question, &example.answer);
        let entry = QuestionRecord {
            attempt: None,
            question: example.question.clone(),
            answer: Some(example.answer.clone()),
            options: example.options.clone(),
            pages: titles(work, &pages),
            ..QuestionRecord::default()
        };
        questions.push(&entry)?;
        database.push(entry);
    }
    let mut known = Known::new(settings.similarity, work.evaluation.iter().map(|question| question.question.as_str()));
    database.iter().chain(&unanswerable).for_each(|entry| known.insert(&entry.question));
    let done = |last: Option<u64>| last.map_or(0, |last| last + 1);
    let mut next = done(database.iter().filter_map(|entry| entry.attempt).max()).max(done(losses.iter().map(|loss| loss.attempt).max()));

    let pool = work.pool()?;
    let followed = settings.forms.is_some_and(|share| share > 0.0);
    let forms = if followed { Forms::of(&work.task.examples, &work.pages) } else { Forms::default() };
    let begun = (Instant::now(), next);
    let wanted = settings.questions.unwrap_or_default();
    work.view.begin(Stage::Instruct, "questions", database.len() as u64, wanted as u64);
    while database.len() < wanted && next < settings.attempts {
        work.go_on(Stage::Instruct)?;
        let round = settings.round as u64;
        let latest = database.iter().filter(|entry| entry.attempt.is_some_and(|attempt| attempt + LATEST >= next)).count();
        if !forms.is_empty() && next % round == 0 && next >= LATEST && latest < FEWEST_NEW {
            break;
        }
        let end = (next - next % round + round).min(settings.attempts);
        let seen: Vec<QuestionRecord> =
            database.iter().filter(|entry| entry.attempt.is_none_or(|attempt| attempt < next - next % round)).cloned().collect();
        let taken: HashSet<String> = seen.iter().map(|entry| normalize(&entry.question)).collect();
        let may_be_free = forms.is_empty() || free_ones_are_few(&seen, settings.forms.unwrap_or_default());
        let guessed = seen.iter().filter(|entry| guessable(&entry.question, entry.answer.as_deref())).count();
        let may_be_guessed = guessed * 100 <= seen.len() * MOST_GUESSABLE;
        let context = Context { work, pool, forms: &forms, seen: &seen, taken: &taken, may_be_free, may_be_guessed };
        let attempts: Vec<u64> = (next..end).collect();
        // replies are taken in the order of their attempts, so that a seed gives the same database
        let mut waiting: BTreeMap<u64, Reply> = BTreeMap::new();
        pool.each(
            &attempts,
            &work.stop,
            |attempt, backend| generate(&context, *attempt, backend),
            |_, reply| {
                waiting.insert(reply.attempt, reply);
                while let Some(reply) = waiting.remove(&next) {
                    next += 1;
                    if database.len() >= wanted {
                        continue;
                    }
                    match accept(work, &database, &known, &reply) {
                        Ok(entry) => {
                            known.insert(&entry.question);
                            questions.push(&entry)?;
                            database.push(entry);
                        }
                        Err(cause) => {
                            *causes.entry(cause.as_str().to_owned()).or_default() += 1;
                            rejected.push(&RejectedRecord {
                                attempt: reply.attempt,
                                cause: cause.as_str().to_owned(),
                                text: reply.text,
                            })?;
                        }
                    }
                }
                let rate = (next - begun.1) as f64 / begun.0.elapsed().as_secs_f64().max(1e-3);
                let kept = database.len().saturating_sub(work.task.examples.len()) as f64 / next.max(1) as f64;
                work.view.advance(database.len() as u64, &format!("{next} generated, {rate:.1}/s, {:.0}% kept", 100.0 * kept));
                Ok(())
            },
        )?;
    }
    work.go_on(Stage::Instruct)?;
    let unanswerable = add_unanswerable(work, &mut questions, &database, &mut known, unanswerable.len())?;
    questions.sync()?;
    let told: Vec<String> = causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    work.view.end(&format!(
        "{} questions of {next} generations, {unanswerable} more without an answer; rejected: {}",
        database.len(),
        told.join(", ")
    ));
    let learned = database.len() - work.task.examples.len().min(database.len());
    if learned == 0 {
        return Err(LearnError::TooFew {
            what: "self-instruct made no question",
            found: format!("{next} generations, all rejected: {}", told.join(", ")),
            fix: "give more examples in the words of the corpus, raise `instruct.attempts`, or use a more capable model".to_owned(),
        });
    }
    Ok(())
}

/// Adds the questions without an answer, made from the others. A run that was interrupted here
/// makes the same ones again, and those that are there already are duplicates. Returns how many
/// there are.
fn add_unanswerable(
    work: &Workplace,
    questions: &mut Store<QuestionRecord>,
    database: &[QuestionRecord],
    known: &mut Known,
    there: usize,
) -> Result<usize, LearnError> {
    let possible = work.library.specs().iter().any(ToolSpec::is_no_answer) && !work.task.has_options();
    let generated: Vec<&QuestionRecord> = database.iter().filter(|entry| entry.attempt.is_some()).collect();
    let target = if possible { wanted(database.len(), work.task.settings.instruct.unanswerable) } else { 0 };
    let mut count = there;
    for number in 0..target * TRIES_PER_UNANSWERABLE {
        if count >= target {
            break;
        }
        let mut rng = Rng::numbered(work.task.seed, number as u64, "unanswerable");
        let Some(from) = rng.pick(&generated) else { break };
        let Some(entry) = without_answer(&work.pages, from, &mut rng) else { continue };
        if known.check(&entry.question).is_ok() {
            known.insert(&entry.question);
            questions.push(&entry)?;
            count += 1;
        }
    }
    Ok(count)
}

fn stated(work: &Workplace, reply: &Reply) -> Vec<StatedRecord> {
    let all = reply.pages.iter().zip(&reply.stated);
    all.map(|(page, value)| StatedRecord { value: value.clone(), words: beside(value, *page, &work.pages) }).collect()
}

fn titles(work: &Workplace, pages: &[usize]) -> Vec<String> {
    pages.iter().filter_map(|page| work.pages.all().get(*page)).map(|page| page.title.clone()).collect()
}

/// Whether there are no more questions without a form than their share. They are seldom refused,
/// because what makes no sense is new, while questions in a form are soon asked.
fn free_ones_are_few(seen: &[QuestionRecord], forms: f64) -> bool {
    let formed = seen.iter().filter(|entry| entry.formed).count();
    let free = seen.iter().filter(|entry| !entry.formed && entry.attempt.is_some()).count();
    free as f64 * forms <= formed as f64 * (1.0 - forms)
}

/// What the generations of a round have in common.
struct Context<'a> {
    work: &'a Workplace,
    pool: &'a EnginePool,
    forms: &'a Forms,
    /// The database as it was before the round.
    seen: &'a [QuestionRecord],
    /// Its questions, normalised.
    taken: &'a HashSet<String>,
    may_be_free: bool,
    may_be_guessed: bool,
}

/// One generation: examples from the database as it was before the round, new pages, and the
/// model's reply.
fn generate(context: &Context<'_>, attempt: u64, backend: &Arc<dyn Backend>) -> Result<Reply, LearnError> {
    let Context { work, pool, forms, seen, taken, may_be_free, may_be_guessed } = *context;
    let settings = &work.task.settings.instruct;
    let mut rng = Rng::numbered(work.task.seed, attempt, "instruct");
    let shape = rng.weighted(&settings.pages).unwrap_or_default();
    // without forms nothing is drawn for them, so that a seed gives the questions that it gave before
    let formed = !forms.is_empty() && (rng.chance(settings.forms.unwrap_or_default()) || !may_be_free);
    let blank =
        if formed { forms.draw(&work.pages, |question| taken.contains(&normalize(question)), may_be_guessed, &mut rng) } else { None };
    let (mut pages, form, stated) = match blank {
        Some(blank) => (blank.pages, Some(blank.grammar), blank.values),
        None if may_be_free => (work.pages.draw(shape, &mut rng), None, Vec::new()),
        None => return Ok(Reply { attempt, pages: Vec::new(), formed, stated: Vec::new(), text: String::new() }),
    };
    let alike: Vec<&QuestionRecord> = seen.iter().filter(|entry| entry.pages.len() == pages.len()).collect();
    let all: Vec<&QuestionRecord> = seen.iter().collect();
    let from = if rng.chance(ALIKE) && alike.len() >= settings.shots { &alike } else { &all };
    let mut shots: Vec<Entry> = Vec::new();
    for _ in 0..settings.shots {
        let Some(entry) = rng.pick(from) else { break };
        let shot = Entry {
            pages: entry.pages.iter().filter_map(|title| work.pages.find(title)).map(|page| work.pages.line(page)).collect(),
            question: entry.question.clone(),
            answer: entry.answer.clone().unwrap_or_default(),
        };
        if !shots.contains(&shot) {
            shots.push(shot);
        }
    }
    let opening = introduction(&work.task, pool.is_chat());
    let prompt = loop {
        let lines: Vec<String> = pages.iter().map(|page| work.pages.line(*page)).collect();
        let prompt = few_shot(&opening, &shots, &lines);
        if pool.tokens(&prompt) <= settings.prompt_tokens {
            break prompt;
        }
        if shots.pop().is_none() && pages.pop().is_none() {
            break prompt;
        }
    };
    let formed = form.is_some();
    let request = GenerateRequest {
        sampling: Sampling::with_temperature(settings.temperature, rng.next_u64()),
        max_tokens: REPLY_TOKENS,
        grammar: Some(Grammar::Regex(form.unwrap_or_else(reply_form))),
        ..GenerateRequest::new(prompt)
    };
    let text = complete(backend.as_ref(), request)?.text;
    Ok(Reply { attempt, pages, formed, stated, text })
}

fn accept(work: &Workplace, database: &[QuestionRecord], known: &Known, reply: &Reply) -> Result<QuestionRecord, Cause> {
    let settings = &work.task.settings.instruct;
    if reply.text.is_empty() {
        return Err(Cause::Duplicate);
    }
    let (question, answer) = read_reply(&reply.text).ok_or(Cause::Malformed)?;
    let lines: Vec<String> = reply.pages.iter().map(|page| work.pages.line(*page)).collect();
    check_format(&question, &answer, &lines, settings.grounded)?;
    known.check(&question)?;
    let options = if work.task.has_options() {
        options::draw(work, database, &question, &answer, reply.attempt).ok_or(Cause::NoOptions)?
    } else {
        Vec::new()
    };
    Ok(QuestionRecord {
        attempt: Some(reply.attempt),
        question,
        answer: Some(answer),
        options,
        pages: titles(work, &reply.pages),
        formed: reply.formed,
        stated: stated(work, reply),
    })
}
