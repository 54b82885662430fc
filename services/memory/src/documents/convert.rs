//! Between messages and what is kept.

use autoact_collections::{CollectionName, Entry, Found, Segment};
use autoact_wire::memory_v1;

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
