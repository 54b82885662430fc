//! Files as a collection of the memory service: searchable at once, and again what has changed.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_collections::CollectionName;
use autoact_documents::{Document, FileEntry, Importer, READER, ReadError, SEGMENT_CHARS, Titles};
use autoact_wire::memory_v1::put_file_request::Part;
use autoact_wire::memory_v1::{File, FileToPut, NewSegment, PutFileRequest, SegmentBatch};
use autoact_wire::status::retry_after;
use futures::StreamExt as _;
use serde::Serialize;
use tonic::Code;

use super::progress::Progress;
use super::summary::Reading;
use crate::args::ImportOptions;
use crate::client::{self, Documents, Service};
use crate::corpus::collections::{Whose, delete_files, files};
use crate::out;
use crate::text::plain_line;

/// Files that are read and stored at once.
const AT_ONCE: usize = 3;
/// Segments in one message: about a quarter of a megabyte.
const BATCH: usize = 256;
/// How long a service that is busy is asked again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was read and what was stored.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// The collection.
    collection: String,
    #[serde(flatten)]
    reading: Reading,
    /// Files that the collection had already, with the same bytes.
    unchanged: usize,
    /// The segments that were stored.
    segments: u64,
    /// Files of the collection that the directory does not have.
    missing: Vec<String>,
    /// How many of them were deleted.
    deleted: u64,
}

/// What became of a file.
enum Done {
    Unchanged,
    Skipped(ReadError),
    /// The service will not have it, whatever is tried: why.
    Refused(String),
    Stored(Box<Document>, u64),
}

/// Stores the files; whether there was none.
pub(super) async fn run(options: &ImportOptions, importer: Arc<Importer>) -> anyhow::Result<bool> {
    let name = match &options.collection {
        Some(name) => name.clone(),
        None => suggested(&options.path)?,
    };
    let whose = Whose { tenant: options.store.tenant(), collection: name };
    let address = &options.store.memory;
    let mut client = client::documents(address)?;
    let before = files(&mut client, &whose, address).await?.unwrap_or_default();
    let before: HashMap<String, File> = before.into_iter().map(|file| (file.path.clone(), file)).collect();
    let mut summary = Summary { collection: whose.collection.to_string(), reading: Reading::new(importer.ignored()), ..Summary::default() };

    let mut progress = Progress::new(importer.files().len());
    let here: Vec<FileEntry> = importer.files().to_vec();
    let work = here.iter().map(|file| {
        let (importer, client, whose, known) = (importer.clone(), client.clone(), whose.clone(), before.get(&file.path).cloned());
        let file = file.clone();
        async move { (file.clone(), store(importer, client, whose, file, known, address).await) }
    });
    let mut done = futures::stream::iter(work).buffer_unordered(AT_ONCE).enumerate();
    while let Some((count, (file, result))) = done.next().await {
        progress.step(count + 1, &file.path);
        match result.with_context(|| format!("cannot store `{}`; what was stored before it stays", file.path))? {
            Done::Unchanged => summary.unchanged += 1,
            Done::Skipped(error) => summary.reading.skip(&file, &error),
            Done::Refused(message) => summary.reading.refuse(&file, message),
            Done::Stored(document, segments) => {
                summary.reading.read(&document);
                summary.segments += segments;
            }
        }
    }
    drop(done);
    progress.end();

    let here: HashSet<&str> = here.iter().map(|file| file.path.as_str()).collect();
    summary.missing = before.into_keys().filter(|path| !here.contains(path.as_str())).collect();
    summary.missing.sort();
    if options.prune && !summary.missing.is_empty() {
        summary.deleted = delete_files(&mut client, &whose, summary.missing.clone(), address).await?;
    }
    if options.json {
        out::line(serde_json::to_string(&summary)?)?;
    } else {
        show(&summary)?;
    }
    Ok(summary.reading.files + summary.unchanged == 0)
}

/// The name of the directory or file.
fn suggested(path: &Path) -> anyhow::Result<CollectionName> {
    let whole = path.canonicalize().with_context(|| format!("cannot read `{}`", path.display()))?;
    let name = if whole.is_file() { whole.file_stem() } else { whole.file_name() };
    let name = name.and_then(|name| CollectionName::suggested(&name.to_string_lossy()));
    name.with_context(|| format!("`{}` suggests no name; fix: name the collection with `--collection`", path.display()))
}

/// Reads a file and stores it, unless the collection has it.
async fn store(
    importer: Arc<Importer>,
    client: Documents,
    whose: Whose,
    file: FileEntry,
    known: Option<File>,
    address: &str,
) -> anyhow::Result<Done> {
    let read = tokio::task::spawn_blocking(move || {
        if let Some(known) = known.filter(|known| known.reader == READER)
            && importer.digest(&file)? == known.sha256
        {
            return Ok(None);
        }
        let document = importer.read(&file)?;
        let parts = parts(&document, &whose);
        Ok::<_, ReadError>(Some((document, parts)))
    });
    let (document, parts) = match read.await? {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(Done::Unchanged),
        Err(error) => return Ok(Done::Skipped(error)),
    };
    let begun = Instant::now();
    loop {
        match client.clone().put_file(tokio_stream::iter(parts.clone())).await {
            Ok(stored) => return Ok(Done::Stored(Box::new(document), stored.into_inner().segments)),
            // the collection and the tenant are valid: it is this file
            Err(status) if status.code() == Code::InvalidArgument => return Ok(Done::Refused(plain_line(status.message()))),
            Err(status) => match retry_after(&status).filter(|_| begun.elapsed() < PATIENCE) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(client::explain(status, Service::Memory, address).await),
            },
        }
    }
}

/// The messages that store a document.
fn parts(document: &Document, whose: &Whose) -> Vec<PutFileRequest> {
    let Document { path, sha256, bytes, title, kind, pages, .. } = document.clone();
    let kind = kind.name().to_owned();
    let file = File { path, sha256, reader: READER.to_owned(), title: short(title), kind, pages, bytes, segments: 0 };
    let file = FileToPut { tenant: whose.tenant.clone(), collection: whose.collection.to_string(), file: Some(file) };
    let mut titles = Titles::default();
    let segments: Vec<NewSegment> = document
        .segments(SEGMENT_CHARS)
        .into_iter()
        .map(|segment| {
            let title = titles.of(document, &segment);
            let heading = segment.heading.unwrap_or_default();
            let aliases = if heading.is_empty() { Vec::new() } else { vec![heading.clone()] };
            NewSegment { title, aliases, text: segment.text, heading, page: segment.page, start: segment.span.start as u64 }
        })
        .collect();
    let batches = segments.chunks(BATCH).map(|batch| Part::Segments(SegmentBatch { segments: batch.to_vec() }));
    std::iter::once(Part::File(file)).chain(batches).map(|part| PutFileRequest { part: Some(part) }).collect()
}

/// A document's title, cut where the service would refuse it.
fn short(title: String) -> String {
    const MAX_BYTES: usize = 1024;
    autoact_trajectory::cut(title, MAX_BYTES).0
}

fn show(summary: &Summary) -> anyhow::Result<()> {
    let Summary { collection, reading, unchanged, segments, missing, deleted } = summary;
    reading.show()?;
    if reading.files + unchanged == 0 && missing.is_empty() {
        return Ok(());
    }
    let kept = if *unchanged > 0 { format!("; {unchanged} files are unchanged") } else { String::new() };
    out::line(format_args!("stored {segments} segments in the collection {collection}{kept}"))?;
    match (missing.len(), deleted) {
        (0, _) => {}
        (_, 1..) => out::line(format_args!("deleted {deleted} files that are not in the directory"))?,
        (count, _) => out::line(format_args!("{count} files of the collection are not in the directory; `--prune` deletes them"))?,
    }
    if reading.files + unchanged > 0 {
        out::line(format_args!("use: autoact ask --corpus {collection} \"…\""))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;

    #[test]
    fn the_documentation_names_every_field() {
        let docs = include_str!("../../../../../../docs/cli.md");
        let value = serde_json::to_value(Summary { reading: Reading::example(), ..Summary::default() }).unwrap();
        let missing: Vec<&String> = value.as_object().unwrap().keys().filter(|name| !docs.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0], "not in docs/cli.md");
    }

    #[test]
    fn a_directory_names_its_collection() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Employee Handbook");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(suggested(&path).unwrap().as_str(), "employee-handbook");
        assert!(suggested(&directory.path().join("none")).is_err());
    }
}
