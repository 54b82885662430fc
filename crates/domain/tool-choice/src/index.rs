//! The tools of a library, ready to be ranked.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use autoact_trajectory::{RankedTool, ToolBackground, ToolSpec};

use crate::choice::{ChoiceOptions, Merge};
use crate::text::{Fields, stems};

/// How often a word of each field counts (BM25F with one length for all fields): of the name, the
/// definition, the details, the parameters, and of the title and the description of what the tool
/// belongs to. Chosen on the `dev` questions of `bench/tool-choice`, like all numbers here.
const WEIGHTS: [f64; 6] = [2.0, 2.0, 2.0, 0.5, 2.0, 0.5];
/// BM25's saturation of repeated words.
const K1: f64 = 1.2;
/// BM25's share of the length.
const B: f64 = 0.5;
/// Of reciprocal ranks: what lower ranks still count.
const RANKS: f64 = 60.0;
/// The share of words in a score that has both.
const WORDS: f64 = 0.4;
/// The share of what the tool belongs to in its meaning.
const SET: f64 = 0.25;

/// The tools of a library, ready to be ranked by questions. Made once for a library.
#[derive(Debug, Clone)]
pub struct ToolIndex {
    names: Vec<String>,
    /// What a model of meaning is given of each tool, and of what it belongs to.
    texts: Vec<[String; 2]>,
    /// For each stem the tools that have it, with its BM25 weight there.
    postings: HashMap<String, Posting>,
    /// What a stem weighs that no tool has.
    rarest: f64,
    /// For each tool the vectors of its two texts; none at all without a model.
    vectors: Vec<[Vec<f32>; 2]>,
}

#[derive(Debug, Clone)]
struct Posting {
    /// How much the stem tells.
    weight: f64,
    /// Tools, and how much the stem counts in each: 0 to 1.
    tools: Vec<(usize, f64)>,
}

/// What each tool scores for a question.
struct Scores {
    words: Vec<f64>,
    /// `None`: words alone are compared.
    meaning: Option<Vec<f64>>,
    merged: Vec<f64>,
}

impl Scores {
    /// The better first; equal ones in the library's order.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.merged[b].total_cmp(&self.merged[a]).then(a.cmp(&b))
    }
}

impl ToolIndex {
    /// The index of these tools, by words alone.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a ToolSpec, &'a ToolBackground)>) -> ToolIndex {
        let (mut names, mut texts, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let mut counts: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        for (at, (spec, background)) in tools.into_iter().enumerate() {
            let fields = Fields::of(spec, background);
            texts.push([fields.own_text(), fields.set_text()]);
            names.push(spec.name.clone());
            let Fields { name, definition, details, parameters, title, about } = fields;
            let mut own: HashMap<String, f64> = HashMap::new();
            for (field, weight) in [name, definition, details, parameters, title, about].iter().zip(WEIGHTS) {
                for stem in stems(field) {
                    *own.entry(stem).or_default() += weight;
                }
            }
            lengths.push(own.values().sum::<f64>());
            for (stem, count) in own {
                counts.entry(stem).or_default().push((at, count));
            }
        }
        let total = names.len() as f64;
        let average = lengths.iter().sum::<f64>() / total.max(1.0);
        let weight = |tools: usize| (1.0 + (total - tools as f64 + 0.5) / (tools as f64 + 0.5)).ln();
        let saturated = |(at, count): (usize, f64)| {
            let length = 1.0 - B + B * lengths[at] / average.max(f64::MIN_POSITIVE);
            (at, count / K1.mul_add(length, count))
        };
        let postings = counts.into_iter().map(|(stem, tools)| {
            let weight = weight(tools.len());
            (stem, Posting { weight, tools: tools.into_iter().map(saturated).collect() })
        });
        ToolIndex { names, texts, postings: postings.collect(), rarest: weight(0), vectors: Vec::new() }
    }

    /// The texts that meaning is compared by, each once: whoever has a model makes a vector of each.
    pub fn texts(&self) -> BTreeSet<&str> {
        self.texts.iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect()
    }

    /// The same with vectors of length 1 for all of its [`texts`](Self::texts); where one is missing,
    /// words alone.
    #[must_use]
    pub fn with_vectors(self, vectors: &HashMap<String, Vec<f32>>) -> ToolIndex {
        let of = |text: &String| if text.is_empty() { Some(Vec::new()) } else { vectors.get(text).cloned() };
        let all = self.texts.iter().map(|[own, set]| Some([of(own)?, of(set)?]));
        ToolIndex { vectors: all.collect::<Option<_>>().unwrap_or_default(), ..self }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether it has vectors to compare a question's with.
    pub fn has_vectors(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// All tools, best first, none of them chosen. `vector` is the question's, of length 1 and of the
    /// same model as the tools'. Equal scores keep the library's order.
    pub fn rank(&self, question: &str, vector: Option<&[f32]>, merge: Merge) -> Vec<RankedTool> {
        let scores = self.scores(question, vector, merge);
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(|a, b| scores.compare(*a, *b));
        order.into_iter().map(|at| self.ranked(at, &scores)).collect()
    }

    /// The best tools for a question, best first: those that are chosen, and after them a few that are
    /// not.
    pub fn choose(&self, question: &str, vector: Option<&[f32]>, options: &ChoiceOptions) -> Vec<RankedTool> {
        let scores = self.scores(question, vector, options.merge);
        // what shares nothing with the question is not worth telling
        let mut best: Vec<usize> = (0..self.len()).filter(|at| scores.merged[*at] > 0.0).collect();
        let most = options.limit.saturating_mul(2).max(options.limit.saturating_add(3));
        if best.len() > most {
            // of thousands a few are told: the others need no order
            best.select_nth_unstable_by(most, |a, b| scores.compare(*a, *b));
            best.truncate(most);
        }
        best.sort_unstable_by(|a, b| scores.compare(*a, *b));
        let least = if scores.meaning.is_some() { options.least } else { options.least_by_words };
        let told = best.into_iter().map(|at| self.ranked(at, &scores)).enumerate();
        told.map(|(at, tool)| RankedTool { chosen: at < options.limit && tool.score >= least, ..tool }).collect()
    }

    fn scores(&self, question: &str, vector: Option<&[f32]>, merge: Merge) -> Scores {
        let words = self.words(question);
        let meaning = vector.filter(|_| self.has_vectors()).map(|vector| self.similar(vector));
        let merged: Vec<f64> = match (&meaning, merge) {
            (None, _) | (_, Merge::Words) => words.clone(),
            (Some(meaning), Merge::Vectors) => meaning.clone(),
            (Some(meaning), Merge::Mean) => {
                words.iter().zip(meaning).map(|(words, meaning)| WORDS * words + (1.0 - WORDS) * meaning).collect()
            }
            (Some(meaning), Merge::ReciprocalRanks) => {
                let (words, meaning) = (ranks(&words), ranks(meaning));
                words.iter().zip(&meaning).map(|(a, b)| RANKS / 2.0 * (1.0 / (RANKS + a) + 1.0 / (RANKS + b))).collect()
            }
        };
        Scores { words, meaning, merged }
    }

    fn ranked(&self, at: usize, scores: &Scores) -> RankedTool {
        RankedTool {
            name: self.names[at].clone(),
            score: scores.merged[at],
            words: scores.words[at],
            meaning: scores.meaning.as_ref().map(|meaning| meaning[at]),
            chosen: false,
        }
    }

    /// How well each tool fits by words: the share of the question's weight that it has, 0 to 1.
    fn words(&self, question: &str) -> Vec<f64> {
        let mut stems = stems(question);
        stems.sort_unstable();
        stems.dedup();
        let mut scores = vec![0.0; self.names.len()];
        let mut most = 0.0;
        for stem in &stems {
            let Some(posting) = self.postings.get(stem) else {
                most += self.rarest;
                continue;
            };
            most += posting.weight;
            for (at, count) in &posting.tools {
                scores[*at] += posting.weight * count;
            }
        }
        scores.iter_mut().for_each(|score| *score /= f64::max(most, f64::MIN_POSITIVE));
        scores
    }

    /// The cosine with each tool, and with what it belongs to; below 0 counts as 0.
    fn similar(&self, question: &[f32]) -> Vec<f64> {
        let cosine = |vector: &Vec<f32>| {
            let product = vector.iter().zip(question).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            product.clamp(0.0, 1.0)
        };
        let both = |[own, set]: &[Vec<f32>; 2]| match set.is_empty() {
            true => cosine(own),
            false => (1.0 - SET) * cosine(own) + SET * cosine(set),
        };
        self.vectors.iter().map(both).collect()
    }
}

/// The rank of each score, from 0; equal ones share the better.
fn ranks(scores: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut ranks = vec![0.0; scores.len()];
    let (mut rank, mut before) = (0, f64::NAN);
    for (at, tool) in order.into_iter().enumerate() {
        if scores[tool].total_cmp(&before).is_ne() {
            (rank, before) = (at, scores[tool]);
        }
        ranks[tool] = rank as f64;
    }
    ranks
}
