//! Questions with the pages that they need.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Pages, and questions about them.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    /// Titles and texts.
    pub(crate) pages: Vec<(String, String)>,
    pub(crate) questions: Vec<Question>,
}

/// A question, and the titles of the pages that it needs.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) needs: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Page {
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct AtlasQuestion {
    text: String,
    entities: Vec<String>,
}

#[derive(Deserialize)]
struct Hotpot {
    question: String,
    supporting_facts: Vec<(String, usize)>,
    context: Vec<(String, Vec<String>)>,
}

/// The atlas's held-out questions: they need the pages of what they name.
pub(crate) fn atlas(directory: &Path) -> anyhow::Result<Set> {
    let pages: Vec<Page> = lines(&directory.join("pages.jsonl"))?;
    let questions: Vec<AtlasQuestion> = lines(&directory.join("questions/held-out.jsonl"))?;
    let questions = questions.into_iter().map(|asked| Question { text: asked.text, needs: asked.entities.into_iter().collect() });
    Ok(Set {
        name: "the atlas, held-out questions",
        pages: pages.into_iter().map(|page| (page.title, page.text)).collect(),
        questions: questions.filter(|question| !question.needs.is_empty()).collect(),
    })
}

/// HotpotQA's questions need the paragraphs of their supporting facts, among those of all questions.
pub(crate) fn hotpotqa(path: &Path) -> anyhow::Result<Set> {
    let records: Vec<Hotpot> = lines(path)?;
    let mut pages = BTreeMap::new();
    let mut questions = Vec::new();
    for Hotpot { question, supporting_facts, context } in records {
        pages.extend(context.into_iter().map(|(title, sentences)| (title, sentences.concat())));
        questions.push(Question { text: question, needs: supporting_facts.into_iter().map(|(title, _)| title).collect() });
    }
    Ok(Set { name: "HotpotQA, all paragraphs", pages: pages.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect(), questions })
}

fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| Ok(serde_json::from_str(line)?)).collect()
}
