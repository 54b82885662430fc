//! Receiving one file.

use std::time::Duration;

use autoact_access::Caller;
use autoact_collections::{Entry, NewSegment};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::put_file_request::Part;
use autoact_wire::status::to_status;
use tonic::{Status, Streaming};

use crate::documents::error::DocumentsError;
use crate::documents::request::{Whose, bounded};
use crate::door::bind;

/// The next part of a file comes within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The text of one file with its titles: what importers read of one file, and half as much again.
const MAX_FILE_BYTES: usize = 96 * 1024 * 1024;
const MAX_PATH_BYTES: usize = 4096;
const MAX_TITLE_BYTES: usize = 1024;
const MAX_ALIASES: usize = 16;
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Of a digest and of names of formats and readers.
const MAX_NAME_BYTES: usize = 128;

/// The whole file, checked.
pub(super) async fn receive(
    mut parts: Streaming<memory_v1::PutFileRequest>,
    caller: &Caller,
) -> Result<(Whose, Entry, Vec<NewSegment>), Status> {
    let refused = |error: DocumentsError| to_status(&error);
    let Some(Part::File(mut file)) = next(&mut parts).await?.map(|part| part.part).unwrap_or_default() else {
        return Err(refused(DocumentsError::Missing("file")));
    };
    bind(caller, &mut file.tenant)?;
    let whose = Whose::of(&file.tenant, &file.collection).map_err(refused)?;
    let entry = entry(file.file.ok_or_else(|| refused(DocumentsError::Missing("file.file")))?).map_err(refused)?;
    let (mut segments, mut bytes) = (Vec::new(), 0);
    while let Some(part) = next(&mut parts).await? {
        let Some(Part::Segments(batch)) = part.part else { return Err(refused(DocumentsError::Order)) };
        for segment in batch.segments {
            bytes += size_of::<NewSegment>() + segment.text.len() + segment.title.len() + segment.heading.len();
            bytes += segment.aliases.iter().map(String::len).sum::<usize>();
            if bytes > MAX_FILE_BYTES {
                return Err(refused(DocumentsError::TooLong { field: "segments", length: bytes, most: MAX_FILE_BYTES }));
            }
            segments.push(new_segment(segment).map_err(refused)?);
        }
    }
    Ok((whose, entry, segments))
}

/// The next message. The stream's end is told only by its sender: one that breaks off is an error.
async fn next(parts: &mut Streaming<memory_v1::PutFileRequest>) -> Result<Option<memory_v1::PutFileRequest>, Status> {
    match tokio::time::timeout(LONGEST_PAUSE, parts.message()).await {
        Ok(message) => message,
        Err(_) => Err(to_status(&DocumentsError::Idle { after: LONGEST_PAUSE })),
    }
}

fn entry(file: memory_v1::File) -> Result<Entry, DocumentsError> {
    let memory_v1::File { path, sha256, reader, title, kind, pages, bytes, segments: _ } = file;
    if path.is_empty() || path.len() > MAX_PATH_BYTES || path.chars().any(char::is_control) {
        return Err(DocumentsError::Path { shown: path.chars().filter(|c| !c.is_control()).take(MAX_NAME_BYTES).collect() });
    }
    Ok(Entry {
        path,
        sha256: bounded("file.sha256", sha256, MAX_NAME_BYTES)?,
        reader: bounded("file.reader", reader, MAX_NAME_BYTES)?,
        title: bounded("file.title", title, MAX_TITLE_BYTES)?,
        kind: bounded("file.kind", kind, MAX_NAME_BYTES)?,
        pages,
        bytes,
        segments: 0,
    })
}

fn new_segment(segment: memory_v1::NewSegment) -> Result<NewSegment, DocumentsError> {
    let memory_v1::NewSegment { title, aliases, text, heading, page, start } = segment;
    if title.trim().is_empty() {
        return Err(DocumentsError::Missing("segments.title"));
    }
    if text.trim().is_empty() {
        return Err(DocumentsError::Missing("segments.text"));
    }
    if aliases.len() > MAX_ALIASES {
        return Err(DocumentsError::OutOfRange { field: "segments.aliases", value: aliases.len() as u64, expected: "at most 16" });
    }
    for alias in &aliases {
        bounded("segments.aliases", alias.clone(), MAX_TITLE_BYTES)?;
    }
    let heading = bounded("segments.heading", heading, MAX_TITLE_BYTES)?;
    Ok(NewSegment {
        title: bounded("segments.title", title, MAX_TITLE_BYTES)?,
        aliases,
        text: bounded("segments.text", text, MAX_TEXT_BYTES)?,
        heading: (!heading.is_empty()).then_some(heading),
        page,
        start,
    })
}
