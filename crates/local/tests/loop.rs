//! The planning loop in one process, with a scripted model.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use autoact_agent::testing::ScriptedBackend;
use autoact_local::{LocalGroup, RunOptions, Voices};
use autoact_model::GenerateError;
use autoact_tools::{Corpus, Page, ToolLibrary};
use autoact_trajectory::{FinishReason, Phase};

fn library() -> Arc<ToolLibrary> {
    let page = Page { title: "Loire".into(), text: "The Loire is a river in France.".into() };
    Arc::new(ToolLibrary::bundled(Arc::new(Corpus::from_pages(vec![page]).unwrap())).unwrap())
}

/// Looks the Loire up and answers France; `verdicts` are spoken one after the other.
fn group(verdict: &'static str) -> LocalGroup {
    let model = ScriptedBackend::new(move |request| {
        let prompt = &request.prompt;
        Ok(match prompt.rsplit('\n').next().unwrap_or_default() {
            "Thought:" if prompt.contains("Observation:") => " It is France.\nAction: Finish\n".to_owned(),
            "Thought:" => " I need the country.\nAction: Retrieve\n".to_owned(),
            "Input:" if prompt.contains("Action: Finish") => " France\n".to_owned(),
            "Input:" => " Loire\n".to_owned(),
            "Reflection:" => format!(" So it is.\nVerdict: {verdict}\n"),
            other => return Err(GenerateError::engine(format!("asked `{other}`"))),
        })
    });
    LocalGroup::new(Arc::new(model), library(), Voices::base())
}

#[test]
fn a_question_runs_to_its_approval() {
    let group = group("right");
    let task = group.run("Where is the Loire?", group.library().specs(), &RunOptions::default()).unwrap();
    assert!(task.finished().unwrap().approved);
    assert_eq!(task.best_answer(), "France");
    assert_eq!(task.steps(), 2);
    assert!(task.trajectory().steps().next().unwrap().observation.as_ref().unwrap().contains("river in France"));
}

#[test]
fn rejections_are_bounded() {
    let group = group("wrong");
    let task = group.run("Where is the Loire?", group.library().specs(), &RunOptions::default()).unwrap();
    assert_eq!(task.finished().unwrap().reason, FinishReason::MaxReflections);
    assert_eq!(task.wrong_verdicts(), RunOptions::default().limits.max_reflections);
}

#[test]
fn without_reflection_the_first_answer_stands() {
    let group = group("wrong");
    let options = RunOptions { without_reflection: true, ..RunOptions::default() };
    let task = group.run("Where is the Loire?", group.library().specs(), &options).unwrap();
    assert_eq!((task.phase(), task.best_answer()), (Phase::Reflecting, "France"));
}

#[test]
fn a_model_that_cannot_speak_ends_the_task_with_the_cause() {
    let model = ScriptedBackend::new(|_| Err(GenerateError::PromptTooLong { tokens: 9, limit: 5 }));
    let group = LocalGroup::new(Arc::new(model), library(), Voices::base());
    let task = group.run("Where is the Loire?", group.library().specs(), &RunOptions::default()).unwrap();
    let finished = task.finished().unwrap();
    assert_eq!(finished.reason, FinishReason::Failed);
    assert!(!finished.detail.is_empty());
}

#[test]
fn a_reply_that_names_no_tool_ends_the_task() {
    let group = LocalGroup::new(Arc::new(ScriptedBackend::saying(" So.\nAction: Retr")), library(), Voices::base());
    let task = group.run("Where is the Loire?", group.library().specs(), &RunOptions::default()).unwrap();
    assert_eq!(task.finished().unwrap().reason, FinishReason::Failed);
}
