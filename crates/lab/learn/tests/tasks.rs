//! The tasks that come with the project are whole: their files load, and their questions can be
//! answered from their pages.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_learn::Task;
use autoact_tools::{Corpus, ToolLibrary};
use serde_json::Value;

fn tasks() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tasks").canonicalize().unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_task_loads_with_its_pages_and_tools() {
    let files = tasks();
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let task = Task::load(&file).unwrap_or_else(|error| panic!("{error}"));
        let corpus = Arc::new(Corpus::load(&task.corpus).unwrap());
        ToolLibrary::load(&task.tools, corpus).unwrap();
        assert!(!task.examples.is_empty());
    }
}

#[test]
fn every_question_of_an_evaluation_has_its_answer_on_a_page() {
    for file in tasks() {
        let task = Task::load(&file).unwrap();
        let Some(evaluation) = &task.evaluation else { continue };
        let pages: Vec<String> = lines(&task.corpus)
            .iter()
            .map(|page| format!("{}: {}", page["title"].as_str().unwrap(), page["text"].as_str().unwrap()))
            .collect();
        let examples: BTreeSet<&str> = task.examples.iter().map(|example| example.question.as_str()).collect();
        let mut asked = BTreeSet::new();
        for question in lines(evaluation) {
            let text = question.get("question").or_else(|| question.get("text")).and_then(Value::as_str).unwrap().to_owned();
            let answer = question["answer"].as_str().unwrap();
            let computed = question.get("kind").and_then(Value::as_str) == Some("arithmetic");
            let shown = computed || matches!(answer, "yes" | "no") || pages.iter().any(|page| page.contains(answer));
            assert!(shown, "{}: no page has `{answer}`, the answer to `{text}`", file.display());
            assert!(!examples.contains(text.as_str()), "{}: `{text}` is an example", file.display());
            assert!(asked.insert(text.clone()), "{}: `{text}` is asked twice", file.display());
        }
    }
}
