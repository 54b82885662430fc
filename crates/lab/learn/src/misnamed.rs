//! Broken names of relations. A small model writes `exten` where `extension` is asked for, and `depth`
//! for `depot`, and may yet reach the right answer. What is trained on that misnames more. Such words
//! are told by the company that they keep: they begin like a word of the question, which hardly any
//! question lacks in whose thoughts they stand.

use std::collections::{HashMap, HashSet};

use crate::coverage::Vocabulary;
use crate::records::{TrajectoryRecord, TurnRecord};
use crate::relation_words::lower_words;

/// Two words begin alike if so many letters are the same.
const ALIKE: usize = 2;
/// Share of a word's questions that have the word which it stands for.
const SHARE: f64 = 0.8;
/// A word is told by its questions if there are so many. One that is rarer, and not shorter than
/// `SHORTEST`, is broken off a word of the question if that begins with it.
const TIMES: usize = 3;
const SHORTEST: usize = 3;

/// Words of thoughts that stand in the place of words of questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Misnamed {
    /// By word of a thought: the words of questions.
    in_place_of: HashMap<String, HashSet<String>>,
}

impl Misnamed {
    /// Finds them in the first, greedy tries of a round.
    pub(crate) fn of(vocabulary: &Vocabulary, there: &[TrajectoryRecord]) -> Misnamed {
        let mut counts: HashMap<String, (usize, HashMap<String, usize>)> = HashMap::new();
        for record in there.iter().filter(|record| record.sample == 0) {
            let asked: HashSet<String> = vocabulary.asked(&record.question).iter().map(|word| word.to_lowercase()).collect();
            let read = read_words(record);
            let said: HashSet<String> = record.thoughts().flat_map(lower_words).filter(|word| !read.contains(word)).collect();
            for word in said {
                let like: Vec<String> = asked.iter().filter(|other| begin_alike(&word, other)).cloned().collect();
                let (count, beside) = counts.entry(word).or_default();
                *count += 1;
                like.into_iter().for_each(|other| *beside.entry(other).or_default() += 1);
            }
        }
        let in_place_of = counts.into_iter().filter_map(|(word, (count, beside))| {
            let broken = |other: &str| word.chars().count() >= SHORTEST && other.starts_with(word.as_str());
            let told = |(other, times): &(String, usize)| *times as f64 >= SHARE * count as f64 && (count >= TIMES || broken(other));
            let others: HashSet<String> = beside.into_iter().filter(told).map(|(other, _)| other).collect();
            (!others.is_empty()).then_some((word, others))
        });
        Misnamed { in_place_of: in_place_of.collect() }
    }

    /// Whether a thought about a question has one. `read`: the words of the question, and of what was
    /// read: what stands there is no mistake.
    pub(crate) fn is_in(&self, thought: &str, question: &str, read: &HashSet<String>) -> bool {
        let asked: HashSet<String> = lower_words(question).into_iter().collect();
        let stands_for = |word: &String| self.in_place_of.get(word).is_some_and(|others| !others.is_disjoint(&asked));
        lower_words(thought).iter().any(|word| !read.contains(word) && stands_for(word))
    }

    /// Whether one of a try's thoughts has one.
    pub(crate) fn is_in_try(&self, record: &TrajectoryRecord) -> bool {
        let read = read_words(record);
        record.thoughts().any(|thought| self.is_in(thought, &record.question, &read))
    }
}

/// The words of a try's question and observations.
pub(crate) fn read_words(record: &TrajectoryRecord) -> HashSet<String> {
    let read = record.turns.iter().filter_map(|turn| match turn {
        TurnRecord::Step { observation, .. } => observation.as_deref(),
        TurnRecord::Reflection { .. } => None,
    });
    read.chain([record.question.as_str()]).flat_map(lower_words).collect()
}

fn begin_alike(a: &str, b: &str) -> bool {
    a != b && a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count() >= ALIKE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: usize, question: &str, thoughts: &[&str], observation: &str) -> TrajectoryRecord {
        let step = |thought: &&str| TurnRecord::Step {
            thought: (*thought).to_owned(),
            tool: "Retrieve".into(),
            input: None,
            observation: Some(observation.to_owned()),
        };
        TrajectoryRecord { id, question: question.into(), turns: thoughts.iter().map(step).collect(), ..TrajectoryRecord::default() }
    }

    #[test]
    fn a_word_in_the_place_of_another_is_told_by_its_questions() {
        let text = "Her extension is 310. The depot is Karrow. The foreman and the feeder are new.";
        let vocabulary = Vocabulary::of([("Ada", text), ("Bo", ""), ("Cy", "")].into_iter());
        let mut all: Vec<TrajectoryRecord> =
            ["Ada", "Bo", "Cy"].map(|name| of(0, &format!("What is the extension of {name}?"), &["Let me look for the exten."], "")).into();
        all.extend(["Ada", "Bo", "Cy"].map(|name| of(0, &format!("What is the depot of {name}?"), &["Let me look for the depth."], "")));
        // `for` is no part of `foreman`, since it is in all thoughts; `fee` is one of `feeder`
        all.push(of(0, "Who is the foreman of Bo?", &["Let me look for the foreman."], ""));
        all.push(of(0, "Who is the feeder of Bo?", &["Let me look for the fee."], ""));
        // once, and begins like nothing that was asked
        all.push(of(0, "Who is the foreman of Cy?", &["Let me look for the guild."], ""));
        let misnamed = Misnamed::of(&vocabulary, &all);
        let misnames = |record: &TrajectoryRecord| misnamed.is_in_try(record);
        let found: Vec<bool> = all.iter().map(misnames).collect();
        assert_eq!(found, [true, true, true, true, true, true, false, true, false]);
        let right = of(0, "What is the depot of Ada?", &["Let me look for the depot."], "");
        assert!(!misnames(&right));
        // where the page has the word, it is no mistake
        assert!(!misnames(&of(0, "What is the depot of Ada?", &["The depth is 3."], "Its depth is 3.")));
        assert!(!misnames(&of(0, "How deep is Ada?", &["The depth is 3."], "")), "another question");
        let later = TrajectoryRecord { sample: 1, ..of(0, "Who is the feeder of Bo?", &["Let me look for the feed."], "") };
        assert!(!Misnamed::of(&vocabulary, std::slice::from_ref(&later)).is_in_try(&later), "of the greedy tries only");
    }
}
