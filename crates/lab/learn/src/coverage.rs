//! Question coverage: the weighted fraction of a question's words that a trajectory's thoughts use.
//! Of two trajectories with the right answer, the one with higher coverage is the better example.
//! The other one reached the answer by chance, or with wrong names for relations.

use std::collections::{BTreeSet, HashMap, HashSet};

use autoact_score::without_options;

use crate::records::TrajectoryRecord;

/// Words are compared by this many first letters, a crude stemmer: `river` and `rivers` are equal.
const STEM: usize = 5;
/// Minimum length of a word; shorter ones are ignored.
const SHORTEST: usize = 3;
/// Words of up to this length that occur in at least `USUAL` of the pages are ignored, like stop words.
/// Longer ones are not: in a directory of employees every page has the names of the same relations.
const FUNCTION: usize = 3;
const USUAL: f64 = 0.4;

/// The content words of the corpus: all its words without short, very frequent ones. Question words
/// (`which`, `who`) do not occur in pages and are therefore not among them.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    content: HashSet<String>,
}

impl Vocabulary {
    /// Builds the vocabulary from the pages' titles and texts.
    pub(crate) fn of<'a>(pages: impl Iterator<Item = (&'a str, &'a str)>) -> Vocabulary {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut all = 0usize;
        for (title, text) in pages {
            all += 1;
            stems(title).chain(stems(text)).collect::<HashSet<_>>().into_iter().for_each(|stem| *counts.entry(stem).or_default() += 1);
        }
        let usual = USUAL * all as f64;
        let content = |(stem, count): &(String, usize)| stem.chars().count() > FUNCTION || (*count as f64) < usual;
        Vocabulary { content: counts.into_iter().filter(content).map(|(stem, _)| stem).collect() }
    }

    /// Computes the weights of the questions' words. A word's weight is the fraction of right
    /// trajectories whose thoughts use it, among those whose question contains it. Words such as
    /// `which` and `lies` get low weights, so no list of stop words of any language is needed.
    pub(crate) fn weigh<'a>(&self, all: impl Iterator<Item = &'a TrajectoryRecord>) -> Weights<'_> {
        let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
        for record in all.filter(|record| record.is_right()) {
            let thought: HashSet<String> = record.thoughts().flat_map(stems).collect();
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

    /// The stems of a question's words that are in the vocabulary, in an order of their own: weights
    /// are summed in it, and another order may give another last bit, by which ties are broken.
    fn words(&self, record: &TrajectoryRecord) -> BTreeSet<String> {
        stems(without_options(&record.question)).filter(|stem| self.content.contains(stem)).collect()
    }

    /// The words of a question that are in the vocabulary and begin with a small letter. Names are
    /// left out: models copy them without a bias, and a bias on parts of names would break them.
    pub(crate) fn asked(&self, question: &str) -> Vec<String> {
        let words = without_options(question).split(|c: char| !c.is_alphanumeric());
        let content =
            |word: &&str| word.starts_with(char::is_lowercase) && stems(word).next().is_some_and(|stem| self.content.contains(&stem));
        words.filter(content).map(str::to_owned).collect()
    }
}

/// The weights of the words of a round's questions, by stem, from 0 to 1.
pub(crate) struct Weights<'a> {
    vocabulary: &'a Vocabulary,
    weights: HashMap<String, f64>,
}

impl Weights<'_> {
    /// The coverage of a trajectory, from 0 to 1. It is 1 if the question's words have no weight.
    pub(crate) fn coverage(&self, record: &TrajectoryRecord) -> f64 {
        self.covered(record, record.thoughts())
    }

    /// The coverage of other texts on the trajectory's question.
    pub(crate) fn covered<'b>(&self, record: &TrajectoryRecord, texts: impl Iterator<Item = &'b str>) -> f64 {
        let thought: HashSet<String> = texts.flat_map(stems).collect();
        let (mut all, mut taken) = (0.0, 0.0);
        for stem in self.vocabulary.words(record) {
            let weight = self.weights.get(&stem).copied().unwrap_or(1.0);
            all += weight;
            taken += if thought.contains(&stem) { weight } else { 0.0 };
        }
        if all > 0.0 { taken / all } else { 1.0 }
    }
}

fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= SHORTEST);
    words.map(|word| word.to_lowercase().chars().take(STEM).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::TurnRecord;

    fn record(question: &str, thoughts: &[&str]) -> TrajectoryRecord {
        let step =
            |thought: &&str| TurnRecord::Step { thought: (*thought).to_owned(), tool: "Retrieve".into(), input: None, observation: None };
        TrajectoryRecord {
            id: 0,
            sample: 0,
            question: question.into(),
            gold: Some("Atlantic".into()),
            answer: "Atlantic".into(),
            reward: 1.0,
            turns: thoughts.iter().map(step).collect(),
            ..TrajectoryRecord::default()
        }
    }

    #[test]
    fn content_words_count_and_question_words_do_not() {
        let pages = [("Loire", "The Loire is a river."), ("Mouth", "The mouth of a river."), ("Lake", "A lake."), ("Hill", "A hill.")];
        let vocabulary = Vocabulary::of(pages.into_iter());
        let asked = "What is the mouth of the Loire?";
        let of = |question: &str, thoughts: &[&str]| vocabulary.weigh([].into_iter()).coverage(&record(question, thoughts));
        assert_eq!(of(asked, &["First find the mouths of Loire.", "Done."]), 1.0);
        assert_eq!(of(asked, &["First find the uncle of Loire.", "Done."]), 0.5);
        assert_eq!(of("Which is that?", &["Done."]), 1.0);
        // half of the pages contain `the`, so it is ignored; half contain `river`, which is too long
        assert_eq!(of("Is that the Loire?", &["Loire."]), 1.0);
        assert_eq!(of("Is the Loire a river?", &["Loire."]), 0.5);
        assert_eq!(of("Is the Loire? Options: (A) lake (B) hill", &["Loire."]), 1.0);
        assert_eq!(Vocabulary::of([].into_iter()).weigh([].into_iter()).coverage(&record(asked, &[])), 1.0);
        assert_eq!(vocabulary.asked("Which lake is at the mouth of the Loire? Options: (A) hill"), ["lake", "mouth"]);
    }

    #[test]
    fn the_same_words_have_the_same_coverage_to_the_bit() {
        let text = "mouth river length country capital border mountain currency language continent island harbour bridge";
        let vocabulary = Vocabulary::of([(text, ""), ("Lake", ""), ("Hill", "")].into_iter());
        let tries: Vec<TrajectoryRecord> = text
            .split(' ')
            .enumerate()
            .flat_map(|(at, word)| (0..=at).map(move |other| (word, other)))
            .map(|(word, other)| record(text, &[word, ["none", "river", "border"][other % 3]]))
            .collect();
        let weights = vocabulary.weigh(tries.iter());
        let thoughtful = record(text, &["river mouth border island bridge length"]);
        let first = weights.coverage(&thoughtful);
        assert!(first > 0.0 && first < 1.0);
        // each time with sets of another order
        assert!((0..200).all(|_| weights.coverage(&thoughtful).to_bits() == first.to_bits()));
    }

    #[test]
    fn weights_come_from_right_trajectories() {
        let pages = [("Loire", "The Loire lies in the west. Its mouth is far."), ("Nantes", "The town."), ("Lake", "The lake.")];
        let vocabulary = Vocabulary::of(pages.into_iter());
        let asked = "At which mouth lies the Loire?";
        let good = record(asked, &["Need: mouth of Loire."]);
        let bad = record(asked, &["Need: library of Loire."]);
        let wrong = TrajectoryRecord { reward: 0.0, ..record(asked, &["It lies."]) };
        let all = [good.clone(), good.clone(), good.clone(), bad.clone(), wrong];
        let weights = vocabulary.weigh(all.iter());
        // weights: `lies` 0, `mouth` 3/4, `Loire` 1
        assert_eq!((weights.coverage(&good), weights.coverage(&bad)), (1.0, 1.0 / 1.75));
    }
}
