//! The words of any thought, whatever it is about: `need`, `answer`, `done`. No list of them is needed:
//! they are what the model says of itself at many questions.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::misnamed::read_words;
use crate::pages::Pages;
use crate::records::TrajectoryRecord;
use crate::relation_words::{compares, lower_words};

/// What greedy tries say at this share of the questions belongs to any thought.
const SHARE: f64 = 0.03;
/// If it does of all questions, then of comparisons, or of the others, where they say it at this share.
const SHARE_OF_SORT: f64 = 0.01;
/// It is said at so many questions at least.
const FEWEST: f64 = 2.0;
/// Words that name nothing before a relation's name.
const NAMING_NOTHING: [&str; 4] = ["a", "an", "of", "the"];
/// Longer titles are not looked for in thoughts.
const TITLE_WORDS: usize = 5;

/// The words that greedy tries say whatever they are asked, where it is a comparison, or not: at
/// [`SHARE`] of these questions, or of all, none of which has them, nor what was read. Those that name
/// something of a page in a quarter of the times are none: `arrival`, where a small model says `year of
/// arrival of Loire` for anything that has a date.
pub(crate) fn frame(pages: &Pages, there: &[TrajectoryRecord], comparisons: bool) -> HashSet<String> {
    let titles: HashSet<String> = pages.all().iter().map(|page| lower_words(&page.title).join(" ")).collect();
    let (alike, others): (Vec<&TrajectoryRecord>, Vec<&TrajectoryRecord>) =
        there.iter().filter(|record| record.sample == 0).partition(|record| compares(&record.question) == comparisons);
    let (of_alike, of_others) = (said(&alike, &titles), said(&others, &titles));
    let least = |share: f64, count: usize| (share * count as f64).max(FEWEST);
    let is_frame = |(word, said): &(&String, &Said)| {
        let elsewhere = of_others.get(*word).map_or(0, |said| said.questions);
        let often = said.questions as f64 >= least(SHARE, alike.len());
        let often_of_all = (said.questions + elsewhere) as f64 >= least(SHARE, alike.len() + others.len())
            && said.questions as f64 >= least(SHARE_OF_SORT, alike.len());
        (often || often_of_all) && 4 * said.named < said.times
    };
    of_alike.iter().filter(is_frame).map(|(word, _)| word.clone()).collect()
}

/// How often a word is said that stands neither in the question nor in what was read.
#[derive(Debug, Default)]
struct Said {
    /// At how many questions.
    questions: usize,
    times: usize,
    /// How often as the name of a relation.
    named: usize,
}

/// What some tries say.
fn said(tries: &[&TrajectoryRecord], titles: &HashSet<String>) -> HashMap<String, Said> {
    let mut counts: HashMap<String, Said> = HashMap::new();
    for record in tries {
        let read = read_words(record);
        let mut own: HashSet<String> = HashSet::new();
        for thought in record.thoughts() {
            let words = lower_words(thought);
            for (at, word) in words.iter().enumerate().filter(|(_, word)| !read.contains(*word) && !word.contains(char::is_numeric)) {
                let said = counts.entry(word.clone()).or_default();
                said.times += 1;
                said.named += usize::from(names_relation(&words, at, titles) || begins_relation(&words, at, thought, titles));
                own.insert(word.clone());
            }
        }
        own.into_iter().for_each(|word| counts.entry(word).or_default().questions += 1);
    }
    counts
}

/// Whether a word of a thought names something of a page: `depth`, in `depth of Heron Pond` and in `Heron
/// Pond's depth`.
fn names_relation(words: &[String], at: usize, titles: &HashSet<String>) -> bool {
    let is_title = |range: Range<usize>| words.get(range).is_some_and(|words| titles.contains(&words.join(" ")));
    let after = words.get(at + 1).is_some_and(|next| next == "of") && (1..=TITLE_WORDS).any(|count| is_title(at + 2..at + 2 + count));
    let before = at > 1 && words[at - 1] == "s" && (1..=TITLE_WORDS.min(at - 1)).any(|count| is_title(at - 1 - count..at - 1));
    after || before
}

/// Whether a word stands before one that does: `copying`, in `copying year of Heron Pond`. `Need: year of
/// Heron Pond` has none, because what ends with a mark belongs to nothing that follows.
fn begins_relation(words: &[String], at: usize, thought: &str, titles: &HashSet<String>) -> bool {
    let Some(next) = words.get(at + 1).filter(|next| *next != "of" && !NAMING_NOTHING.contains(&words[at].as_str())) else { return false };
    names_relation(words, at + 1, titles) && thought.to_lowercase().contains(&format!("{} {next} of ", words[at]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use autoact_tools::{Corpus, Page};

    use super::*;
    use crate::records::TurnRecord;

    #[test]
    fn words_of_any_thought_are_no_names_of_relations() {
        let page = |title: &str| Page { title: title.into(), text: "It is deep.".into() };
        let pages = Pages::new(Arc::new(Corpus::from_pages(vec![page("Heron Pond"), page("Loire")]).unwrap()));
        let of = |sample, question: &str, thought: &str| TrajectoryRecord {
            sample,
            question: question.into(),
            turns: vec![TurnRecord::Step { thought: thought.into(), tool: "T".into(), input: None, observation: None }],
            ..TrajectoryRecord::default()
        };
        let there = [
            of(0, "How deep is Heron Pond?", "Need the arrival of Heron Pond."),
            of(0, "How deep is Loire?", "Need the arrival of Loire, 2."),
            of(0, "Who made Loire?", "Need Loire's guild, 2."),
            of(0, "Who made Heron Pond?", "Need Heron Pond's guild once."),
            of(0, "Is Loire deeper than Heron Pond?", "Compare the two."),
            of(0, "Is Heron Pond deeper than Loire?", "Compare the two."),
            of(0, "Is Loire older than Heron Pond?", "Compare: year of Loire. Find the copying year of Loire."),
            of(0, "Is Heron Pond older than Loire?", "Compare: year of Loire. Find the copying year of Loire."),
            of(1, "How deep is Loire?", "Sampled."),
            of(1, "How deep is Heron Pond?", "Sampled."),
        ];
        let words = |comparisons| {
            let mut words: Vec<String> = frame(&pages, &there, comparisons).into_iter().collect();
            words.sort();
            words
        };
        assert_eq!(words(false), ["need", "of", "s", "the"], "neither arrival nor guild");
        assert_eq!(words(true), ["compare", "find", "of", "the", "two"], "neither copying nor year");
    }

    #[test]
    fn a_word_of_comparisons_is_one_of_other_thoughts_that_have_it_seldom() {
        let page = |title: &str| Page { title: title.into(), text: "It is deep.".into() };
        let pages = Pages::new(Arc::new(Corpus::from_pages(vec![page("Heron Pond"), page("Loire")]).unwrap()));
        let of = |question: &str, thought: &str| TrajectoryRecord {
            question: question.into(),
            turns: vec![TurnRecord::Step { thought: thought.into(), tool: "T".into(), input: None, observation: None }],
            ..TrajectoryRecord::default()
        };
        let asked = (0..100).map(|at| of("How deep is Loire?", if at < 2 { "So can I, seldom." } else { "Need it." }));
        let compared = (0..20).map(|at| of("Is Loire older than Heron Pond?", if at < 10 { "So can I, see." } else { "Compare." }));
        let there: Vec<TrajectoryRecord> = asked.chain(compared).collect();
        let words = frame(&pages, &there, false);
        assert!(["so", "can", "i", "need"].iter().all(|word| words.contains(*word)), "{words:?}");
        assert!(!words.contains("seldom") && !words.contains("see") && !words.contains("compare"), "{words:?}");
    }
}
