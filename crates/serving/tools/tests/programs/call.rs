//! Runs one call of a tool: `tools-test-call LIBRARY TOOL PARAMS`. It prints the observation as
//! JSON, or the mistakes of the library. Tests run it because a sandbox starts its caller's
//! executable once more, which a test's cannot be.

use std::sync::Arc;

use autoact_tools::{Corpus, Observation, Page, ToolLibrary};
use autoact_trajectory::{Action, Trajectory};
use serde_json::json;

fn main() {
    autoact_sandbox::run_if_launcher();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, tool, params] = arguments.as_slice() else {
        println!("{}", json!({"mistakes": ["expected LIBRARY TOOL PARAMS"]}));
        return;
    };
    let corpus = Corpus::from_pages(vec![Page { title: "A".to_owned(), text: "A.".to_owned() }]);
    let library = match corpus.map(Arc::new).map(|corpus| ToolLibrary::load(library, corpus)) {
        Ok(Ok(library)) => library,
        Ok(Err(error)) => return println!("{}", json!({"mistakes": error.mistakes()})),
        Err(error) => return println!("{}", json!({"mistakes": [error.to_string()]})),
    };
    let sandboxes: Vec<&str> = library.sandboxes().map(|(tool, _)| tool).collect();
    let trusted: Vec<&str> = library.trusted().collect();
    let action = Action { tool: tool.clone(), params: params.clone() };
    let Observation { text, is_error, artifacts, .. } = library.execute(&action, &Trajectory::default());
    let artifacts: Vec<_> =
        artifacts.iter().map(|artifact| json!([artifact.name, artifact.kind, String::from_utf8_lossy(&artifact.data)])).collect();
    println!("{}", json!({"text": text, "is_error": is_error, "artifacts": artifacts, "sandboxes": sandboxes, "trusted": trusted}));
}
