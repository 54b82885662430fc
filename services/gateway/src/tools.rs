//! The tool library as the gateway knows it: asked of Tool-Agent when a task is submitted, and kept for a while.

use std::sync::Arc;
use std::time::Duration;

use autoact_trajectory::{FINISH, ToolSpec};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agents::{AgentError, ToolAgent};
use crate::retry::Patience;

/// A changed library is noticed after this long.
const FRESH: Duration = Duration::from_secs(30);
/// A client that submits waits no longer.
const LIMIT: Duration = Duration::from_secs(5);
/// Names further apart than this are no misspellings of each other.
const MAX_DISTANCE: usize = 3;

/// Why tools could not be selected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectError {
    /// Tool-Agent did not say what tools there are.
    #[error("the tool library is not available")]
    Library(#[source] AgentError),
    /// A name that the library does not have.
    #[error("unknown tool `{name}`{}; the tools are `{}`", meant(nearest), known.join("`, `"))]
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}

/// The library, asked for when needed.
pub(crate) struct Catalog {
    agent: Arc<dyn ToolAgent>,
    known: Mutex<Option<(Instant, Arc<Vec<ToolSpec>>)>>,
}

impl Catalog {
    pub(crate) fn new(agent: Arc<dyn ToolAgent>) -> Catalog {
        Catalog { agent, known: Mutex::default() }
    }

    /// T_s: the named tools and those that end a task, in the library's order; all of them for no names.
    pub(crate) async fn select(&self, names: &[String]) -> Result<Vec<ToolSpec>, SelectError> {
        let library = self.library().await.map_err(SelectError::Library)?;
        for name in names {
            if !library.iter().any(|tool| tool.name == *name) {
                let known: Vec<String> = library.iter().map(|tool| tool.name.clone()).collect();
                return Err(SelectError::Unknown { name: shortened(name), nearest: nearest(name, &known), known });
            }
        }
        let selected = |tool: &&ToolSpec| names.is_empty() || tool.terminal || names.contains(&tool.name);
        let mut tools: Vec<ToolSpec> = library.iter().filter(selected).cloned().collect();
        if !tools.iter().any(|tool| tool.terminal) {
            tools.push(finish());
        }
        Ok(tools)
    }

    async fn library(&self) -> Result<Arc<Vec<ToolSpec>>, AgentError> {
        // held while asking: one question for all who wait
        let mut known = self.known.lock().await;
        if let Some((at, tools)) = known.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(tools.clone());
        }
        let patience = Patience { deadline: Instant::now() + LIMIT, unreachable: LIMIT, call: LIMIT };
        match (patience.call(|limit| self.agent.list_tools(limit)).await, known.as_ref()) {
            (Ok(tools), _) => {
                let tools = Arc::new(tools);
                *known = Some((Instant::now(), tools.clone()));
                Ok(tools)
            }
            (Err(error), Some((_, tools))) => {
                tracing::warn!(%error, "the tool library was not refreshed; the last one is used");
                let tools = tools.clone();
                *known = Some((Instant::now(), tools.clone()));
                Ok(tools)
            }
            (Err(error), None) => Err(error),
        }
    }
}

/// The tool that every task needs, for a library that forgot it.
fn finish() -> ToolSpec {
    ToolSpec {
        name: FINISH.to_owned(),
        definition: "Answers the question and ends the task.".to_owned(),
        usage: format!("{FINISH}[answer]"),
        effect: autoact_trajectory::Effect::ReadOnly,
        timeout: Duration::from_secs(1),
        max_observation_bytes: 1,
        terminal: true,
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

fn nearest(name: &str, known: &[String]) -> Option<String> {
    if name.len() > 64 {
        return None;
    }
    let distances = known.iter().map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate));
    distances
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= MAX_DISTANCE)
        .map(|(_, candidate)| candidate.clone())
}

/// How many letters have to be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised() {
        let known = ["Search", "Retrieve", "Finish"].map(str::to_owned);
        assert_eq!(nearest("retreive", &known).as_deref(), Some("Retrieve"));
        assert_eq!(nearest("Teleport", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
