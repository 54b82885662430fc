//! The tool library as the gateway knows it: asked of Tool-Agent when it is needed, and kept for a
//! while.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use autoact_planning::Failure;
use autoact_trajectory::{FINISH, Terminal, ToolChoice, ToolSpec};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::agents::choice::{Chooser, Listed};
use crate::agents::listing::Told;
use crate::agents::patience::Patience;
use crate::agents::remote::Library;

/// A changed library is noticed after this long.
const FRESH: Duration = Duration::from_secs(5);
/// What was asked for so recently is as good as asked for now.
const NOW: Duration = Duration::from_millis(200);
/// A client that submits waits no longer.
const LIMIT: Duration = Duration::from_secs(5);
/// Names further apart than this are no misspellings of each other.
const MAX_DISTANCE: usize = 3;
/// Names that are told of a library.
const MOST_TOLD: usize = 16;

/// Why tools could not be selected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SelectError {
    /// Tool-Agent did not say what tools there are.
    #[error("the tool library is not available: {}", .0.chain())]
    Library(Failure),
    /// A name that the library does not have.
    #[error("unknown tool `{name}`{}; the tools are {}", meant(nearest), told(known))]
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
}

fn meant(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(", did you mean `{name}`?")).unwrap_or_default()
}

/// As many as a person reads.
fn told(known: &[String]) -> String {
    let shown = known.iter().take(MOST_TOLD).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match known.len().saturating_sub(MOST_TOLD) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The library, asked for when needed.
pub(crate) struct Catalog {
    library: Arc<dyn Library>,
    chooser: Chooser,
    known: RwLock<Option<Known>>,
    /// Held by the one who asks: one question for all who wait.
    asking: Mutex<()>,
}

#[derive(Clone)]
struct Known {
    at: Instant,
    told: Told,
}

/// T_s of a task.
pub(crate) struct Selected {
    pub(crate) tools: Vec<ToolSpec>,
    /// How those were chosen that not every task has; `None`: there was nothing to choose.
    pub(crate) choice: Option<ToolChoice>,
}

impl Selected {
    /// Leaves out the chosen tool that fits least; false where none is left.
    pub(crate) fn drop_least(&mut self) -> bool {
        let ranked = self.choice.iter_mut().flat_map(|choice| choice.ranked.iter_mut());
        let Some(least) = ranked.rev().find(|tool| tool.chosen) else { return false };
        least.chosen = false;
        self.tools.retain(|tool| tool.name != least.name);
        true
    }
}

impl Catalog {
    pub(crate) fn new(library: Arc<dyn Library>, chooser: Chooser) -> Catalog {
        Catalog { library, chooser, known: RwLock::default(), asking: Mutex::default() }
    }

    /// All tools.
    pub(crate) async fn tools(self: &Arc<Self>) -> Result<Arc<Listed>, SelectError> {
        let known = self.known();
        if let Some(known) = known {
            if known.at.elapsed() >= FRESH {
                // nobody waits for news of a library that is known
                let catalog = Arc::clone(self);
                tokio::spawn(async move { catalog.refresh().await });
            }
            return Ok(known.told.tools);
        }
        let _asking = self.asking.lock().await;
        match self.known() {
            // somebody else asked meanwhile
            Some(known) => Ok(known.told.tools),
            None => self.ask().await.map_err(SelectError::Library),
        }
    }

    /// All tools as they are now, for who looks whether a change has come; those that are known
    /// while Tool-Agent is away.
    pub(crate) async fn tools_now(&self) -> Result<Arc<Listed>, SelectError> {
        let _asking = self.asking.lock().await;
        if let Some(known) = self.known().filter(|known| known.at.elapsed() < NOW) {
            // of many who ask at once, one asks
            return Ok(known.told.tools);
        }
        match (self.ask().await, self.known()) {
            (Ok(tools), _) => Ok(tools),
            (Err(_), Some(known)) => Ok(known.told.tools),
            (Err(failure), None) => Err(SelectError::Library(failure)),
        }
    }

    /// T_s: the named tools and those that end a task, in the library's order. For no names all of
    /// them, and of a large library those that every task has and those that fit the question.
    pub(crate) async fn select(self: &Arc<Self>, names: &[String], question: &str) -> Result<Selected, SelectError> {
        let library = self.tools().await?;
        for name in names {
            if !library.tools.iter().any(|tool| tool.name == *name) {
                let known: Vec<String> = library.tools.iter().map(|tool| tool.name.clone()).collect();
                return Err(SelectError::Unknown { name: shortened(name), nearest: nearest(name, &known), known });
            }
        }
        let choice = if names.is_empty() { self.chooser.choose(&library, question).await } else { None };
        let selected = |tool: &&ToolSpec| match &choice {
            _ if tool.is_terminal() => true,
            Some(choice) => !library.optional.contains_key(&tool.name) || choice.chosen().any(|name| name == tool.name),
            None => names.is_empty() || names.contains(&tool.name),
        };
        let mut tools: Vec<ToolSpec> = library.tools.iter().filter(selected).cloned().collect();
        if !tools.iter().any(ToolSpec::is_answer) {
            tools.push(finish());
        }
        Ok(Selected { tools, choice })
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn refresh(&self) {
        let Ok(_asking) = self.asking.try_lock() else { return };
        if let Err(failure) = self.ask().await {
            tracing::warn!(failure = failure.chain(), "the tool library was not refreshed; the last one is used");
        }
    }

    async fn ask(&self) -> Result<Arc<Listed>, Failure> {
        let patience = Patience { deadline: Instant::now() + LIMIT, away: LIMIT, call: LIMIT };
        let known = self.known().map(|known| known.told);
        let told = patience.call(|attempt| self.library.list_tools(known.as_ref(), attempt.limit)).await?;
        let tools = told.tools.clone();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Known { at: Instant::now(), told });
        Ok(tools)
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
        terminal: Some(Terminal::Answer),
        schema: None,
        examples: Vec::new(),
        multiline: false,
        asks: None,
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

fn nearest(name: &str, known: &[String]) -> Option<String> {
    if name.len() > 64 {
        return None;
    }
    let distances = known.iter().map(|candidate| (strsim::levenshtein(&name.to_lowercase(), &candidate.to_lowercase()), candidate));
    distances
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= MAX_DISTANCE)
        .map(|(_, candidate)| candidate.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_recognised() {
        let known = ["Search", "Retrieve", "Finish"].map(str::to_owned);
        assert_eq!(nearest("retreive", &known).as_deref(), Some("Retrieve"));
        assert_eq!(nearest("Teleport", &known), None);
    }
}
