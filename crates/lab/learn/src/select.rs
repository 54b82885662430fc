//! Automatic tool selection. The meta-agent is asked several times which tools of the library some
//! questions need, each time about an example and other questions. Tools with enough votes are
//! selected (T_s).

use std::collections::HashMap;

use autoact_base::random::Rng;
use autoact_model::{GenerateRequest, Grammar, Sampling};
use autoact_score::with_options;
use autoact_trajectory::ToolSpec;

use crate::error::LearnError;
use crate::pool::complete;
use crate::prompt::{choice_form, introduction, read_choice, tool_choice};
use crate::records::{QuestionRecord, Selection, Vote};
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{read, write_json};
use crate::task::Example;
use crate::workplace::Workplace;

/// Maximum number of tokens of a reply: names and commas of a large library.
const REPLY_TOKENS: usize = 160;

/// Selects tools and writes `tools.json`.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn select(work: &Workplace, run: &mut Run) -> Result<(), LearnError> {
    let settings = &work.task.settings.select;
    let database: Vec<QuestionRecord> = read(&run.path("questions.jsonl"))?;
    let pool = work.pool()?;
    let opening = introduction(&work.task, pool.is_chat());
    let specs = work.library.specs();
    let votes: Vec<u64> = (0..settings.votes as u64).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut asked = 0;
    work.view.begin(Stage::Select, "votes", 0, votes.len() as u64);
    pool.each(
        &votes,
        &work.stop,
        |vote, backend| {
            let mut rng = Rng::numbered(work.task.seed, *vote, "select");
            let mut listed: Vec<&ToolSpec> = specs.iter().collect();
            rng.shuffle(&mut listed);
            let questions = asked_about(&mut rng, &work.task.examples, &database, settings.questions);
            let request = GenerateRequest {
                sampling: Sampling::with_temperature(settings.temperature, rng.next_u64()),
                max_tokens: REPLY_TOKENS,
                grammar: Some(Grammar::Regex(choice_form(&listed))),
                ..GenerateRequest::new(tool_choice(&opening, &listed, &questions))
            };
            Ok(read_choice(&complete(backend.as_ref(), request)?.text))
        },
        |_, names: Vec<String>| {
            asked += 1;
            names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
            work.view.advance(asked as u64, "");
            Ok::<(), LearnError>(())
        },
    )?;
    work.go_on(Stage::Select)?;
    let sentences = settings.sentences.unwrap_or_default();
    let selection = Selection { sentences, ..tally(specs, &counts, asked, settings.share) };
    write_json(&run.path("tools.json"), &selection)?;
    let told: Vec<String> = selection.votes.iter().map(|vote| format!("{} {:.0}%", vote.tool, 100.0 * vote.share)).collect();
    work.view.end(&format!("{} (votes: {})", selection.selected.join(", "), told.join(", ")));
    Ok(())
}

/// The questions of a vote: an example, and `count - 1` of the database. Self-instruct makes more of
/// one form than of another; the examples are what people ask.
fn asked_about(rng: &mut Rng, examples: &[Example], database: &[QuestionRecord], count: usize) -> Vec<String> {
    let example = rng.pick(examples).map(|example| with_options(&example.question, &example.options));
    let mut questions: Vec<String> = example.into_iter().collect();
    while questions.len() < count {
        let Some(entry) = rng.pick(database) else { break };
        questions.push(with_options(&entry.question, &entry.options));
    }
    questions.dedup();
    questions
}

/// The tools with enough votes. Terminal tools are always selected, because no answer is possible
/// without one.
fn tally(specs: &[ToolSpec], counts: &HashMap<String, usize>, asked: usize, share: f64) -> Selection {
    let votes: Vec<Vote> = specs
        .iter()
        .map(|spec| {
            let part = counts.get(&spec.name).copied().unwrap_or_default() as f64 / asked.max(1) as f64;
            Vote { tool: spec.name.clone(), share: part, selected: spec.is_terminal() || part >= share }
        })
        .collect();
    let selected = votes.iter().filter(|vote| vote.selected).map(|vote| vote.tool.clone()).collect();
    Selection { selected, votes, asked, sentences: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_about_an_example_and_other_questions() {
        let examples = [Example { question: "Which is longer?".to_owned(), answer: "Loire".to_owned(), options: Vec::new() }];
        let made = |question: &str| QuestionRecord {
            attempt: Some(1),
            question: question.to_owned(),
            answer: None,
            options: Vec::new(),
            pages: Vec::new(),
            ..QuestionRecord::default()
        };
        let database: Vec<QuestionRecord> = ["Who?", "Where?", "When?"].map(made).into();
        let of = |vote, examples: &[Example]| asked_about(&mut Rng::numbered(1, vote, "select"), examples, &database, 3);
        assert!((0..20).all(|vote| of(vote, &examples)[0] == examples[0].question));
        assert!((0..20).any(|vote| of(vote, &examples).len() == 3), "and two others, unless they are the same");
        assert!(of(0, &[]).iter().all(|question| question != &examples[0].question));
    }

    #[test]
    fn enough_votes_select_and_terminal_tools_always_stay() {
        let counts = HashMap::from([("Search".to_owned(), 1), ("Retrieve".to_owned(), 9)]);
        let selection = tally(&[ToolSpec::new("Search"), ToolSpec::new("Retrieve"), ToolSpec::new("Finish")], &counts, 10, 0.15);
        assert_eq!(selection.selected, ["Retrieve", "Finish"]);
        assert_eq!(selection.votes[0].share, 0.1);
    }
}
