//! The reward filter: keeps trajectories with reward 1 and removes duplicates. Of several for one
//! question it prefers higher coverage, then fewer steps.

use std::collections::{BTreeMap, HashSet};

use autoact_score::normalize;
use serde::{Deserialize, Serialize};

use crate::differentiate::thin;
use crate::error::LearnError;
use crate::filter::within;
use crate::misnamed::Misnamed;
use crate::records::{StatedRecord, TrajectoryRecord};
use crate::relation_words::{says, telling};
use crate::round::Round;
use crate::settings::Filter;
use crate::stage::Stage;
use crate::store::{read, write_atomic, write_json};
use crate::unanswerable::wanted;
use crate::workplace::Workplace;

/// `filter.json`: the number of trajectories by result of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Number of questions.
    pub questions: usize,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Trajectories without an answer.
    pub unanswered: usize,
    /// Trajectories with an answer and a reward below 1.
    pub wrong: usize,
    /// Trajectories with reward 1.
    pub right: usize,
    /// Of the right ones: possible guesses. The answer can be guessed, and too few of the
    /// question's trajectories have it.
    pub lucky: usize,
    /// Of the right ones: those with too low coverage of the question.
    #[serde(alias = "ungrounded")]
    pub off_topic: usize,
    /// Of the right ones: those that repeat an action.
    #[serde(default)]
    pub repeating: usize,
    /// Of the right ones: exact duplicates of another trajectory of the question.
    pub identical: usize,
    /// Of the right ones: those beyond the maximum for one question.
    pub surplus: usize,
    /// Of the right ones: those to questions without an answer, beyond the share of such questions.
    #[serde(default)]
    pub unbalanced: usize,
    /// Trajectories kept.
    pub kept: usize,
    /// Of the kept ones: those that say that there is no answer.
    #[serde(default)]
    pub no_answer: usize,
    /// Questions with at least one kept trajectory, which confirms the database's answer.
    pub confirmed: usize,
}

/// Filters `trajectories.jsonl` into `kept.jsonl`.
///
/// # Errors
/// No trajectory is left, or a file cannot be read or written.
pub(crate) fn filter(work: &Workplace, round: &Round) -> Result<(), LearnError> {
    let all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
    work.view.begin(Stage::Filter, "trajectories", 0, all.len() as u64);
    let settings = &work.task.settings;
    let weights = work.vocabulary.weigh(all.iter());
    let misnamed = Misnamed::of(&work.vocabulary, &all);
    // with a wrong name for what was asked for, nothing of the question is covered
    let coverage = |record: &TrajectoryRecord| if misnamed.is_in_try(record) { 0.0 } else { weights.coverage(record) };
    let (mut kept, mut counts) = keep(all, settings.differentiate.per_question, &settings.filter, coverage);
    balance(&mut kept, &mut counts, settings.instruct.unanswerable, work.task.seed);
    if kept.is_empty() {
        return Err(LearnError::TooFew {
            what: "no trajectory is left after filtering",
            found: format!(
                "{} of {} questions, {} without an answer, {} with another than the database's, 0 right",
                counts.trajectories, counts.questions, counts.unanswered, counts.wrong
            ),
            fix: "look into `trajectories.jsonl`; then raise `synthesize.samples` or `instruct.questions`, check that the tools reach the \
                  corpus, or use a more capable model, and run it with `--again instruct`"
                .to_owned(),
        });
    }
    let mut text = Vec::new();
    for record in &kept {
        text.extend(serde_json::to_vec(record).map_err(|error| LearnError::io("write", &round.path("kept.jsonl"))(error.into()))?);
        text.push(b'\n');
    }
    write_atomic(&round.path("kept.jsonl"), &text)?;
    write_json(&round.path("filter.json"), &counts)?;
    work.view.advance(counts.trajectories as u64, "");
    work.view.end(&format!(
        "{} of {} kept, for {} of {} questions ({} wrong, {} without an answer, {} perhaps guessed, {} off topic, {} repeating, \
         {} identical, {} surplus); {} of the kept say that there is no answer",
        counts.kept,
        counts.trajectories,
        counts.confirmed,
        counts.questions,
        counts.wrong,
        counts.unanswered,
        counts.lucky,
        counts.off_topic,
        counts.repeating,
        counts.identical,
        counts.surplus + counts.unbalanced,
        counts.no_answer
    ));
    Ok(())
}

/// The kept trajectories in the order of their questions, and the counts.
pub(crate) fn keep(
    all: Vec<TrajectoryRecord>,
    per_question: usize,
    settings: &Filter,
    coverage: impl Fn(&TrajectoryRecord) -> f64,
) -> (Vec<TrajectoryRecord>, Kept) {
    let mut counts = Kept { trajectories: all.len(), ..Kept::default() };
    let mut by_question: BTreeMap<usize, (usize, Vec<TrajectoryRecord>)> = BTreeMap::new();
    for record in all {
        let (tries, rights) = by_question.entry(record.id).or_default();
        *tries += 1;
        match (record.has_answer(), record.is_right()) {
            (false, _) => counts.unanswered += 1,
            (true, false) => counts.wrong += 1,
            (true, true) => {
                counts.right += 1;
                rights.push(record);
            }
        }
    }
    counts.questions = by_question.len();
    let mut kept = Vec::new();
    for (tries, rights) in by_question.into_values() {
        let mut rights = rights;
        if rights.first().is_some_and(|record| !record.stated.is_empty()) {
            // the answer is certain, and a try that says what decides it did not guess
            let before = rights.len();
            rights.retain(says_what_decides);
            counts.lucky += before - rights.len();
        } else if rights.first().is_some_and(|record| guessable(&record.question, record.gold.as_deref()))
            && (rights.len() as f64) < settings.sure * tries as f64
        {
            counts.lucky += rights.len();
            continue;
        }
        let mut graded: Vec<(f64, TrajectoryRecord)> = rights.into_iter().map(|record| (coverage(&record), record)).collect();
        graded.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1.turns.len(), a.1.sample).cmp(&(b.1.turns.len(), b.1.sample))));
        let least = settings.coverage.unwrap_or_default();
        let mut seen = HashSet::new();
        let before = kept.len();
        for (covered, record) in graded {
            if covered < least {
                counts.off_topic += 1;
            } else if record.repeats() {
                counts.repeating += 1;
            } else if !seen.insert(serde_json::to_string(&record.turns).unwrap_or_default()) {
                counts.identical += 1;
            } else if kept.len() - before < per_question {
                kept.push(record);
            } else {
                counts.surplus += 1;
            }
        }
        counts.confirmed += usize::from(kept.len() > before);
    }
    counts.kept = kept.len();
    (kept, counts)
}

/// Leaves out questions without an answer beyond their share of all, so that a group does not learn
/// to give up: they are the easier ones.
fn balance(kept: &mut Vec<TrajectoryRecord>, counts: &mut Kept, share: f64, seed: u64) {
    let (mut without, with): (Vec<_>, Vec<_>) = std::mem::take(kept).into_iter().partition(|record| record.gold.is_none());
    let most = wanted(with.len(), share);
    counts.unbalanced = without.len().saturating_sub(most);
    if most == 0 {
        without.clear();
    }
    thin(&mut without, most, seed);
    counts.no_answer = without.len();
    kept.extend(with.into_iter().chain(without));
    kept.sort_by_key(|record| record.id);
    counts.kept = kept.len();
    counts.confirmed = kept.iter().map(|record| record.id).collect::<HashSet<_>>().len();
}

/// Whether the thoughts have all that decides the answer, and call it as the pages or the question
/// do. Else a group would learn wrong names for relations: `Who is older?` has none to be covered.
pub(crate) fn says_what_decides(record: &TrajectoryRecord) -> bool {
    let thoughts: Vec<String> = record.thoughts().map(normalize).collect();
    let words = deciding_words(&record.stated, &record.question);
    let named = words.is_empty() || words.iter().any(|word| thoughts.iter().any(|thought| says(thought, word)));
    named && record.stated.iter().all(|stated| thoughts.iter().any(|thought| within(&normalize(&stated.value), thought)))
}

/// The words of which a thought has to have one: those by which the pages or the question name what
/// decides the answer. Empty: any will do.
pub(crate) fn deciding_words(stated: &[StatedRecord], question: &str) -> Vec<String> {
    let mut words: Vec<String> = stated.iter().flat_map(|stated| stated.words.clone()).collect();
    if !words.is_empty() {
        words.extend(telling(question));
    }
    words
}

/// Whether the answer can be right by chance: none, yes or no, or a name that the question contains.
pub(crate) fn guessable(question: &str, gold: Option<&str>) -> bool {
    let Some(gold) = gold.map(normalize) else { return true };
    matches!(gold.as_str(), "yes" | "no") || within(&gold, &normalize(question))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::TurnRecord;

    fn record(id: usize, sample: usize, reward: f64, thoughts: &[&str]) -> TrajectoryRecord {
        let step = |thought: &&str| TurnRecord::Step { thought: (*thought).to_owned(), tool: "T".into(), input: None, observation: None };
        TrajectoryRecord {
            id,
            sample,
            question: "Who?".into(),
            gold: Some("a".into()),
            answer: "a".into(),
            reward,
            failed: if reward < 0.0 { "max_steps".into() } else { String::new() },
            turns: thoughts.iter().map(step).collect(),
            ..TrajectoryRecord::default()
        }
    }

    #[test]
    fn only_different_right_trajectories_stay() {
        let all = vec![
            record(1, 0, 1.0, &["long", "way"]),
            record(0, 1, 1.0, &["x"]),
            record(0, 0, 1.0, &["x"]),
            record(0, 2, 0.5, &["y"]),
            record(1, 1, 1.0, &["short"]),
            record(1, 2, 1.0, &["other"]),
            record(2, 0, -1.0, &["z"]),
        ];
        let (kept, counts) = keep(all, 2, &Filter::default(), |_| 1.0);
        let ids: Vec<_> = kept.iter().map(|record| (record.id, record.sample)).collect();
        assert_eq!(ids, [(0, 0), (1, 1), (1, 2)]);
        let expected = Kept {
            questions: 3,
            trajectories: 7,
            unanswered: 1,
            wrong: 1,
            right: 5,
            lucky: 0,
            off_topic: 0,
            repeating: 0,
            identical: 1,
            surplus: 1,
            kept: 3,
            confirmed: 2,
            ..Kept::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn trajectories_that_repeat_an_action_are_dropped() {
        let step = |input: &str| TurnRecord::Step { thought: "t".into(), tool: "T".into(), input: Some(input.into()), observation: None };
        let of = |id, inputs: [&str; 2]| TrajectoryRecord { turns: inputs.map(step).to_vec(), ..record(id, 0, 1.0, &[]) };
        let (kept, counts) = keep(vec![of(0, ["a", "a"]), of(1, ["a", "b"])], 2, &Filter::default(), |_| 1.0);
        assert_eq!((kept.len(), kept[0].id, counts.repeating, counts.confirmed), (1, 1, 1, 1));
    }

    #[test]
    fn guesses_count_only_where_most_are_right() {
        let yes =
            |id, sample, reward| TrajectoryRecord { gold: Some("yes".into()), ..record(id, sample, reward, &[&format!("{id} {sample}")]) };
        let all = vec![yes(0, 0, 1.0), yes(0, 1, 0.0), yes(1, 0, 1.0), yes(1, 1, 1.0), yes(1, 2, 1.0), yes(1, 3, 0.0)];
        let (kept, counts) = keep(all, 9, &Filter::default(), |_| 1.0);
        assert_eq!((kept.len(), counts.lucky, counts.confirmed), (3, 1, 1));
    }

    #[test]
    fn where_the_answer_is_certain_one_try_that_says_why_is_enough() {
        let of = |sample, reward, thoughts: &[&str]| TrajectoryRecord {
            gold: Some("no".into()),
            stated: ["1960", "1958"].map(|value| StatedRecord { value: value.into(), words: vec!["released".into()] }).to_vec(),
            ..record(0, sample, reward, thoughts)
        };
        let all = vec![
            of(0, 0.0, &["x"]),
            of(1, 1.0, &["Released: 1960.", "Vertigo: 1960."]),
            of(2, 1.0, &["Year of release: 1960.", "1960 < 1958?"]),
            of(3, 1.0, &["Year of arrival: 1960.", "1960 < 1958?"]),
        ];
        let (kept, counts) = keep(all, 9, &Filter::default(), |_| 1.0);
        assert_eq!((kept.len(), kept[0].sample, counts.lucky, counts.confirmed), (1, 2, 2, 1));
    }

    #[test]
    fn higher_coverage_is_preferred() {
        let all = vec![record(0, 0, 1.0, &["x"]), record(0, 1, 1.0, &["long", "way"]), record(1, 0, 1.0, &["x"])];
        let (kept, counts) = keep(all, 1, &Filter { coverage: Some(0.5), ..Filter::default() }, |record| record.turns.len() as f64 / 3.0);
        assert_eq!((kept.len(), kept[0].sample, counts.off_topic, counts.confirmed), (1, 1, 2, 1));
    }

    #[test]
    fn questions_without_an_answer_keep_their_share() {
        let none = |id| TrajectoryRecord { gold: None, no_answer: true, ..record(id, 0, 1.0, &["none"]) };
        let all: Vec<_> = (0..18).map(|id| record(id, 0, 1.0, &["x"])).chain((18..30).map(none)).collect();
        let (mut kept, mut counts) = keep(all, 1, &Filter::default(), |_| 1.0);
        assert_eq!((kept.len(), counts.lucky), (30, 0), "every try agrees");
        balance(&mut kept, &mut counts, 0.1, 7);
        assert_eq!((kept.len(), counts.kept, counts.no_answer, counts.unbalanced, counts.confirmed), (20, 20, 2, 10, 20));
        balance(&mut kept, &mut counts, 0.0, 7);
        assert_eq!((kept.len(), counts.no_answer), (18, 0));
        // one of two tries is too few to believe it
        let doubtful = vec![none(0), TrajectoryRecord { sample: 1, reward: 0.0, no_answer: false, ..none(0) }];
        assert_eq!(keep(doubtful, 1, &Filter::default(), |_| 1.0).1.lucky, 1);
    }
}
