//! What a name means that no page has, and that the group did not copy from anywhere.
//!
//! A small model breaks names that it copies (`Faculty of Law and Cust)`), or takes other words of a
//! question for the name (`any idea` of `any idea how old Harvard is?`). Both are told from a name
//! that is unknown: that one is said, and looks like a name.

use std::collections::HashSet;

use autoact_trajectory::{Step, Trajectory};

use crate::knowledge::{Knowledge, Opened, Part, told};
use crate::names::{names_nothing, similar, spelt_as_names};
use crate::text::fold;
use crate::tool::{ToolCall, ToolError};

/// So many names of a text are looked for in collections, one after the other.
const MOST_NAMES: usize = 8;

impl Knowledge {
    /// [`Knowledge::open`] for a name that the group wrote after so many steps. If it is said neither
    /// in the question nor in what was read, or if it is words that name nothing, it means the only
    /// page that the question names and that is not open yet. In the former case it may also mean the
    /// one that it is most like, of several and of those that the last observation names. Where no
    /// page is meant, those that the question names come first of the similar ones.
    pub(crate) fn open_written(&self, call: &ToolCall<'_>, name: &str, steps: usize, limit: usize) -> Result<Opened, ToolError> {
        let mut titles = match self.open(call, name, limit)? {
            Opened::Unknown { similar } => similar,
            found => return Ok(found),
        };
        let read: Vec<&Step> = call.trajectory.steps().take(steps).collect();
        let asked = self.titles_in(call, &call.trajectory.question)?;
        let is_slip = !is_said(call.trajectory, &read, name);
        let mut near: Vec<String> = asked.iter().filter(|title| !is_open(title, &read)).cloned().collect();
        let mut meant = match near.as_slice() {
            [only] if is_slip || name.split_whitespace().all(names_nothing) => Some(only.clone()),
            _ => None,
        };
        if meant.is_none() && is_slip {
            if let Some(observation) = read.last().and_then(|step| step.observation.as_deref()) {
                near.extend(self.titles_in(call, observation)?.into_iter().filter(|title| !is_open(title, &read)));
            }
            meant = most_like(name, near);
        }
        if let Some(title) = meant
            && let Opened::Page { page, also, .. } = self.named(call, &title, 0)?
        {
            return Ok(Opened::Page { page, by_title: false, also });
        }
        titles.retain(|title| !asked.contains(title));
        titles.splice(0..0, asked);
        titles.truncate(limit);
        Ok(Opened::Unknown { similar: titles })
    }

    /// The titles of the pages that a text names. In collections only names with capital letters are
    /// looked for.
    fn titles_in(&self, call: &ToolCall<'_>, text: &str) -> Result<Vec<String>, ToolError> {
        let mut titles = Vec::new();
        for part in self.parts(call)? {
            match part {
                Part::Corpus(corpus) => titles.extend(corpus.named(text).into_iter().map(|page| page.title.clone())),
                Part::Collections(collections, scope) => {
                    for name in spelt_as_names(text).into_iter().take(MOST_NAMES) {
                        if let Opened::Page { page, .. } = collections.open(scope, &name, 0).map_err(told)? {
                            titles.push(page.page.title);
                        }
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        titles.retain(|title| seen.insert(title.clone()));
        Ok(titles)
    }
}

/// Whether a name is in the question, in what was recalled, or in what was read.
fn is_said(trajectory: &Trajectory, read: &[&Step], name: &str) -> bool {
    let phrase = format!(" {} ", fold(name));
    let recalled = trajectory.recalled.iter().flat_map(|item| [item.question.as_str(), item.answer.as_str()]);
    let observed = read.iter().filter_map(|step| step.observation.as_deref());
    let mut texts = std::iter::once(trajectory.question.as_str()).chain(recalled).chain(observed);
    texts.any(|text| format!(" {} ", fold(text)).contains(&phrase))
}

/// Whether a page was asked for by its title.
fn is_open(title: &str, read: &[&Step]) -> bool {
    read.iter().filter_map(|step| step.params.as_deref()).any(|params| fold(params) == fold(title))
}

/// The title that a name is most like, if it is like one.
fn most_like(name: &str, mut titles: Vec<String>) -> Option<String> {
    let folded: Vec<String> = titles.iter().map(|title| fold(title)).collect();
    let at = *similar(name, folded.iter().map(String::as_str), 1).first()?;
    Some(titles.swap_remove(at))
}
