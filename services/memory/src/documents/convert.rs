//! Between messages and what is kept.

use autoact_collections::{CollectionName, Entry, Found, Segment, Strategy};
use autoact_wire::memory_v1::{self, SearchStrategy};

use crate::documents::error::DocumentsError;

pub(super) fn segment(collection: &CollectionName, segment: Segment) -> memory_v1::Segment {
    let Segment { number: _, path, title, text, heading, page, start } = segment;
    let (collection, heading) = (collection.to_string(), heading.unwrap_or_default());
    memory_v1::Segment { collection, path, title, text, heading, page, start }
}

pub(super) fn found(collection: &CollectionName, found: Found) -> memory_v1::FoundSegment {
    memory_v1::FoundSegment { segment: Some(segment(collection, found.segment)), score: found.score }
}

pub(super) fn file(entry: Entry) -> memory_v1::File {
    let Entry { path, sha256, reader, title, kind, pages, bytes, segments } = entry;
    memory_v1::File { path, sha256, reader, title, kind, pages, bytes, segments }
}

/// The strategy that a request names, if it names one.
pub(super) fn strategy(named: i32) -> Result<Option<Strategy>, DocumentsError> {
    let unknown = |_| DocumentsError::OutOfRange {
        field: "strategy",
        value: u64::try_from(named).unwrap_or_default(),
        expected: "a strategy of this version",
    };
    Ok(match SearchStrategy::try_from(named).map_err(unknown)? {
        SearchStrategy::Unspecified => None,
        SearchStrategy::Words => Some(Strategy::Words),
        SearchStrategy::Vectors => Some(Strategy::Vectors),
        SearchStrategy::Concatenation => Some(Strategy::Concatenation),
        SearchStrategy::ReciprocalRanks => Some(Strategy::ReciprocalRanks),
    })
}

pub(super) fn strategy_name(strategy: Strategy) -> SearchStrategy {
    match strategy {
        Strategy::Words => SearchStrategy::Words,
        Strategy::Vectors => SearchStrategy::Vectors,
        Strategy::Concatenation => SearchStrategy::Concatenation,
        Strategy::ReciprocalRanks => SearchStrategy::ReciprocalRanks,
    }
}
