//! How much of what a question says its trajectory's thoughts take up. Of two trajectories with the right answer, the one that speaks of
//! what is asked is the better example; the other came to it by luck, or by words of its own, which the next question does not bear out.

use std::collections::{HashMap, HashSet};

use autoact_score::without_options;

use crate::records::{TrajectoryRecord, TurnRecord};

/// Words that begin with the same letters are the same: `born` and `borne`, `river` and `rivers`.
const STEM: usize = 5;
/// Shorter words are not looked at.
const SHORTEST: usize = 3;
/// Words that stand in this part of the pages say nothing of a question.
const USUAL: f64 = 0.4;

/// The words that the corpus uses, the usual ones aside: what is asked is put in them, how it is asked (`which`, `who`) is not.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    content: HashSet<String>,
}

impl Vocabulary {
    /// Reads every page once, each given by its title and text.
    pub(crate) fn of<'a>(pages: impl Iterator<Item = (&'a str, &'a str)>) -> Vocabulary {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut all = 0usize;
        for (title, text) in pages {
            all += 1;
            stems(title).chain(stems(text)).collect::<HashSet<_>>().into_iter().for_each(|stem| *counts.entry(stem).or_default() += 1);
        }
        let usual = USUAL * all as f64;
        Vocabulary { content: counts.into_iter().filter(|(_, count)| (*count as f64) < usual).map(|(stem, _)| stem).collect() }
    }

    /// Weighs the words of questions: each by the part of the right trajectories on questions with it whose thoughts take it up. How a
    /// question is put (`which`, `lies`) hardly any does, what it asks for most do; no list of words of any language is needed.
    pub(crate) fn weigh<'a>(&self, all: impl Iterator<Item = &'a TrajectoryRecord>) -> Weights<'_> {
        let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
        for record in all.filter(|record| record.is_right()) {
            let thought: HashSet<String> = thoughts(record).flat_map(stems).collect();
            for stem in self.words(record) {
                let taken = u32::from(thought.contains(&stem));
                let (of, up) = counts.entry(stem).or_default();
                *of += 1;
                *up += taken;
            }
        }
        let weights = counts.into_iter().map(|(stem, (of, up))| (stem, f64::from(up) / f64::from(of))).collect();
        Weights { vocabulary: self, weights }
    }

    /// The words of a trajectory's question that the corpus uses.
    fn words(&self, record: &TrajectoryRecord) -> HashSet<String> {
        stems(without_options(&record.question)).filter(|stem| self.content.contains(stem)).collect()
    }

    /// The words of a question that say what is asked, names left out: those are copied anyway, and not to be broken into.
    pub(crate) fn asked(&self, question: &str) -> String {
        let words = without_options(question).split(|c: char| !c.is_alphanumeric());
        let content =
            |word: &&str| word.starts_with(char::is_lowercase) && stems(word).next().is_some_and(|stem| self.content.contains(&stem));
        words.filter(content).collect::<Vec<_>>().join(" ")
    }
}

/// What each word of a round's questions weighs.
pub(crate) struct Weights<'a> {
    vocabulary: &'a Vocabulary,
    weights: HashMap<String, f64>,
}

impl Weights<'_> {
    /// The part of the question's words, by weight, that stand in the thoughts; 1 if they weigh nothing.
    pub(crate) fn coverage(&self, record: &TrajectoryRecord) -> f64 {
        let thought: HashSet<String> = thoughts(record).flat_map(stems).collect();
        let (mut all, mut taken) = (0.0, 0.0);
        for stem in self.vocabulary.words(record) {
            let weight = self.weights.get(&stem).copied().unwrap_or(1.0);
            all += weight;
            taken += if thought.contains(&stem) { weight } else { 0.0 };
        }
        if all > 0.0 { taken / all } else { 1.0 }
    }
}

fn thoughts(record: &TrajectoryRecord) -> impl Iterator<Item = &str> {
    record.turns.iter().filter_map(|turn| match turn {
        TurnRecord::Step { thought, .. } => Some(thought.as_str()),
        TurnRecord::Reflection { .. } => None,
    })
}

fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= SHORTEST);
    words.map(|word| word.to_lowercase().chars().take(STEM).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(question: &str, thoughts: &[&str]) -> TrajectoryRecord {
        let step =
            |thought: &&str| TurnRecord::Step { thought: (*thought).to_owned(), tool: "Retrieve".into(), input: None, observation: None };
        TrajectoryRecord {
            id: 0,
            sample: 0,
            question: question.into(),
            gold: "Atlantic".into(),
            answer: "Atlantic".into(),
            reward: 1.0,
            failed: String::new(),
            tools: Vec::new(),
            turns: thoughts.iter().map(step).collect(),
            tokens: [0, 0],
            millis: 0,
        }
    }

    #[test]
    fn what_is_asked_counts_and_how_does_not() {
        let pages = [("Loire", "The Loire is a river."), ("Mouth", "The mouth of a river."), ("Lake", "A lake."), ("Hill", "A hill.")];
        let vocabulary = Vocabulary::of(pages.into_iter());
        let asked = "What is the mouth of the Loire?";
        let of = |question: &str, thoughts: &[&str]| vocabulary.weigh([].into_iter()).coverage(&record(question, thoughts));
        assert_eq!(of(asked, &["First find the mouths of Loire.", "Done."]), 1.0);
        assert_eq!(of(asked, &["First find the uncle of Loire.", "Done."]), 0.5);
        assert_eq!(of("Which is that?", &["Done."]), 1.0);
        // half of the pages say `river`: it tells nothing
        assert_eq!(of("Is the Loire a river?", &["Loire."]), 1.0);
        assert_eq!(of("Is the Loire? Options: (A) lake (B) hill", &["Loire."]), 1.0);
        assert_eq!(Vocabulary::of([].into_iter()).weigh([].into_iter()).coverage(&record(asked, &[])), 1.0);
        assert_eq!(vocabulary.asked("Which lake is at the mouth of the Loire? Options: (A) hill"), "lake mouth");
    }

    #[test]
    fn words_weigh_what_right_trajectories_make_of_them() {
        let pages = [("Loire", "The Loire lies in the west. Its mouth is far."), ("Nantes", "The town."), ("Lake", "The lake.")];
        let vocabulary = Vocabulary::of(pages.into_iter());
        let asked = "At which mouth lies the Loire?";
        let good = record(asked, &["Need: mouth of Loire."]);
        let bad = record(asked, &["Need: library of Loire."]);
        let wrong = TrajectoryRecord { reward: 0.0, ..record(asked, &["It lies."]) };
        let all = [good.clone(), good.clone(), good.clone(), bad.clone(), wrong];
        let weights = vocabulary.weigh(all.iter());
        // `lies` weighs nothing, `mouth` 3/4, `Loire` 1
        assert_eq!((weights.coverage(&good), weights.coverage(&bad)), (1.0, 1.0 / 1.75));
    }
}
