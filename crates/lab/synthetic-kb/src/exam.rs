//! The atlas's fixed question sets: seeded, balanced over types and relations, no duplicates.

use std::collections::{HashMap, HashSet};

use autoact_base::random::Rng;

use crate::base::KnowledgeBase;
use crate::question::{Kind, Mix, Question};
use crate::schema::RelationRef;
use crate::split::Split;
use crate::wording::{Families, HELD_OUT_FAMILIES, Wording};
use crate::wording_noise::Noise;

/// Number of questions of each kind: chains of one, two and three relations, comparisons, yes/no.
struct Counts {
    hops: [usize; 3],
    comparison: usize,
    yes_no: usize,
}

const HELD_OUT: Counts = Counts { hops: [90, 85, 65], comparison: 40, yes_no: 40 };
const DEV: Counts = Counts { hops: [35, 30, 25], comparison: 15, yes_no: 15 };
/// Fixed: another seed would give another question set. The number itself has no meaning.
const HELD_OUT_SEED: u64 = 20_261;
/// See [`HELD_OUT_SEED`].
const DEV_SEED: u64 = 20_262;
/// See [`HELD_OUT_SEED`].
const PHRASINGS_SEED: u64 = 20_263;
/// Number of questions in each held-out family of wordings.
const PHRASINGS: usize = 34;
/// See [`HELD_OUT_SEED`].
const TYPED_SEED: u64 = 20_264;
/// Number of questions as people type them.
const TYPED: usize = 400;
/// Differences among these, relative to all questions that pages answer.
const TYPED_DIFFERENCE: f64 = 0.06;
/// Fraction of these that are arithmetic.
const TYPED_ARITHMETIC: f64 = 0.05;
/// Fraction of these that have no answer.
const TYPED_UNANSWERABLE: f64 = 0.25;
/// Entities tried for one chain before it is skipped in this round.
const TRIES: usize = 30;
/// Draws for each comparison or yes/no question that is wanted.
const DRAWS: usize = 400;

pub(crate) fn held_out_set(base: &KnowledgeBase) -> Vec<Question> {
    Exam::new(base, HELD_OUT_SEED, Split::HeldOut).set(&HELD_OUT)
}

pub(crate) fn dev_set(base: &KnowledgeBase) -> Vec<Question> {
    let mut exam = Exam::new(base, DEV_SEED, Split::Train);
    exam.ids = held_out_set(base).into_iter().map(|question| question.id).collect();
    exam.set(&DEV)
}

/// Questions in held-out families of wordings. Their chains are not held out, and they have no
/// noise and no aliases, so that only the phrasing is new.
pub(crate) fn phrasing_set(base: &KnowledgeBase) -> Vec<Question> {
    let mut exam = Exam::new(base, PHRASINGS_SEED, Split::Train);
    exam.ids = held_out_set(base).into_iter().chain(dev_set(base)).map(|question| question.id).collect();
    let mut questions = Vec::new();
    for (family, _) in HELD_OUT_FAMILIES {
        let wording = Wording { families: Families::HeldOut(family), aliases: 0.0, noise: Noise::default() };
        let mut taken: HashMap<Vec<String>, usize> = HashMap::new();
        let mut yes_no: HashMap<String, usize> = HashMap::new();
        let wanted = questions.len() + PHRASINGS;
        for draw in 0..PHRASINGS * DRAWS {
            if questions.len() == wanted {
                break;
            }
            // chains of one and two relations, comparisons, yes/no; a family has no form of some
            let mix = match draw % 5 {
                0 | 1 => Mix::only_hops(1),
                2 => Mix::only_hops(2),
                3 => Mix::only_comparison(),
                _ => Mix::only_yes_no(),
            };
            let Some(question) = base.question(&mut exam.rng, &mix, exam.split) else { continue };
            let balanced = question.kind != Kind::YesNo || yes_no.get(&question.answer).copied().unwrap_or(0) < PHRASINGS.div_ceil(2);
            if !balanced || exam.ids.contains(&question.id) || taken.get(&question.chain).is_some_and(|count| *count > 1) {
                continue;
            }
            let Some(reworded) = base.reword(&question, &wording, &mut exam.rng) else { continue };
            exam.ids.insert(question.id.clone());
            *taken.entry(question.chain.clone()).or_default() += 1;
            *yes_no.entry(question.answer.clone()).or_default() += 1;
            questions.push(reworded);
        }
    }
    questions
}

/// Questions as people type them, of every kind, a quarter of them without an answer, in the
/// wordings and with the noise of training. A calibration is fitted on such questions: a threshold
/// holds
/// for the kind of questions that it was chosen on.
pub(crate) fn typed_set(base: &KnowledgeBase) -> Vec<Question> {
    let mut rng = Rng::new(TYPED_SEED);
    let mix = Mix { difference: TYPED_DIFFERENCE, ..Mix::default() }.with(TYPED_ARITHMETIC, TYPED_UNANSWERABLE);
    let mut texts = HashSet::new();
    let mut questions = Vec::new();
    for _ in 0..TYPED * DRAWS {
        if questions.len() == TYPED {
            break;
        }
        let Some(question) = base.question(&mut rng, &mix, Split::Train) else { continue };
        // what is no question for a fact has no other wording
        let question = base.reword(&question, &Wording::TRAIN, &mut rng).unwrap_or(question);
        if texts.insert(question.text.to_lowercase()) {
            questions.push(question);
        }
    }
    questions
}

struct Exam<'a> {
    base: &'a KnowledgeBase,
    rng: Rng,
    split: Split,
    ids: HashSet<String>,
}

impl<'a> Exam<'a> {
    fn new(base: &'a KnowledgeBase, seed: u64, split: Split) -> Exam<'a> {
        Exam { base, rng: Rng::new(seed), split, ids: HashSet::new() }
    }

    fn set(mut self, counts: &Counts) -> Vec<Question> {
        let mut questions = Vec::new();
        for (index, count) in counts.hops.iter().enumerate() {
            self.chains(index + 1, *count, &mut questions);
        }
        self.drawn(&Mix::only_comparison(), counts.comparison, &mut questions);
        self.drawn(&Mix::only_yes_no(), counts.yes_no, &mut questions);
        questions
    }

    /// Takes one chain of each type in turn, until there are enough questions.
    fn chains(&mut self, hops: usize, count: usize, questions: &mut Vec<Question>) {
        let mut by_type: Vec<Vec<Vec<RelationRef>>> = vec![Vec::new(); self.base.schema().types.len()];
        for chain in self.base.schema().chains(hops, self.split) {
            if let Some(first) = chain.first() {
                by_type[first.kind].push(chain.clone());
            }
        }
        by_type.retain(|chains| !chains.is_empty());
        by_type.iter_mut().for_each(|chains| self.rng.shuffle(chains));
        let mut next = vec![0; by_type.len()];
        let mut barren = 0;
        let wanted = questions.len() + count;
        let longest = by_type.iter().map(Vec::len).max().unwrap_or(0);
        while questions.len() < wanted && barren <= longest {
            let before = questions.len();
            for (chains, next) in by_type.iter().zip(&mut next) {
                if questions.len() == wanted {
                    break;
                }
                let chain = &chains[*next % chains.len()];
                *next += 1;
                let found = (0..TRIES).find_map(|_| {
                    let start = *self.rng.pick(self.base.of_type(chain.first()?.kind))?;
                    self.base.question_of_chain(start, chain, 0.0, &mut self.rng).filter(|question| !self.ids.contains(&question.id))
                });
                if let Some(question) = found {
                    self.ids.insert(question.id.clone());
                    questions.push(question);
                }
            }
            barren = if questions.len() == before { barren + 1 } else { 0 };
        }
    }

    /// Adds random questions, balanced over relations, with equal numbers of yes and no.
    fn drawn(&mut self, mix: &Mix, count: usize, questions: &mut Vec<Question>) {
        let mut taken: HashMap<(Vec<String>, bool), usize> = HashMap::new();
        let mut answers: HashMap<String, usize> = HashMap::new();
        let (mut most, mut made) = (2, 0);
        for draw in 0..count * DRAWS {
            if made == count {
                break;
            }
            if draw > 0 && draw % (count * DRAWS / 8) == 0 {
                most += 1;
            }
            let Some(question) = self.base.question(&mut self.rng, mix, self.split) else { continue };
            let key = (question.chain.clone(), question.answer == "yes");
            let balanced = question.kind != Kind::YesNo || answers.get(&question.answer).copied().unwrap_or(0) < count.div_ceil(2);
            if balanced && taken.get(&key).copied().unwrap_or(0) < most && self.ids.insert(question.id.clone()) {
                *taken.entry(key).or_default() += 1;
                *answers.entry(question.answer.clone()).or_default() += 1;
                questions.push(question);
                made += 1;
            }
        }
    }
}
