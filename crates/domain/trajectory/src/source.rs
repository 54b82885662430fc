//! Where the text of an observation comes from.

use autoact_base::sentences::sentence_spans;

use crate::bounds::{
    MAX_SOURCE_HEADING_BYTES, MAX_SOURCE_PATH_BYTES, MAX_SOURCE_TEXT_BYTES, MAX_SOURCES, MAX_SOURCES_BYTES, SOURCE_OVERHEAD_BYTES, cut,
};

/// A passage of a document that an observation shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Source {
    /// The collection of documents; empty: the group's own knowledge base.
    pub collection: String,
    /// The document's path in its collection; empty for the group's own pages.
    pub file: String,
    /// Of the page or section, as `Retrieve` opens it.
    pub title: String,
    /// Under which the passage stands; empty: none.
    pub heading: String,
    /// Of a PDF, from 1.
    pub page: Option<u32>,
    /// Where it begins in the document's extracted text, in bytes; of the group's own pages in the
    /// page's text.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// The bytes from `start` to `end`: what the observation showed of the document.
    pub text: String,
}

impl Source {
    /// What it takes of an event.
    fn bytes(&self) -> usize {
        let Source { collection, file, title, heading, page: _, start: _, end: _, text } = self;
        SOURCE_OVERHEAD_BYTES + [collection, file, title, heading, text].into_iter().map(String::len).sum::<usize>()
    }

    fn check(&self) -> Result<(), InvalidSources> {
        let Source { collection, file, title, heading, page: _, start, end, text } = self;
        if collection.len() + file.len() > MAX_SOURCE_PATH_BYTES {
            return Err(InvalidSources::Path(collection.len() + file.len()));
        }
        if title.len().max(heading.len()) > MAX_SOURCE_HEADING_BYTES {
            return Err(InvalidSources::Heading(title.len().max(heading.len())));
        }
        if text.len() > MAX_SOURCE_TEXT_BYTES {
            return Err(InvalidSources::Text(text.len()));
        }
        if text.is_empty() || end.checked_sub(*start) != Some(text.len() as u64) {
            return Err(InvalidSources::Span { start: *start, end: *end, bytes: text.len() });
        }
        Ok(())
    }
}

/// Sources that are more or larger than an observation may have, or that name other bytes than
/// their text has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSources {
    /// Too many.
    #[error("{0} sources came with one observation; at most {MAX_SOURCES} are stored")]
    Many(usize),
    /// Too large in total.
    #[error("the sources of one observation have {0} bytes; at most {MAX_SOURCES_BYTES} are stored")]
    Large(usize),
    /// The collection and the path are too long.
    #[error("the path of a source has {0} bytes; at most {MAX_SOURCE_PATH_BYTES} are stored")]
    Path(usize),
    /// The title or the heading is too long.
    #[error("the title or heading of a source has {0} bytes; at most {MAX_SOURCE_HEADING_BYTES} are stored")]
    Heading(usize),
    /// The text is too long.
    #[error("the text of a source has {0} bytes; at most {MAX_SOURCE_TEXT_BYTES} are stored")]
    Text(usize),
    /// The text is not what the place says.
    #[error("a source from byte {start} to {end} has a text of {bytes} bytes")]
    Span {
        /// Where it says it begins.
        start: u64,
        /// Where it says it ends.
        end: u64,
        /// How long its text is.
        bytes: usize,
    },
}

/// Whether an observation may have these sources.
///
/// # Errors
/// Names the first mistake.
pub fn check_sources(sources: &[Source]) -> Result<(), InvalidSources> {
    if sources.len() > MAX_SOURCES {
        return Err(InvalidSources::Many(sources.len()));
    }
    sources.iter().try_for_each(Source::check)?;
    match sources.iter().map(Source::bytes).sum() {
        bytes if bytes > MAX_SOURCES_BYTES => Err(InvalidSources::Large(bytes)),
        _ => Ok(()),
    }
}

/// What an observation keeps of its sources in at most `room` bytes, within the bounds. A text is
/// cut after its last whole sentence that has room, for only whole sentences are cited; titles and
/// headings are cut; a source without room, with a path that is too long or with another text than
/// it says is left out.
pub fn bound_sources(sources: Vec<Source>, room: usize) -> Vec<Source> {
    let mut room = room.min(MAX_SOURCES_BYTES);
    let mut kept = Vec::with_capacity(sources.len().min(MAX_SOURCES));
    for source in sources {
        if kept.len() == MAX_SOURCES {
            break;
        }
        let Some(source) = bounded(source, room) else { continue };
        room -= source.bytes();
        kept.push(source);
    }
    kept
}

fn bounded(mut source: Source, room: usize) -> Option<Source> {
    (source.title, _) = cut(source.title, MAX_SOURCE_HEADING_BYTES);
    (source.heading, _) = cut(source.heading, MAX_SOURCE_HEADING_BYTES);
    let honest = source.end.checked_sub(source.start) == Some(source.text.len() as u64);
    if !honest {
        return None;
    }
    let labels = source.bytes() - source.text.len();
    let most = room.checked_sub(labels)?.min(MAX_SOURCE_TEXT_BYTES);
    if source.text.len() > most {
        let head = &source.text[..source.text.floor_char_boundary(most)];
        // the last sentence within the bound may go on after it
        let whole = sentence_spans(&source.text).into_iter().map(|span| span.end).take_while(|end| *end <= head.len()).last();
        source.text.truncate(whole.unwrap_or(head.len()));
        source.end = source.start + source.text.len() as u64;
    }
    source.check().is_ok().then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn source(text: &str) -> Source {
        Source { title: "Loire".into(), start: 7, end: 7 + text.len() as u64, text: text.into(), ..Source::default() }
    }

    #[test]
    fn a_long_text_ends_with_a_whole_sentence() {
        let long = format!("The Loire is long. {}.", "É".repeat(MAX_SOURCE_TEXT_BYTES));
        let kept = bound_sources(vec![source(&long)], usize::MAX);
        assert_eq!(kept, [source("The Loire is long.")]);
        let word = "é".repeat(MAX_SOURCE_TEXT_BYTES);
        let kept = bound_sources(vec![source(&word)], usize::MAX);
        assert_eq!((kept[0].text.len(), kept[0].end), (MAX_SOURCE_TEXT_BYTES, 7 + MAX_SOURCE_TEXT_BYTES as u64));
    }

    #[test]
    fn what_cannot_be_cited_is_left_out() {
        let lies = Source { end: 9, ..source("The Loire is long.") };
        let far = Source { file: "x".repeat(MAX_SOURCE_PATH_BYTES + 1), ..source("It is long.") };
        let titled = Source { title: "x".repeat(MAX_SOURCE_HEADING_BYTES + 1), ..source("It is long.") };
        assert!(check_sources(std::slice::from_ref(&lies)).is_err() && check_sources(std::slice::from_ref(&far)).is_err());
        let kept = bound_sources(vec![lies, far, source(""), titled, source("It is.")], usize::MAX);
        assert_eq!(kept.iter().map(|source| source.text.as_str()).collect::<Vec<_>>(), ["It is long.", "It is."]);
        assert_eq!(kept[0].title.len(), MAX_SOURCE_HEADING_BYTES);
    }

    proptest! {
        #[test]
        fn sources_keep_the_bounds_and_their_places(
            texts in prop::collection::vec(("[a-zé. ]{0,40}", 1_usize..200, 0_usize..300), 0..24), room in 0_usize..40_000,
        ) {
            let made: Vec<Source> = texts.iter().map(|(text, times, title)| {
                Source { title: "t".repeat(*title), ..source(&text.repeat(*times)) }
            }).collect();
            let kept = bound_sources(made.clone(), room);
            prop_assert_eq!(check_sources(&kept), Ok(()));
            prop_assert!(kept.iter().map(Source::bytes).sum::<usize>() <= room);
            for source in &kept {
                prop_assert!(made.iter().any(|made| made.text.starts_with(&source.text) && made.start == source.start));
            }
            prop_assert_eq!(bound_sources(kept.clone(), room), kept);
        }
    }
}
