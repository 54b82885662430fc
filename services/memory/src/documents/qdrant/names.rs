//! What a name means among segments that a server has told of, by the rules of the embedded store.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;

use autoact_collections::{MOST_ALSO, Opened};
use autoact_tools::names::{self, Names};
use autoact_tools::text::fold;

use crate::documents::qdrant::points::StoredSegment;

/// The spellings under which a name may be stored.
pub(super) fn spellings(name: &str) -> HashSet<String> {
    let wanted = Wanted::default();
    let (Ok(_), Ok(_)) = (names::find_title(&wanted, name), names::find_alias(&wanted, name));
    // others that have it as an alias are told too
    wanted.0.into_inner().into_iter().chain([fold(name)]).collect()
}

/// The spellings of all parts of a text that may be a name.
pub(super) fn parts(text: &str) -> HashSet<String> {
    let wanted = Wanted::default();
    let Ok(_) = names::meant(&wanted, text);
    wanted.0.into_inner()
}

/// Names that nothing has: it notes which ones the rules look for.
#[derive(Default)]
struct Wanted(RefCell<HashSet<String>>);

impl Names for Wanted {
    type Page = usize;
    type Error = Infallible;

    fn titled(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        self.0.borrow_mut().insert(folded.to_owned());
        Ok(None)
    }

    fn aliased(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        self.titled(folded)
    }

    fn near(&self, _folded: &str, _each: &mut dyn FnMut(&str, usize)) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Segments by their names.
pub(super) struct Known {
    segments: Vec<StoredSegment>,
    titles: HashMap<String, usize>,
    aliases: HashMap<String, usize>,
}

impl Known {
    /// Of those that share a name the one that was stored first has it.
    pub(super) fn new(mut segments: Vec<StoredSegment>) -> Known {
        segments.sort_by_key(|segment| (segment.place(), segment.id()));
        segments.dedup_by_key(|segment| segment.id());
        let (mut titles, mut aliases) = (HashMap::new(), HashMap::new());
        for (at, segment) in segments.iter().enumerate() {
            titles.entry(segment.name.clone()).or_insert(at);
            for alias in &segment.alias {
                aliases.entry(alias.clone()).or_insert(at);
            }
        }
        Known { segments, titles, aliases }
    }

    /// The segment that has this name.
    pub(super) fn find(&self, name: &str) -> Option<Opened> {
        let Ok(titled) = names::find_title(self, name);
        let Ok(aliased) = names::find_alias(self, name);
        titled.map(|at| self.opened(name, at, true)).or_else(|| aliased.map(|at| self.opened(name, at, false)))
    }

    /// The segment that this name means.
    pub(super) fn meant(&self, name: &str) -> Option<Opened> {
        let Ok(meant) = names::meant(self, name);
        meant.map(|at| self.opened(name, at, false))
    }

    /// The titles most like a name.
    pub(super) fn similar(&self, name: &str, limit: usize) -> Vec<String> {
        let like = names::similar(name, self.segments.iter().map(|segment| segment.name.as_str()), limit);
        like.into_iter().map(|at| self.segments[at].title().to_owned()).collect()
    }

    fn opened(&self, name: &str, at: usize, by_title: bool) -> Opened {
        let folded = fold(name);
        let others = self.segments.iter().enumerate().filter(|(other, segment)| *other != at && segment.alias.contains(&folded));
        let also = others.take(MOST_ALSO).map(|(_, segment)| segment.clone().into()).collect();
        Opened::Segment { segment: Box::new(self.segments[at].clone().into()), by_title, also }
    }
}

impl Names for Known {
    type Page = usize;
    type Error = Infallible;

    fn titled(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        Ok(self.titles.get(folded).copied())
    }

    fn aliased(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        Ok(self.aliases.get(folded).copied())
    }

    fn near(&self, _folded: &str, each: &mut dyn FnMut(&str, usize)) -> Result<(), Infallible> {
        for (at, segment) in self.segments.iter().enumerate() {
            segment.names().for_each(|name| each(name, at));
        }
        Ok(())
    }
}
