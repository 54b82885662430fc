//! A scripted model and two pages. For tests only.
#![allow(dead_code)] // each test binary uses its part

use std::sync::Arc;

use autoact_in_process::Voices;
use autoact_model::{Backend, GenerateError, GenerateRequest};
use autoact_planners::{Cast, Kind, Outcome, PlannerOptions, Toolbox, build};
use autoact_speaker::testing::ScriptedBackend;
use autoact_tools::{Corpus, Page, ToolLibrary};
use tokio::runtime::Runtime;

pub(crate) const QUESTION: &str = "What is the capital of the country where the Loire flows?";

/// The scripted model needs a runtime; planners block outside of it.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

pub(crate) fn tools() -> Toolbox {
    let page = |title: &str, text: &str| Page { title: title.into(), text: text.into() };
    let pages = vec![page("Loire", "The Loire is a river in France."), page("France", "France is a country. Its capital is Paris.")];
    Toolbox::all(Arc::new(ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap()))
}

/// Neither instructions nor examples.
pub(crate) fn bare() -> PlannerOptions {
    let info = ScriptedBackend::saying("").info().clone();
    PlannerOptions { shots: 0, instructions: false, ..PlannerOptions::for_model(&info) }
}

pub(crate) fn cast() -> Cast {
    let unfiltered = Voices::named(|role| format!("u-{}", role.as_str()));
    let trained_on = Kind::FIGURE_3.into_iter().filter_map(|kind| Some((kind.trained_on()?, Voices::by_role()))).collect();
    Cast {
        calibration: None,
        group: Some(Voices::by_role()),
        one: Some("one".into()),
        unfiltered: Some(unfiltered),
        specified: Some(Voices::by_role()),
        trained_on,
    }
}

/// The outcome of a planner with a scripted model, and the model's requests.
pub(crate) fn solve(
    kind: Kind,
    options: &PlannerOptions,
    script: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (Outcome, Vec<GenerateRequest>) {
    try_solve(kind, options, move |prompt| Ok(script(prompt)))
}

pub(crate) fn try_solve(
    kind: Kind,
    options: &PlannerOptions,
    script: impl Fn(&str) -> Result<String, GenerateError> + Send + Sync + 'static,
) -> (Outcome, Vec<GenerateRequest>) {
    let runtime = runtime();
    let _entered = runtime.enter();
    let scripted = Arc::new(ScriptedBackend::new(move |request| script(&request.prompt)));
    let backend: Arc<dyn Backend> = scripted.clone();
    let outcome = build(kind, &backend, &cast(), options).unwrap().solve(QUESTION, &tools(), 7);
    (outcome, scripted.requests())
}

/// Number of observations in a prompt.
pub(crate) fn seen(prompt: &str) -> usize {
    prompt.matches("\nObservation:").count()
}

pub(crate) fn last_line(prompt: &str) -> &str {
    prompt.rsplit('\n').next().unwrap_or_default()
}

/// A whole step in one reply: the Loire, then France, then `answer`.
pub(crate) fn step(prompt: &str, answer: &str) -> String {
    match seen(prompt) {
        0 => " I need the country.\nAction: Retrieve\nInput: Loire\n".to_owned(),
        1 => " I need the capital.\nAction: Retrieve\nInput: France\n".to_owned(),
        _ => format!(" It is there.\nAction: Finish\nInput: {answer}\n"),
    }
}

/// Only the input, in the same order.
pub(crate) fn input(prompt: &str) -> String {
    match seen(prompt) {
        0 => " Loire\n".to_owned(),
        1 => " France\n".to_owned(),
        _ => " Paris\n".to_owned(),
    }
}
