//! Mistakes that a trajectory makes once, and recovers from: it asks for another relation than the
//! question does, takes words for the name of a page, or searches where it should open a page. What
//! follows does not depend on them, so it teaches to read the question once more.

use autoact_base::random::Rng;
use autoact_trajectory::Trajectory;

use crate::misread::Misread;
use crate::question::{Asks, Kind, Question, QuestionPlan};
use crate::schema::RelationRef;
use crate::solve::{Environment, LOOKUP, NO_PAGE, NO_SENTENCE, RETRIEVE, SEARCH, SolveError, Solver, as_written, resolve};
use crate::text::say;
use crate::walk::Walk;

/// Frequencies of the mistakes about a page: another relation, words for its name, a search.
const KINDS: [f64; 3] = [0.72, 0.16, 0.12];
/// Frequencies of what is taken for a relation: one of any type, one of the same type, a word of
/// the question.
const NOUNS: [f64; 3] = [0.45, 0.25, 0.3];
/// The same where a value is taken for a name: the relation itself, the type of what is sought, a
/// word of the question.
const VALUE_NOUNS: [f64; 3] = [0.4, 0.3, 0.3];
/// Letters of a word that may be taken for a relation, at least.
const WORD: usize = 4;
/// Probability that two words are taken for a name, not one.
const TWO_WORDS: f64 = 0.3;
/// Probability that the first fact is asked for wrongly; else it is the second one.
const FIRST: f64 = 0.75;
/// Probability that the page is looked through for the wrong relation.
const LOOKS: f64 = 0.4;

/// A mistake that a walk is to make once.
#[derive(Debug, Clone)]
pub(crate) struct Mistake {
    wrong: Wrong,
    /// How many facts are read before.
    after: usize,
    /// The ends of the thoughts that make it; none before it was made.
    pub(crate) made: Vec<String>,
}

#[derive(Debug, Clone)]
enum Wrong {
    /// Another relation is asked for; `looks`: the page is looked through for it.
    Relation { noun: String, looks: bool },
    /// A page is to be opened by words that are no name.
    Words { noun: String, words: String },
    /// A page is searched for where it should be opened.
    Search { kind: String, noun: String },
    /// The page of a value is opened where one is to be searched for that has it.
    Value { noun: String },
}

impl Solver<'_> {
    /// A right trajectory that first asks for something else than the question does, and then goes
    /// on with what the question asks for.
    pub fn misread_asked(&self, question: &Question, env: &mut dyn Environment, rng: &mut Rng) -> Option<(Trajectory, Misread)> {
        let wrong = self.wrong(question, &resolve(self.base, question).ok()?, rng)?;
        let reads_one = matches!(wrong, Wrong::Value { .. }) || matches!(question.kind, Kind::Arithmetic);
        let after = usize::from(!rng.chance(FIRST) && !reads_one && !matches!(question.plan, QuestionPlan::NoQuestion { .. }));
        let (trajectory, made) = self.solve_after(Mistake { wrong, after, made: Vec::new() }, question, env, rng).ok()?;
        (!made.is_empty()).then_some((trajectory, Misread::Asked(made)))
    }

    fn wrong(&self, question: &Question, chain: &[RelationRef], rng: &mut Rng) -> Option<Wrong> {
        let schema = self.base.schema();
        let any = |rng: &mut Rng| rng.pick(&schema.relations().collect::<Vec<_>>()).copied();
        // the nouns of what is asked for, and the type of the first page
        let (nouns, kind): (Vec<&str>, Option<usize>) = match &question.plan {
            QuestionPlan::Calculate { .. } | QuestionPlan::NoQuestion { .. } => {
                let noun = schema.relation(any(rng)?).noun.clone();
                return Some(Wrong::Words { noun, words: words(question, rng)? });
            }
            QuestionPlan::Missing { asks: Asks::Owner { kind, noun, .. }, .. } => {
                return Some(Wrong::Value { noun: value_noun(question, noun, kind, rng)? });
            }
            QuestionPlan::Inverse { .. } => {
                let link = *chain.first()?;
                let (noun, kind) = (&schema.relation(link).noun, &schema.types[link.kind].noun);
                return Some(Wrong::Value { noun: value_noun(question, noun, kind, rng)? });
            }
            QuestionPlan::Missing { asks: Asks::Value { nouns, .. } | Asks::Both { nouns, .. }, name, .. } => {
                let kind = self.base.find(name).map(|id| self.base.entities()[id].kind);
                (nouns.iter().map(String::as_str).collect(), kind)
            }
            _ => (chain.iter().map(|link| schema.relation(*link).noun.as_str()).collect(), chain.first().map(|link| link.kind)),
        };
        Some(match rng.weighted(&KINDS)? {
            0 => {
                let noun = match rng.weighted(&NOUNS)? {
                    0 => schema.relation(any(rng)?).noun.clone(),
                    1 => rng.pick(&schema.types[kind?].relations)?.noun.clone(),
                    _ => word(question, rng)?,
                };
                if nouns.contains(&noun.as_str()) {
                    return None;
                }
                Wrong::Relation { noun, looks: rng.chance(LOOKS) }
            }
            // a name without a page ends the search: words that are none would teach to look on
            1 if matches!(&question.plan, QuestionPlan::Missing { name, .. } if self.base.find(name).is_none()) => return None,
            1 => Wrong::Words { noun: (*nouns.first()?).to_owned(), words: words(question, rng)? },
            _ => {
                let link = any(rng)?;
                Wrong::Search { kind: schema.types[link.kind].noun.clone(), noun: schema.relation(link).noun.clone() }
            }
        })
    }
}

fn value_noun(question: &Question, noun: &str, kind: &str, rng: &mut Rng) -> Option<String> {
    match rng.weighted(&VALUE_NOUNS)? {
        0 => Some(noun.to_owned()),
        1 => Some(kind.to_owned()),
        _ => word(question, rng),
    }
}

/// The words of a question that are not part of a name.
fn plain_words(question: &Question) -> impl Iterator<Item = Option<&str>> {
    let names = question.spelt.iter().map(|spelling| &spelling.written).chain(&question.entities).chain(question.written.as_ref());
    let mut names: Vec<String> = names.map(|name| name.to_lowercase()).collect();
    names.extend(match &question.plan {
        QuestionPlan::Missing { asks: Asks::Value { start: name, .. } | Asks::Owner { value: name, .. }, .. } => vec![name.to_lowercase()],
        QuestionPlan::Missing { asks: Asks::Both { a, b, .. }, .. } => vec![a.to_lowercase(), b.to_lowercase()],
        _ => Vec::new(),
    });
    question.text.split(' ').map(move |word| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let named = || names.iter().any(|name| name.contains(&word.to_lowercase()));
        (!word.is_empty() && !named()).then_some(word)
    })
}

/// A word of the question as a noun.
fn word(question: &Question, rng: &mut Rng) -> Option<String> {
    let long = |word: &&str| word.chars().count() >= WORD && word.chars().all(char::is_alphabetic);
    let words: Vec<&str> = plain_words(question).flatten().filter(long).collect();
    rng.pick(&words).map(|word| word.to_lowercase())
}

/// One or two words of the question that stand beside each other.
fn words(question: &Question, rng: &mut Rng) -> Option<String> {
    let words: Vec<Option<&str>> = plain_words(question).collect();
    let count = if rng.chance(TWO_WORDS) { 2 } else { 1 };
    let runs: Vec<String> =
        words.windows(count).filter_map(|run| Some(run.iter().copied().collect::<Option<Vec<_>>>()?.join(" "))).collect();
    rng.pick(&runs).cloned()
}

impl Walk<'_, '_> {
    /// Makes the mistake, if it is time for it: before a fact of the page `title` is asked for, or a
    /// page that has the value `title`; empty: before a step that needs no page. Returns the noun to
    /// ask for instead, if another relation is the mistake; others are made here.
    ///
    /// # Errors
    /// The words are the name of a page after all.
    pub(crate) fn go_wrong(&mut self, title: &str) -> Result<Option<String>, SolveError> {
        let style = self.solver.style;
        let Some(mistake) = self.mistake.as_mut().filter(|mistake| mistake.made.is_empty()) else { return Ok(None) };
        if let Some(fewer) = mistake.after.checked_sub(1) {
            mistake.after = fewer;
            return Ok(None);
        }
        let asked = as_written(&self.written, title).to_owned();
        let need = |noun: &str, name: &str| say(style.need, &[("r", noun), ("e", name)]);
        let (sentence, tool, params) = match &mistake.wrong {
            Wrong::Relation { noun, .. } => {
                // a thought uses the name in the question as long as no page says its title
                mistake.made = vec![need(noun, title), need(noun, &asked)];
                return Ok(Some(noun.clone()));
            }
            Wrong::Words { noun, words } => (need(noun, words), RETRIEVE, words.clone()),
            Wrong::Search { kind, noun } => {
                (say(style.seek, &[("t", kind), ("r", noun), ("v", &asked)]), SEARCH, format!("{noun} {asked}"))
            }
            Wrong::Value { noun } => (need(noun, &asked), RETRIEVE, asked),
        };
        let no_name = matches!(mistake.wrong, Wrong::Words { .. });
        mistake.made = vec![sentence.clone()];
        self.think(&sentence, &[]);
        let observation = self.act(tool, &params);
        if no_name && !observation.starts_with(NO_PAGE) {
            return Err(SolveError::Unknown(params));
        }
        Ok(None)
    }

    /// Looks for the wrong relation on the open page, if the mistake is one that does.
    ///
    /// # Errors
    /// The page has the word.
    pub(crate) fn look_in_vain(&mut self, wrong: Option<String>, title: &str) -> Result<(), SolveError> {
        let style = self.solver.style;
        let looks = matches!(self.mistake, Some(Mistake { wrong: Wrong::Relation { looks: true, .. }, .. }));
        let Some(noun) = wrong.filter(|_| looks && self.solver.base.find(title).is_some()) else { return Ok(()) };
        let slots = [("r", noun.as_str()), ("e", title)];
        self.think(style.hidden, &slots);
        self.think(style.need, &slots);
        let seen = self.act(LOOKUP, &noun);
        if seen.starts_with(NO_SENTENCE) { Ok(()) } else { Err(SolveError::Unknown(format!("{noun} of {title}"))) }
    }
}
