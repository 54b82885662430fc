//! The known path to an answer: the pages of a question in order, and what each of them leads to. It
//! chooses among what the agents propose in tries at questions that they do not answer right by
//! themselves. This is the rationalisation of STaR (Zelikman and others, 2022), step by step.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use autoact_in_process::Guide;
use autoact_model::{WordBias, WordLimit};
use autoact_score::{Metric, normalize};
use autoact_trajectory::{Terminal, Thought, Trajectory};

use crate::filter::within;
use crate::keep::{deciding_words, guessable};
use crate::misnamed::Misnamed;
use crate::records::{QuestionRecord, StatedRecord};
use crate::relation_words::{compares, is_telling, lower_words, says};

/// Maximum number of proposals of a call.
const PROPOSALS: u32 = 8;
/// Growth of the bias on hints with each rejected proposal, and its maximum, in `question_bias`. Too
/// small a bias does not change what a thought says, and too great a one breaks its sentences.
const BIAS_STEP: f32 = 0.5;
const MOST_BIAS: f32 = 2.0;
/// So many words before a value on a page are told from it.
const LEADING_WORDS: usize = 3;
/// A thought that has a word more often goes round in circles.
const MOST_TIMES: usize = 5;
/// The bias on a word of a rejected thought, for each that has it, in `question_bias`: `Done.` where
/// another page is to be read, `not shown` where the value is. Words that were read or asked have none.
const REJECTED_BIAS: f32 = -0.3;

/// A text that leads to the answer, or the answer itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The text.
    pub(crate) text: String,
    /// The name of the page that has it. A thought names the page first, and then what it says.
    pub(crate) after: String,
}

/// What the pages of a question lead to: the names of all but the first, and the answer. What the
/// question says itself is none. Of an answer that could be guessed, what decides it.
pub(crate) fn hints(entry: &QuestionRecord) -> Vec<Hint> {
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

/// The words that all pages have beside what decides.
fn shared(entry: &QuestionRecord) -> Vec<String> {
    let Some((first, others)) = entry.stated.split_first().filter(|(_, others)| !others.is_empty()) else { return Vec::new() };
    let has = |stated: &StatedRecord, word: &str| stated.words.iter().any(|other| says(other, word));
    first.words.iter().filter(|word| others.iter().all(|other| has(other, word))).cloned().collect()
}

/// What thoughts of a round may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wording {
    /// Words of other thoughts, and of the corpus.
    pub(crate) usual: HashSet<String>,
    /// Words that stand in the place of others.
    pub(crate) misnamed: Misnamed,
    /// Words of many thoughts that are about nothing in particular: `need`, `answer`, `done`.
    pub(crate) frame: HashSet<String>,
    /// The same, of thoughts about comparisons.
    pub(crate) frame_of_comparisons: HashSet<String>,
}

/// The known path to the answer of a question.
#[derive(Debug)]
pub(crate) struct KnownPath {
    question: String,
    answer: String,
    metric: Metric,
    hints: Vec<Hint>,
    /// Whether the answer follows from the hints, and is none of them.
    decided: bool,
    /// Words of which a thought that says what decides has to have one; empty: any will do.
    deciding: Vec<String>,
    /// The words by which the question and all pages name what it is about.
    words: Vec<String>,
    /// The bias on these.
    bias: f32,
    wording: Arc<Wording>,
}

impl KnownPath {
    /// The path of a question in the form of the examples. `None`: there is nothing to hint at.
    pub(crate) fn of(entry: &QuestionRecord, metric: Metric, words: Vec<String>, bias: f32, wording: &Arc<Wording>) -> Option<KnownPath> {
        let (hints, answer) = (hints(entry), entry.answer.clone()?);
        let words: Vec<String> = words.into_iter().filter(|word| is_telling(&word.to_lowercase())).chain(shared(entry)).collect();
        (entry.formed && !hints.is_empty()).then(|| KnownPath {
            question: entry.question.clone(),
            answer,
            metric,
            hints,
            decided: !entry.stated.is_empty(),
            deciding: if words.is_empty() { deciding_words(&entry.stated, &entry.question) } else { words.clone() },
            words,
            bias,
            wording: Arc::clone(wording),
        })
    }

    /// How many of the hints observations have, in their order: each after a thought that names its
    /// page. The first page may go by another name.
    fn seen(&self, trajectory: &Trajectory) -> usize {
        let mut seen = 0;
        let mut named: HashSet<usize> = HashSet::from([0]);
        for step in trajectory.steps() {
            named.extend((0..self.hints.len()).filter(|at| names(&step.thought, &self.hints[*at].after)));
            let Some(text) = step.observation.as_ref() else { continue };
            while self.hints.get(seen).is_some_and(|hint| named.contains(&seen) && text.contains(hint.text.as_str())) {
                seen += 1;
            }
        }
        seen
    }

    /// Whether a word of any thought stands where a thought names what it looks for: `look of Heron Pond`,
    /// `Heron Pond's so`.
    fn asks_for_nothing(&self, thought: &str) -> bool {
        let words = lower_words(thought);
        let is_frame = |at: usize| words.get(at).is_some_and(|word| self.frame().contains(word) && !says(&self.question, word));
        self.hints.iter().map(|hint| lower_words(&hint.after)).filter(|name| !name.is_empty()).any(|name| {
            let mut places = words.windows(name.len()).enumerate().filter(|(_, some)| **some == name[..]);
            places.any(|(at, _)| {
                let before = at > 1 && words[at - 1] == "of" && is_frame(at - 2);
                before || (words.get(at + name.len()).is_some_and(|word| word == "s") && is_frame(at + name.len() + 1))
            })
        })
    }

    /// The words of any thought about such a question.
    fn frame(&self) -> &HashSet<String> {
        if compares(&self.question) { &self.wording.frame_of_comparisons } else { &self.wording.frame }
    }

    /// Whether a thought says a value and no more of its sentence: neither what follows it there, as in
    /// `The depth is 40 centimetres deep.`, nor what comes before, unless it was asked for. A script
    /// without case has no words that could.
    fn is_whole(&self, trajectory: &Trajectory, thought: &str, value: &str) -> bool {
        let before = |text: &str, at: usize| lower_words(&text[..at]).into_iter().rev();
        let observations = trajectory.steps().filter_map(|step| step.observation.as_deref());
        let leading: HashSet<String> = observations
            .flat_map(|text| text.match_indices(value).flat_map(|(at, _)| before(text, at).take(LEADING_WORDS)).collect::<Vec<_>>())
            .filter(|word| is_telling(word) && !says(&self.question, word) && !self.wording.frame.contains(word))
            .filter(|word| !self.words.iter().any(|asked| says(asked, word)))
            .collect();
        let is_alone = |at: usize| {
            let rest = thought[at + value.len()..].trim_start_matches(' ');
            !rest.starts_with(char::is_alphanumeric) && before(thought, at).next().is_none_or(|word| !leading.contains(&word))
        };
        is_caseless(value) || thought.match_indices(value).any(|(at, _)| is_alone(at))
    }

    /// The words of the question, and of what was read.
    fn read(&self, trajectory: &Trajectory) -> HashSet<String> {
        let read = trajectory.steps().filter_map(|step| step.observation.as_deref());
        read.chain([self.question.as_str()]).flat_map(lower_words).collect()
    }

    /// Whether all words are known, and call what was asked for by its name. A bias makes a small model
    /// break words. Those of a script without case count as known, because what is found there between
    /// spaces is no word.
    fn is_worded(&self, trajectory: &Trajectory, thought: &str) -> bool {
        let read = self.read(trajectory);
        let known = |word: &String| read.contains(word) || self.wording.usual.contains(word) || is_caseless(word);
        lower_words(thought).iter().all(known) && !self.wording.misnamed.is_in(thought, &self.question, &read)
    }
}

impl Guide for KnownPath {
    fn proposals(&self) -> u32 {
        PROPOSALS
    }

    fn bias(&self, trajectory: &Trajectory, rejected: &[Thought]) -> Vec<WordBias> {
        let strength = (BIAS_STEP * rejected.len() as f32).min(MOST_BIAS);
        let said = |hint: &Hint| trajectory.steps().any(|step| step.thought.contains(hint.text.as_str()));
        let open = self.hints.iter().take(self.seen(trajectory)).filter(|hint| !said(hint));
        let hint = |hint: &Hint| WordBias { word: hint.text.clone(), bias: self.bias * strength, after: hint.after.clone() };
        let mut bias: Vec<WordBias> = open.clone().map(hint).collect();
        // pages do not always begin with their own names, by which a thought calls them
        bias.extend(WordBias::all(open.map(|hint| hint.after.clone()), self.bias * strength));
        // the next page comes after what has led to it
        let seen = self.seen(trajectory);
        let after = seen.checked_sub(1).map(|at| &self.hints[at]).filter(|hint| !said(hint)).map_or("", |hint| &hint.text);
        let next = self.hints.get(seen).filter(|next| !trajectory.steps().any(|step| names(&step.thought, &next.after)));
        bias.extend(next.map(|next| WordBias { word: next.after.clone(), bias: self.bias * strength, after: after.to_owned() }));
        bias.extend(WordBias::all(self.words.iter().cloned(), self.bias * strength.min(1.0)));
        let read = self.read(trajectory);
        let mut less: BTreeMap<&str, f32> = BTreeMap::new();
        for thought in rejected {
            let words = thought.thought.split(|c: char| !c.is_alphanumeric());
            let words: BTreeSet<&str> = words.filter(|word| !word.is_empty() && !read.contains(&word.to_lowercase())).collect();
            words.into_iter().for_each(|word| *less.entry(word).or_default() += self.bias * REJECTED_BIAS);
        }
        bias.extend(less.into_iter().map(|(word, bias)| WordBias { word: word.to_owned(), bias, after: String::new() }));
        bias.retain(|word| word.bias != 0.0);
        bias
    }

    /// Words of the question and of what was read, and those of any thought.
    fn limit(&self, trajectory: &Trajectory) -> Option<WordLimit> {
        let read = trajectory.steps().filter_map(|step| step.observation.as_ref());
        let named = self.words.iter().chain(&self.deciding).chain(self.hints.iter().map(|hint| &hint.after));
        let texts = read.chain([&self.question]).chain(named);
        let words = texts.flat_map(|text| spelt_words(text));
        // what was said before may be computed with: `1994 < 1998`
        let said = |hint: &&Hint| trajectory.steps().any(|step| names(&step.thought, &hint.text));
        let open = self.hints.iter().take(self.seen(trajectory)).filter(|hint| !said(hint)).map(|hint| hint.text.clone());
        Some(WordLimit::new(words.map(str::to_owned).chain(self.frame().iter().cloned())).with_whole(open))
    }

    fn params_bias(&self, trajectory: &Trajectory, rejected: usize) -> Vec<WordBias> {
        let strength = (BIAS_STEP * rejected as f32).min(MOST_BIAS);
        let ends = trajectory.open_step().and_then(|step| trajectory.tool(&step.tool)).is_some_and(|tool| tool.terminal.is_some());
        let next = self.hints.get(self.seen(trajectory)).map(|hint| &hint.after);
        let wanted = if ends { Some(&self.answer) } else { next };
        if rejected == 0 { Vec::new() } else { WordBias::all(wanted.cloned(), self.bias * strength) }
    }

    /// It says what was seen and not yet said, names the page that has the next one, and answers once
    /// all are seen.
    fn accepts_thought(&self, trajectory: &Trajectory, thought: &Thought) -> bool {
        let seen = self.seen(trajectory);
        let said_before = |hint: &Hint| trajectory.steps().any(|step| names(&step.thought, &hint.text));
        let said = |hint: &Hint| said_before(hint) || names(&thought.thought, &hint.text);
        let leads_on = match trajectory.tool(&thought.tool).and_then(|tool| tool.terminal) {
            Some(Terminal::NoAnswer) => false,
            Some(Terminal::Answer) => seen == self.hints.len(),
            None => match self.hints.get(seen) {
                Some(next) => names(&thought.thought, &next.after) || (seen == 0 && !names(&self.question, &next.after)),
                None => self.decided,
            },
        };
        let asks = self.words.is_empty() || self.words.iter().any(|word| says(&thought.thought, word) || said_word(trajectory, word));
        // what decides is called by its name, or the filter drops the try
        let named = self.deciding.is_empty()
            || self.hints[..seen].iter().all(said_before)
            || self.deciding.iter().any(|word| says(&thought.thought, word));
        let whole = self.hints[..seen].iter().all(|hint| said_before(hint) || self.is_whole(trajectory, &thought.thought, &hint.text));
        !repeats(&thought.thought)
            && !self.asks_for_nothing(&thought.thought)
            && leads_on
            && asks
            && named
            && whole
            && self.hints[..seen].iter().all(said)
            && self.is_worded(trajectory, &thought.thought)
    }

    /// They are the answer, or words of the thought that lead to the next page or to what it says.
    fn accepts_params(&self, trajectory: &Trajectory, params: &str, seen: Option<&str>) -> bool {
        let Some(text) = seen else {
            return self.metric.score(&self.question, Some(params), Some(&self.answer)).0;
        };
        let next = self.hints.get(self.seen(trajectory));
        let thought = trajectory.open_step().map(|step| step.thought.as_str()).unwrap_or_default();
        names(thought, params) && next.is_none_or(|next| text.contains(next.text.as_str()) || normalize(params) == normalize(&next.after))
    }
}

/// Whether a text has a name or a value, whatever follows it: `Car 421's length`.
fn names(text: &str, name: &str) -> bool {
    within(&lower_words(name).join(" "), &lower_words(text).join(" ")) || (is_caseless(name) && text.contains(name))
}

/// The words of a text as they are spelt, with points and commas in numbers.
fn spelt_words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | ','));
    parts.flat_map(|part| {
        let part = part.trim_matches(['.', ',']);
        let is_number = part.starts_with(char::is_numeric) && part.ends_with(char::is_numeric);
        let pieces: Vec<&str> = if is_number { vec![part] } else { part.split(['.', ',']).collect() };
        pieces.into_iter().filter(|piece| !piece.is_empty())
    })
}

/// Whether an earlier thought has a word.
fn said_word(trajectory: &Trajectory, word: &str) -> bool {
    trajectory.steps().any(|step| says(&step.thought, word))
}

/// Whether a text says the same word again and again.
fn repeats(text: &str) -> bool {
    let mut counts: HashMap<String, usize> = HashMap::new();
    lower_words(text).into_iter().any(|word| {
        let count = counts.entry(word).or_default();
        *count += 1;
        *count > MOST_TIMES
    })
}

/// Whether a text has letters of a script without case, which has no spaces between words.
fn is_caseless(text: &str) -> bool {
    text.chars().any(|c| c.is_alphabetic() && !c.is_lowercase() && !c.is_uppercase())
}

#[cfg(test)]
mod tests;
