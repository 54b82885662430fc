//! How much of what a trajectory's thoughts say comes from the question and the observations before it. Of two trajectories with the right
//! answer, the one that speaks of what is asked is the better example; the other came to it by luck, or by words of its own.

use std::collections::{HashMap, HashSet};

use crate::records::{TrajectoryRecord, TurnRecord};

/// Words in the thoughts of this part of the trajectories are how thoughts are put, and say nothing of the matter.
const COMMON: f64 = 0.2;
/// Words that begin with the same letters are the same: `born` and `borne`, `river` and `rivers`.
const STEM: usize = 5;
/// Shorter words are not looked at.
const SHORTEST: usize = 3;

/// The words that thoughts are made of, learned from all trajectories.
#[derive(Debug, Default)]
pub(crate) struct Manner {
    common: HashSet<String>,
}

impl Manner {
    /// Counts in how many trajectories each word is thought.
    pub(crate) fn of(all: &[TrajectoryRecord]) -> Manner {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for record in all {
            let thought: HashSet<String> = thoughts(record).flat_map(|(thought, _)| words(thought)).collect();
            thought.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let enough = COMMON * all.len() as f64;
        Manner { common: counts.into_iter().filter(|(_, count)| *count as f64 >= enough).map(|(word, _)| word).collect() }
    }

    /// The part of the thoughts' words, common ones aside, that were read before; 1 if there are none.
    pub(crate) fn grounding(&self, record: &TrajectoryRecord) -> f64 {
        let mut read: HashSet<String> = words(&record.question).map(|word| stem(&word)).collect();
        let (mut grounded, mut all) = (0usize, 0usize);
        for (thought, observation) in thoughts(record) {
            for word in words(thought).filter(|word| word.chars().count() >= SHORTEST && !self.common.contains(word)) {
                all += 1;
                grounded += usize::from(read.contains(&stem(&word)));
            }
            read.extend(words(observation).map(|word| stem(&word)));
        }
        if all == 0 { 1.0 } else { grounded as f64 / all as f64 }
    }
}

/// Each step's thought, with what is read after it.
fn thoughts(record: &TrajectoryRecord) -> impl Iterator<Item = (&str, &str)> {
    record.turns.iter().filter_map(|turn| match turn {
        TurnRecord::Step { thought, observation, .. } => Some((thought.as_str(), observation.as_deref().unwrap_or_default())),
        TurnRecord::Reflection { .. } => None,
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn stem(word: &str) -> String {
    word.chars().take(STEM).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(thoughts: &[(&str, &str)]) -> TrajectoryRecord {
        let step = |(thought, observation): &(&str, &str)| TurnRecord::Step {
            thought: (*thought).to_owned(),
            tool: "Retrieve".into(),
            input: Some("Loire".into()),
            observation: Some((*observation).to_owned()),
        };
        TrajectoryRecord {
            id: 0,
            sample: 0,
            question: "What is the mouth of the Loire?".into(),
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
    fn words_from_nowhere_lower_it() {
        let seen = "The Loire flows into the Atlantic.";
        let read = record(&[("First find the mouth of Loire.", seen), ("Loire has the mouth Atlantic.", "")]);
        let luck = record(&[("First find the uncle of Loire.", seen), ("Loire has the uncle Atlantic.", "")]);
        let others: Vec<_> = (0..20).map(|_| record(&[("First find the x of y.", "y has the x z."), ("y has the x z.", "")])).collect();
        let all: Vec<_> = others.into_iter().chain([read.clone(), luck.clone()]).collect();
        let manner = Manner::of(&all);
        assert_eq!(manner.grounding(&read), 1.0);
        assert!(manner.grounding(&luck) < 0.7);
        assert_eq!(manner.grounding(&record(&[])), 1.0);
    }
}
