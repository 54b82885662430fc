//! Where the built-in tools look: the group's own corpus, and the collections that a task names.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use autoact_base::in_turn;
use autoact_trajectory::Source;

use crate::corpus::{Corpus, Page};
use crate::text::fold;
use crate::tool::{ToolCall, ToolError};

/// The titles most like a name among which its only completion is looked for: as many as the memory
/// service tells.
const COMPLETIONS: usize = 16;
/// A name with fewer letters is not completed.
const LEAST_COMPLETED: usize = 3;

/// Where a page's text stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The collection; empty for the group's own corpus.
    pub collection: String,
    /// The file in the collection; empty for the group's own corpus.
    pub file: String,
    /// The heading above it.
    pub heading: Option<String>,
    /// The page of the file, from 1, if its format has pages.
    pub page: Option<u32>,
    /// Where its text begins, in bytes of the document's text.
    pub start: u64,
}

/// A page that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedPage {
    /// The page.
    pub page: Page,
    /// Where it stands.
    pub place: Place,
}

impl PlacedPage {
    /// A part of the page's text as the source of an observation.
    pub(crate) fn source(&self, span: Range<usize>) -> Source {
        let Place { collection, file, heading, page, start } = self.place.clone();
        let (begin, end) = (start + span.start as u64, start + span.end as u64);
        let text = self.page.text.get(span).unwrap_or_default().to_owned();
        let heading = heading.unwrap_or_default();
        Source { collection, file, title: self.page.title.clone(), heading, page, start: begin, end, text }
    }
}

/// What a name led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A page.
    Page {
        /// The page.
        page: PlacedPage,
        /// The name is a spelling of its title; otherwise it is an alias, or misspelt.
        by_title: bool,
        /// Other pages that have the same name, in files that come later.
        also: Vec<Place>,
    },
    /// None: the titles like it, best first.
    Unknown {
        /// The titles.
        similar: Vec<String>,
    },
}

/// Whose collections, in the order of their precedence.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The collections' names.
    pub collections: &'a [String],
    /// When nobody waits for the answer any more; `None`: nobody has said.
    pub deadline: Option<Instant>,
}

/// Why a collection could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectionError {
    /// Whoever keeps the collections says why not: there is none of that name.
    #[error("{0}")]
    Refused(String),
    /// Whoever keeps the collections did not answer.
    #[error("the collections cannot be read: {0}")]
    Away(String),
}

/// Users' documents. Called on blocking threads.
pub trait Collections: Send + Sync {
    /// The segments that match a query best, best first.
    ///
    /// # Errors
    /// A collection is not there, or cannot be read.
    fn search(&self, scope: Scope<'_>, query: &str, limit: usize) -> Result<Vec<PlacedPage>, CollectionError>;

    /// The segment that a name means, or up to `similar` titles like it.
    ///
    /// # Errors
    /// A collection is not there, or cannot be read.
    fn open(&self, scope: Scope<'_>, name: &str, similar: usize) -> Result<Opened, CollectionError>;
}

/// What the built-in tools know: a task that names no knowledge has the group's own corpus, one that
/// does has what it names, the first before the others.
#[derive(Clone)]
pub struct Knowledge {
    corpus: Option<Arc<Corpus>>,
    /// By this name a task asks for the corpus beside collections.
    name: String,
    collections: Option<Arc<dyn Collections>>,
}

impl From<Arc<Corpus>> for Knowledge {
    /// The corpus alone, without a name.
    fn from(corpus: Arc<Corpus>) -> Knowledge {
        Knowledge { corpus: Some(corpus), name: String::new(), collections: None }
    }
}

/// A part of what a task named.
pub(crate) enum Part<'a> {
    Corpus(&'a Corpus),
    Collections(&'a dyn Collections, Scope<'a>),
}

impl Knowledge {
    /// A named corpus, if the group has one, and collections, if somebody keeps them.
    pub fn new(corpus: Option<(String, Arc<Corpus>)>, collections: Option<Arc<dyn Collections>>) -> Knowledge {
        let (name, corpus) = corpus.map_or_else(Default::default, |(name, corpus)| (name, Some(corpus)));
        Knowledge { corpus, name, collections }
    }

    /// What tasks call the corpus.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same with another corpus.
    pub(crate) fn with_corpus(&self, corpus: &Arc<Corpus>) -> Knowledge {
        Knowledge { corpus: Some(corpus.clone()), ..self.clone() }
    }

    /// The best pages for a query, best first. Of several parts each gives its best in turn.
    pub(crate) fn search(&self, call: &ToolCall<'_>, query: &str, limit: usize) -> Result<Vec<PlacedPage>, ToolError> {
        let mut lists = Vec::new();
        for part in self.parts(call)? {
            lists.push(match part {
                Part::Corpus(corpus) => {
                    let hits = corpus.search(query, limit).map_err(|error| ToolError::Internal(format!("cannot search: {error}")))?;
                    hits.into_iter().map(|(page, _)| own(page)).collect()
                }
                Part::Collections(collections, scope) => collections.search(scope, query, limit).map_err(told)?,
            });
        }
        Ok(in_turn(lists, limit))
    }

    /// The page that a name means; or somebody's work ([`work_of`]), if its page has the owner's name;
    /// or the page whose title has the same words ([`reordered`]), or more ([`completed`]); or up to
    /// `similar` titles like it.
    pub(crate) fn open(&self, call: &ToolCall<'_>, name: &str, similar: usize) -> Result<Opened, ToolError> {
        let mut titles = match self.named(call, name, similar.max(COMPLETIONS))? {
            Opened::Unknown { similar } => similar,
            found => return Ok(found),
        };
        if let Some((owner, work)) = work_of(name)
            && let Opened::Page { page, also, .. } = self.named(call, &work, 0)?
            && has_words(&page.page.text, &owner)
        {
            return Ok(Opened::Page { page, by_title: false, also });
        }
        if let Some(title) = reordered(name, &titles).or_else(|| completed(name, &titles))
            && let Opened::Page { page, also, .. } = self.named(call, title, 0)?
        {
            return Ok(Opened::Page { page, by_title: false, also });
        }
        titles.truncate(similar);
        Ok(Opened::Unknown { similar: titles })
    }

    /// The page that a name means, or up to `asked` titles like it of each part.
    pub(crate) fn named(&self, call: &ToolCall<'_>, name: &str, asked: usize) -> Result<Opened, ToolError> {
        let mut found: Option<(PlacedPage, bool)> = None;
        let mut others = Vec::new();
        let mut titles = Vec::new();
        for part in self.parts(call)? {
            let opened = match part {
                Part::Corpus(corpus) => open_corpus(corpus, name, asked),
                Part::Collections(collections, scope) => collections.open(scope, name, asked).map_err(told)?,
            };
            match (opened, &found) {
                (Opened::Page { page, by_title, also }, None) => {
                    found = Some((page, by_title));
                    others.extend(also);
                }
                // what only resembles the name is no second source of it
                (Opened::Page { page, by_title: true, also }, Some(_)) => {
                    others.push(page.place);
                    others.extend(also);
                }
                (Opened::Page { .. }, Some(_)) => {}
                (Opened::Unknown { similar }, _) => titles.extend(similar),
            }
        }
        Ok(match found {
            Some((page, by_title)) => Opened::Page { page, by_title, also: others },
            None => Opened::Unknown { similar: titles },
        })
    }

    /// Whether two names lead to the same page. A group without a corpus has none for a task that
    /// names no collection.
    pub(crate) fn same_page(&self, call: &ToolCall<'_>, a: &str, b: &str) -> Result<bool, ToolError> {
        if self.corpus.is_none() && call.trajectory.context.knowledge.is_empty() {
            return Ok(false);
        }
        Ok(match (self.open(call, a, 0)?, self.open(call, b, 0)?) {
            (Opened::Page { page: one, .. }, Opened::Page { page: other, .. }) => {
                one.page.title == other.page.title && one.place == other.place
            }
            _ => false,
        })
    }

    /// What a call looks into, in order.
    pub(crate) fn parts<'a>(&'a self, call: &ToolCall<'a>) -> Result<Vec<Part<'a>>, ToolError> {
        let names = &call.trajectory.context.knowledge;
        if names.is_empty() {
            let corpus = self.corpus.as_deref();
            let corpus =
                corpus.ok_or_else(|| ToolError::Internal("the task names no collection, and the group has no corpus".to_owned()))?;
            return Ok(vec![Part::Corpus(corpus)]);
        }
        let is_own = |name: &String| self.corpus.is_some() && *name == self.name;
        let mut parts = Vec::new();
        for run in names.chunk_by(|one, next| !is_own(one) && !is_own(next)) {
            parts.push(match (&self.corpus, &self.collections) {
                (Some(corpus), _) if run.iter().all(is_own) => Part::Corpus(corpus),
                (_, Some(collections)) => {
                    let scope = Scope { tenant: call.tenant, collections: run, deadline: call.deadline };
                    Part::Collections(&**collections, scope)
                }
                (_, None) => {
                    let error = CollectionError::Away("this group keeps none".to_owned());
                    return Err(told(error));
                }
            });
        }
        Ok(parts)
    }
}

fn open_corpus(corpus: &Corpus, name: &str, similar: usize) -> Opened {
    match corpus.meant(name) {
        Some(page) => Opened::Page { page: own(page), by_title: corpus.is_title(name), also: Vec::new() },
        None => Opened::Unknown { similar: corpus.similar(name, similar).into_iter().map(|page| page.title.clone()).collect() },
    }
}

/// A page of the group's own corpus.
fn own(page: &Page) -> PlacedPage {
    PlacedPage { page: page.clone(), place: Place::default() }
}

/// Whose work is named, and its name: `Kafka` and `The Trial`, in `Kafka's The Trial` and in `The
/// Trial by Kafka`.
fn work_of(name: &str) -> Option<(String, String)> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let (owner, work) = match words.iter().enumerate().find_map(|(at, word)| Some((at, possessor(word)?))) {
        Some((at, last)) => (words[..at].iter().copied().chain([last]).collect::<Vec<_>>().join(" "), words[at + 1..].join(" ")),
        None => {
            let by = words.iter().rposition(|word| word.eq_ignore_ascii_case("by"))?;
            (words[by + 1..].join(" "), words[..by].join(" "))
        }
    };
    (!owner.is_empty() && !work.is_empty()).then_some((owner, work))
}

/// `Kafka` of `Kafka's`, `Dickens` of `Dickens'`.
fn possessor(word: &str) -> Option<&str> {
    ["'s", "’s", "'", "’"].iter().find_map(|ending| word.strip_suffix(ending)).filter(|owner| owner.len() > 1)
}

/// Whether a text has all words of a name.
fn has_words(text: &str, name: &str) -> bool {
    let text = fold(text);
    fold(name).split(' ').all(|word| text.split(' ').any(|other| other == word))
}

/// The only one of the titles that has a name's words and no others, up to `of` and `the`: `Yale
/// University` for `University of Yale`.
fn reordered<'a>(name: &str, titles: &'a [String]) -> Option<&'a String> {
    let sorted = |text: &str| {
        let text = fold(text);
        let mut words: Vec<String> = text.split(' ').filter(|word| !["of", "the"].contains(word)).map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    let words = sorted(name);
    let mut found = titles.iter().filter(|title| words.len() > 1 && sorted(title) == words);
    found.next().filter(|_| found.next().is_none())
}

/// The only one of the titles that has all words of a name, if it begins with them, or ends with them
/// behind `and` (`Dispatch` for `Stores and Dispatch`). `Tower` is not completed where there are
/// `Tower Bridge` and `Cairo Tower`.
fn completed<'a>(name: &str, titles: &'a [String]) -> Option<&'a String> {
    let name = fold(name);
    let mut found = titles.iter().filter(|title| has_words(title, &name));
    let only = found.next().filter(|_| name.chars().count() >= LEAST_COMPLETED && found.next().is_none())?;
    let title = fold(only);
    let begins = title.strip_prefix(&name).is_some_and(|rest| rest.starts_with(' '));
    let ends = title.strip_suffix(&name).is_some_and(|head| head.ends_with(" and "));
    (begins || ends).then_some(only)
}

pub(crate) fn told(error: CollectionError) -> ToolError {
    ToolError::Internal(error.to_string())
}
