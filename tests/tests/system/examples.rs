//! What a newcomer is told to type works as it stands: every question of README.md, of the help and
//! of `autoact up` is asked, and its answer is the atlas's.

use std::collections::BTreeSet;

use anyhow::Context as _;
use autoact_base::random::Rng;
use autoact_synthetic_kb::{Atlas, KnowledgeBase, Split};
use autoact_testkit::files::root;
use autoact_testkit::{Group, GroupOptions, Program};

use crate::clients::{QUICK, TASK_LIMIT};

/// Wordings of a question that are tried: there are a few for each relation.
const WORDINGS: u64 = 64;

/// Everything in quotation marks that ends with a question mark, but for questions about documents
/// that nobody has. The quotation marks of shells and of JSON look the same.
fn questions(text: &str) -> BTreeSet<String> {
    let quoted = text.lines().filter(|line| !line.contains("--corpus")).flat_map(|line| line.split('"').skip(1).step_by(2));
    quoted.filter(|quoted| quoted.ends_with('?')).map(str::to_owned).collect()
}

/// The transcript in a text: the question that is shown and the answer it has.
fn transcript(text: &str) -> Option<(&str, &str)> {
    let row = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some((row("question ")?, row("answer ")?.split("  ").next()?))
}

/// What the atlas answers; `None` for a question that it does not know.
fn atlas_answer(atlas: &Atlas, question: &str) -> Option<String> {
    let asked = atlas.held_out().into_iter().chain(atlas.dev()).find(|asked| asked.text == question);
    asked.map(|asked| asked.answer).or_else(|| chain_answer(atlas.base(), question))
}

/// The answer of a chain of one to three relations that the question is a wording of.
fn chain_answer(base: &KnowledgeBase, question: &str) -> Option<String> {
    let starts = (0..base.entities().len()).filter(|entity| question.contains(&base.entities()[*entity].title));
    let chains: Vec<_> = (1..=3).flat_map(|hops| base.schema().chains(hops, Split::Any)).collect();
    starts.into_iter().find_map(|start| {
        chains.iter().find_map(|chain| {
            let mut wordings = (0..WORDINGS).filter_map(|seed| base.question_of_chain(start, chain, 0.0, &mut Rng::new(seed)));
            wordings.find(|asked| asked.text == question).map(|asked| asked.answer)
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_answered_as_the_atlas_says() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let readme = std::fs::read_to_string(root().join("README.md"))?;
    let help = Program::new("autoact")?.arg("--help").run(QUICK).await?;
    let mut asked = questions(&readme);
    assert!(asked.len() >= 2, "README.md asks {asked:?}");
    for (text, what) in [(help.stdout.as_str(), "the help"), (&group.said(), "`autoact up`")] {
        let more = questions(text);
        assert!(!more.is_empty(), "{what} has no example:\n{text}");
        asked.extend(more);
    }
    let (question, shown) = transcript(&readme).context("README.md has a transcript")?;
    asked.insert(question.to_owned());

    let atlas = Atlas::load(&root().join("corpora/atlas"))?;
    assert_eq!(atlas_answer(&atlas, question).as_deref(), Some(shown), "the transcript of README.md");
    for question in &asked {
        let answer = atlas_answer(&atlas, question).with_context(|| format!("the atlas knows no answer to `{question}`"))?;
        let output = group.autoact(["ask", "--quiet", question])?.run(TASK_LIMIT).await?;
        println!("{question} {answer}");
        if group.assets().trained {
            assert_eq!((output.stdout.trim_end(), output.code), (answer.as_str(), Some(0)), "`{question}`: {}", output.text());
        }
    }
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_is_answered_as_the_atlas_says() -> anyhow::Result<()> {
    let options = GroupOptions { args: vec!["--demo".to_owned(), "--once".to_owned()], ..GroupOptions::default() };
    let mut group = Group::spawn(options)?;
    let code = group.ended(TASK_LIMIT).await?;
    let said = group.said();
    let (question, answer) = transcript(&said).with_context(|| said.clone())?;
    let atlas = Atlas::load(&root().join("corpora/atlas"))?;
    let expected = atlas_answer(&atlas, question).with_context(|| format!("the atlas knows no answer to `{question}`"))?;
    if group.assets().trained {
        assert_eq!((answer, code), (expected.as_str(), Some(0)), "{said}");
    }
    Ok(())
}

#[test]
fn questions_are_found_in_shell_and_in_json() {
    let text = "autoact ask \"Who wrote Hamlet?\"\ngrpcurl -d '{\"task\": {\"question\": \"Is it?\"}}' x\n./quickstart \"a question\"";
    assert_eq!(questions(text).into_iter().collect::<Vec<_>>(), ["Is it?", "Who wrote Hamlet?"]);
    assert_eq!(transcript("question       Where?\n…\nanswer         Paris  (approved by reflect-agent)"), Some(("Where?", "Paris")));
}
