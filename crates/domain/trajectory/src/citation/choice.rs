//! Which sentences support what the agents said.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use autoact_base::sentences::sentences;

use crate::citation::passage::{Passage, Passages};
use crate::citation::words::{NAME, Words, once, words};
use crate::history::Step;

/// An answer of more words than this is a text: its words are no values by themselves.
const SHORT_ANSWER: usize = 8;
/// What a word of a short answer counts.
const ANSWERED: u32 = 4;
/// The least words that a passage shares with a claim, or with a claim and the question.
const LEAST_SHARED: usize = 2;
/// Claims that are looked at, those of the last steps first, claims of one step, and words of each:
/// bounds on the work.
const MAX_CLAIMS: usize = 128;
const MAX_STEP_CLAIMS: usize = 16;
const MAX_CLAIM_WORDS: usize = 32;
/// Sentences of one source that are cited.
const MAX_PER_SOURCE: usize = 2;

/// Something that an agent said: a sentence of a thought, an input, or the answer.
struct Claim {
    /// The place of its step.
    step: usize,
    words: Words,
    /// A sentence of a thought or of a longer answer: a statement of its own.
    stated: bool,
}

/// A passage as the support of a claim.
struct Support {
    passage: usize,
    /// The weight of the claim's words that the passage or its title has.
    covered: u32,
    /// The same, and more for a passage of the page that the claim names.
    score: u32,
    /// Words of the claim in the passage that nobody knew before it was shown.
    new: BTreeSet<String>,
    /// All words of the claim in the passage.
    shared: BTreeSet<String>,
}

pub(super) struct Choice<'a> {
    steps: &'a [&'a Step],
    answer: &'a str,
    question: Words,
    answered: Words,
    passages: &'a Passages,
    /// The first step whose agents knew a word before its observation. Words of the question are
    /// known at 0.
    known: BTreeMap<String, usize>,
    chosen: Vec<usize>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(question: &str, steps: &'a [&'a Step], answer: &'a str, passages: &'a Passages) -> Choice<'a> {
        let question = words(question);
        let mut known: BTreeMap<String, usize> = question.keys().map(|word| (word.clone(), 0)).collect();
        for (at, step) in steps.iter().enumerate() {
            let said = words(&step.thought).into_keys().chain(step.params.iter().flat_map(|params| words(params).into_keys()));
            said.for_each(|word| {
                known.entry(word).or_insert(at);
            });
        }
        let answered = words(answer);
        let answered = if answered.len() > SHORT_ANSWER { Words::new() } else { answered };
        Choice { steps, answer, question, answered, passages, known, chosen: Vec::new() }
    }

    /// The passages that support the answer, the most important first.
    ///
    /// Twice from the answer back to the first step: the first time each statement gets the passage
    /// that it restates. That tells which steps were of use. The second time, what these steps were
    /// asked for is a claim too, and so is the answer; and each name or number that no passage so
    /// far explains gets one.
    pub(super) fn run(mut self) -> Vec<usize> {
        for whole in [false, true] {
            let mut needed: BTreeSet<String> = words(self.answer).into_keys().collect();
            let mut left = MAX_CLAIMS;
            for at in (0..self.steps.len()).rev() {
                let used = self.is_used(at);
                if used {
                    let params = self.steps[at].params.as_deref().unwrap_or_default();
                    needed.extend(words(params).into_keys());
                }
                if used && self.steps[at].sources.is_empty() {
                    needed.extend(words(&self.steps[at].thought).into_keys());
                }
                let claims = self.claims(at, used && whole, left);
                left -= claims.len();
                for claim in claims.iter().filter(|claim| claim.stated) {
                    self.restated(claim, &mut needed);
                }
                for claim in claims.iter().filter(|_| whole) {
                    self.explain(claim, &mut needed);
                }
            }
        }
        self.chosen
    }

    /// Whether a step led to the answer, as far as is known: it is the answer's own, or something
    /// that it showed is cited, or it computed (nothing that it shows has a source). A step with
    /// another answer did not.
    fn is_used(&self, at: usize) -> bool {
        let step = self.steps[at];
        let last = at + 1 == self.steps.len();
        let computed = step.sources.is_empty() && step.observation.is_some();
        last || computed || self.gave_the_answer(at) || self.chosen.iter().any(|chosen| self.passages.all[*chosen].step == at)
    }

    /// Whether it is a step of a terminal tool with the input that the last one has.
    fn gave_the_answer(&self, at: usize) -> bool {
        let step = self.steps[at];
        step.observation.is_none() && self.steps.last().is_some_and(|last| (&last.tool, &last.params) == (&step.tool, &step.params))
    }

    /// What the agents say in a step: what they think, and with `inputs` what they ask for or
    /// answer.
    fn claims(&self, at: usize, inputs: bool, most: usize) -> Vec<Claim> {
        let step = self.steps[at];
        let rejected = step.observation.is_none() && !self.gave_the_answer(at);
        let thoughts = sentences(&step.thought).into_iter().map(|sentence| (sentence, true));
        let last = at + 1 == self.steps.len();
        let input = if last { self.answer } else { step.params.as_deref().unwrap_or_default() };
        let text = last && self.answered.is_empty();
        let inputs = sentences(input).into_iter().filter(|_| inputs).map(|sentence| (sentence, text));
        let claim = |(text, stated)| {
            let mut words = words(text);
            words.iter_mut().filter(|(word, _)| self.answered.contains_key(once(word))).for_each(|(_, weight)| *weight = ANSWERED);
            while words.len() > MAX_CLAIM_WORDS {
                words.pop_last();
            }
            Claim { step: at, words, stated }
        };
        let claims = inputs.chain(thoughts).filter(|_| !rejected).map(claim).filter(|claim| !claim.words.is_empty());
        claims.take(most.min(MAX_STEP_CLAIMS)).collect()
    }

    /// Chooses the passage that the claim restates, if there is one that the answer needs.
    fn restated(&mut self, claim: &Claim, needed: &mut BTreeSet<String>) {
        let total: u32 = claim.words.values().sum();
        let mut supports = self.supports(claim, false);
        supports.retain(|support| support.covered * 2 >= total);
        let Some(best) = self.best(supports.iter()) else { return };
        if claim.step + 1 == self.steps.len() || self.is_needed(best, needed) {
            self.choose(best, claim, needed);
        }
    }

    /// Chooses passages for the names and numbers of the claim that are in none so far.
    fn explain(&mut self, claim: &Claim, needed: &mut BTreeSet<String>) {
        let mut open: BTreeSet<String> = claim.words.iter().filter(|(_, weight)| **weight >= NAME).map(|(word, _)| word.clone()).collect();
        open.retain(|word| self.known.get(word) != Some(&0));
        for chosen in &self.chosen {
            let passage = &self.passages.all[*chosen];
            if passage.step < claim.step {
                open.retain(|word| !passage.words.contains_key(word) && !passage.title.contains_key(word));
            }
        }
        if open.is_empty() {
            return;
        }
        let mut supports = self.supports(claim, true);
        supports.retain(|support| self.is_about(claim, support));
        while let Some(best) = self.best(supports.iter().filter(|support| support.new.iter().any(|word| open.contains(word)))) {
            open.retain(|word| !best.shared.contains(word));
            if claim.step + 1 == self.steps.len() || self.is_needed(best, needed) {
                self.choose(best, claim, needed);
            }
        }
    }

    /// Whether more than a single word speaks for it: the `2` of `Step 2` is on many pages.
    fn is_about(&self, claim: &Claim, support: &Support) -> bool {
        let passage = &self.passages.all[support.passage];
        let asked = |word: &String| claim.words.contains_key(word) || self.question.contains_key(word);
        let about = passage.words.keys().filter(|word| asked(word)).count();
        // an input is a name alone: the title tells of what
        let titled = passage.title.keys().filter(|word| !passage.words.contains_key(*word)).count();
        about + if claim.stated { 0 } else { titled } >= LEAST_SHARED
    }

    /// The passages shown before a claim that support it: they have a name or number of it that was
    /// not known before, or nearly all that it says beside their title. With `titles`, a title that
    /// is the answer is a name like any other.
    fn supports(&self, claim: &Claim, titles: bool) -> Vec<Support> {
        let candidates = self.passages.with_any(&claim.words).into_iter();
        candidates.filter(|at| self.passages.all[*at].step < claim.step).filter_map(|at| self.support(claim, at, titles)).collect()
    }

    fn support(&self, claim: &Claim, at: usize, titles: bool) -> Option<Support> {
        let passage = &self.passages.all[at];
        // a claim with every word of a title is about its page
        let named = !passage.title.is_empty() && passage.title.keys().all(|word| claim.words.contains_key(word));
        let (mut covered, mut beside, mut beside_shared) = (0, 0, Vec::new());
        let (mut new, mut shared) = (BTreeSet::new(), BTreeSet::new());
        for (word, weight) in &claim.words {
            let (has, titled) = (passage.words.contains_key(word), passage.title.contains_key(word));
            covered += if has || titled { *weight } else { 0 };
            beside += if titled { 0 } else { *weight };
            if !has {
                continue;
            }
            shared.insert(word.clone());
            if !titled {
                beside_shared.push(*weight);
            }
            let telling = *weight >= NAME || named && claim.stated;
            let unknown = self.known.get(word).is_none_or(|known| *known > passage.step);
            // a title says what was opened, not what it says; unless that answers
            if telling && unknown && (!titled || titles && self.answered.contains_key(word)) {
                new.insert(word.clone());
            }
        }
        let nearly_all = beside_shared.iter().sum::<u32>() * 3 >= beside * 2 && !beside_shared.is_empty();
        // one of the two that make it sure, and a name, is enough
        let whole = nearly_all
            && match (named, beside_shared.len() >= LEAST_SHARED) {
                (true, true) => true,
                (false, false) => false,
                _ => shared.iter().any(|word| claim.words.get(word).is_some_and(|weight| *weight >= NAME)),
            };
        let score = covered + if named { NAME } else { 0 };
        (whole || !new.is_empty()).then_some(Support { passage: at, covered, score, new, shared })
    }

    /// The one with the most; of equal ones that of the last step, then the one with more of the
    /// question, then the first of its page.
    fn best<'s>(&self, supports: impl Iterator<Item = &'s Support>) -> Option<&'s Support> {
        let rank = |support: &&Support| {
            let Passage { step, source, number, words, title, .. } = &self.passages.all[support.passage];
            let has = |word: &String| words.contains_key(word) || title.contains_key(word);
            let asked: u32 = self.question.iter().filter(|(word, _)| has(word)).map(|(_, weight)| *weight).sum();
            (support.score, *step, asked, Reverse((*source, *number)))
        };
        supports.max_by_key(rank)
    }

    /// Whether the answer, or what led to it, uses what the passage says; or whether the question
    /// asks about its page.
    fn is_needed(&self, support: &Support, needed: &BTreeSet<String>) -> bool {
        let passage = &self.passages.all[support.passage];
        let used = if support.new.is_empty() { &support.shared } else { &support.new };
        let asked = !passage.title.is_empty() && passage.title.keys().all(|word| self.question.contains_key(word));
        asked || used.iter().any(|word| needed.contains(word))
    }

    fn choose(&mut self, support: &Support, claim: &Claim, needed: &mut BTreeSet<String>) {
        needed.extend(claim.words.keys().cloned());
        let passage = &self.passages.all[support.passage];
        let of_source = |chosen: &&usize| {
            let other = &self.passages.all[**chosen];
            (other.step, other.source) == (passage.step, passage.source)
        };
        if !self.chosen.contains(&support.passage) && self.chosen.iter().filter(of_source).count() < MAX_PER_SOURCE {
            self.chosen.push(support.passage);
        }
    }
}
