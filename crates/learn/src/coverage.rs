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

    /// The part of the question's words (those of the corpus) that stand in the thoughts; 1 if it has none.
    pub(crate) fn coverage(&self, record: &TrajectoryRecord) -> f64 {
        let asked: HashSet<String> = stems(without_options(&record.question)).filter(|stem| self.content.contains(stem)).collect();
        let thought: HashSet<String> = thoughts(record).flat_map(stems).collect();
        if asked.is_empty() { 1.0 } else { asked.intersection(&thought).count() as f64 / asked.len() as f64 }
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
        let of = |question: &str, thoughts: &[&str]| vocabulary.coverage(&record(question, thoughts));
        let asked = "What is the mouth of the Loire?";
        assert_eq!(of(asked, &["First find the mouths of Loire.", "Done."]), 1.0);
        assert_eq!(of(asked, &["First find the uncle of Loire.", "Done."]), 0.5);
        assert_eq!(of("Which is that?", &["Done."]), 1.0);
        // half of the pages say `river`: it tells nothing
        assert_eq!(of("Is the Loire a river?", &["Loire."]), 1.0);
        assert_eq!(of("Is the Loire? Options: (A) lake (B) hill", &["Loire."]), 1.0);
        assert_eq!(Vocabulary::of([].into_iter()).coverage(&record(asked, &[])), 1.0);
    }
}
