//! How a task's tools were chosen from a library that is too large for a prompt.

use crate::bounds::cut;

/// Ranked tools of an event at most.
const MAX_RANKED: usize = 64;
/// Of a [`ToolBackground`]: what a model of meaning reads of a text.
const MAX_TITLE_BYTES: usize = 200;
const MAX_ABOUT_BYTES: usize = 400;
const MAX_DETAILS_BYTES: usize = 800;
/// As long as a tool's name may be.
const MAX_NAME_BYTES: usize = 64;

/// How a task's tools were chosen by its question, once, before its first plan. They head its
/// prompts, so they stay as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolChoice {
    /// The tools that were chosen among: those of the library that not every task has.
    pub among: u32,
    /// The best of them, best first: those that were chosen, and a few that were not.
    pub ranked: Vec<RankedTool>,
}

/// A tool, and how well it fits a question. Scores are 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedTool {
    /// The tool.
    pub name: String,
    /// How well it fits.
    pub score: f64,
    /// How well by words.
    pub words: f64,
    /// How well by meaning; `None`: there was no embedder.
    pub meaning: Option<f64>,
    /// Whether the task has it.
    pub chosen: bool,
}

/// What is known of a tool beside its spec: it counts when tools are chosen, and stands in no prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolBackground {
    /// What it belongs to, such as the title of an API; may be empty.
    pub title: String,
    /// What that is about; may be empty.
    pub about: String,
    /// What is said of the tool beyond its definition; may be empty.
    pub details: String,
}

impl ToolBackground {
    /// Texts of others within their bounds, each one line.
    #[must_use]
    pub fn bounded(self) -> ToolBackground {
        let line = |text: String, most| cut(text.split_whitespace().collect::<Vec<_>>().join(" "), most).0;
        ToolBackground {
            title: line(self.title, MAX_TITLE_BYTES),
            about: line(self.about, MAX_ABOUT_BYTES),
            details: line(self.details, MAX_DETAILS_BYTES),
        }
    }
}

impl ToolChoice {
    /// Within the bounds of an event.
    pub fn new(among: usize, mut ranked: Vec<RankedTool>) -> ToolChoice {
        ranked.truncate(MAX_RANKED);
        for tool in &mut ranked {
            (tool.name, _) = cut(std::mem::take(&mut tool.name), MAX_NAME_BYTES);
        }
        ToolChoice { among: u32::try_from(among).unwrap_or(u32::MAX), ranked }
    }

    /// The tools that the task has by it, best first. None: nothing fitted.
    pub fn chosen(&self) -> impl Iterator<Item = &str> {
        self.ranked.iter().filter(|tool| tool.chosen).map(|tool| tool.name.as_str())
    }
}
