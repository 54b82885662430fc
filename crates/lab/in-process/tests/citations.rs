//! Citations from a tool's sources to the end of a task, in one process with a scripted model.
#![allow(clippy::unwrap_used)] // tests

use std::sync::Arc;

use autoact_in_process::{LocalGroup, RunOptions, Voices};
use autoact_model::GenerateError;
use autoact_speaker::testing::ScriptedBackend;
use autoact_tools::{Corpus, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::{MAX_SOURCE_TEXT_BYTES, Source, Task, ToolSpec};

const SHOWN: &str = "Staff may travel. A manager approves travel over 2,000 euros.";

/// Shows a passage of a handbook, and one that is too long.
struct Show(ToolSpec);

impl Tool for Show {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let source = |text: String| Source {
            collection: "handbook".into(),
            file: "travel.pdf".into(),
            title: "Travel".into(),
            heading: "Hotels".into(),
            page: Some(3),
            start: 100,
            end: 100 + text.len() as u64,
            text,
        };
        let sources = vec![source(SHOWN.into()), source("x".repeat(2 * MAX_SOURCE_TEXT_BYTES))];
        Ok(ToolOutput { sources, ..SHOWN.to_owned().into() })
    }
}

fn run() -> Task {
    let spec = ToolSpec {
        definition: "Shows the handbook.".into(),
        usage: "Show[topic]".into(),
        max_observation_bytes: 2048,
        ..ToolSpec::new("Show")
    };
    let pages = vec![Page { title: "Loire".into(), text: "The Loire is a river.".into() }];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap().with_tool(Arc::new(Show(spec))).unwrap();
    let backend = ScriptedBackend::new(|request| {
        let prompt: &str = &request.prompt;
        Ok(match prompt.rsplit(['\n', '>']).next().unwrap_or_default() {
            "Thought:" if prompt.contains("2,000") => " A manager approves travel over 2000 euros.\nAction: Finish\n".to_owned(),
            "Thought:" => " I need the handbook.\nAction: Show\n".to_owned(),
            "Input:" if prompt.contains("Action: Finish") => " a manager\n".to_owned(),
            "Input:" => " travel\n".to_owned(),
            "Reflection:" => " So it is.\nVerdict: right\n".to_owned(),
            other => return Err(GenerateError::engine(format!("asked `{other}`"))),
        })
    });
    let group = LocalGroup::new(Arc::new(backend), Arc::new(library), Voices::base());
    group.run("Who approves expensive travel?", group.library().specs(), &RunOptions::default()).unwrap()
}

#[test]
fn a_tools_sources_become_the_answers_citations() {
    let task = run();
    let step = task.trajectory().steps().next().unwrap();
    let sizes: Vec<usize> = step.sources.iter().map(|source| source.text.len()).collect();
    assert_eq!(sizes, [SHOWN.len(), MAX_SOURCE_TEXT_BYTES]);
    let finished = task.finished().unwrap();
    assert!(finished.approved, "{task:?}");
    let [citation] = finished.citations.as_slice() else { panic!("{:?}", finished.citations) };
    assert_eq!(citation.quote, "A manager approves travel over 2,000 euros.");
    assert_eq!((citation.step, citation.start, citation.page), (1, 100 + 18, Some(3)));
    assert_eq!((citation.collection.as_str(), citation.file.as_str(), citation.heading.as_str()), ("handbook", "travel.pdf", "Hotels"));
}
