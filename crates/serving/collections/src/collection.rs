//! One collection.
//!
//! Callers that change it at the same time share a commit: each adds its change to the writer, then
//! waits for the commits before; the first to get its turn commits for all that were added by then.

mod dense;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tantivy::{IndexReader, ReloadPolicy, TantivyError};

use crate::error::CollectionsError;
use crate::fields::{Fields, LAYOUT};
use crate::guard::guarded;
use crate::model::{Entry, Found, NewSegment, Opened};
use crate::name::CollectionName;
use crate::search::Search;
use crate::vectors::{Space, Vectors};
use crate::writer::{Writer, purge};

/// What a collection is.
pub(crate) const MANIFEST: &str = "collection.json";
/// Tantivy's files.
const INDEX: &str = "index";
/// Tantivy's list of index segments: where it is, an index is.
const META: &str = "meta.json";

/// The files and segments of one collection.
pub struct Collection {
    name: CollectionName,
    path: PathBuf,
    files: PathBuf,
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    changes: Mutex<Changes>,
    /// How many changes are committed. Held while a commit is under way.
    committed: Mutex<u64>,
    /// Those that somebody has asked for.
    vectors: Mutex<HashMap<Space, Arc<Vectors>>>,
}

#[derive(Default)]
struct Changes {
    writer: Option<Writer>,
    /// How many were added to the writer, in all.
    added: u64,
    /// Those up to this one that are not committed are lost.
    lost: u64,
    used: Option<Instant>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    layout: u32,
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Collection {
    /// Opens a collection, or makes it in an empty directory.
    pub(crate) fn open(name: &CollectionName, path: &Path) -> Result<Collection, CollectionsError> {
        let failed = |source| CollectionsError::Directory { path: path.to_owned(), source };
        let files = path.join(INDEX);
        std::fs::create_dir_all(&files).map_err(failed)?;
        let manifest = path.join(MANIFEST);
        if manifest.exists() {
            let text = std::fs::read(&manifest).map_err(failed)?;
            let found: Manifest = serde_json::from_slice(&text)
                .map_err(|error| CollectionsError::Engine { name: name.clone(), reason: format!("`{MANIFEST}`: {error}") })?;
            if found.layout != LAYOUT {
                return Err(CollectionsError::Layout { name: name.clone(), found: found.layout, expected: LAYOUT });
            }
        }
        let (schema, fields) = Fields::schema();
        let opened = guarded(|| {
            let is_there = files.join(META).exists();
            let mut index =
                if is_there { tantivy::Index::open_in_dir(&files)? } else { tantivy::Index::create_in_dir(&files, schema.clone())? };
            if index.schema() != schema {
                return Err(TantivyError::SchemaError("its fields are not a collection's".to_owned()));
            }
            index.set_tokenizers(Fields::tokenizers());
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            Ok((index, reader))
        });
        let (index, reader) = opened.map_err(|reason| CollectionsError::Engine { name: name.clone(), reason })?;
        if !manifest.exists() {
            // last: without it the directory is no collection
            let text = serde_json::to_vec(&Manifest { layout: LAYOUT }).map_err(|error| failed(error.into()))?;
            std::fs::write(&manifest, text).map_err(failed)?;
        }
        let changes = Mutex::new(Changes::default());
        Ok(Collection {
            name: name.clone(),
            path: path.to_owned(),
            files,
            index,
            fields,
            reader,
            changes,
            committed: Mutex::new(0),
            vectors: Mutex::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &CollectionName {
        &self.name
    }

    /// Replaces what the collection has of a file; how many segments it has now. Returns once that
    /// survives a crash and is found.
    ///
    /// # Errors
    /// It cannot be written; the collection has what it had before.
    pub fn put(&self, entry: &Entry, segments: Vec<NewSegment>) -> Result<u64, CollectionsError> {
        let (segments, added) = self.change(|writer, search| writer.put(entry, segments, search))?;
        self.commit(added)?;
        Ok(segments)
    }

    /// Removes files, and their text from the disk. Returns how many there were.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn delete(&self, paths: &[String]) -> Result<u64, CollectionsError> {
        let search = self.search();
        let mut there = Vec::new();
        for path in paths {
            if self.guarded(|| search.entry(path))?.is_some() && !there.contains(path) {
                there.push(path.clone());
            }
        }
        if there.is_empty() {
            return Ok(0);
        }
        let ((), added) = self.change(|writer, _| {
            writer.delete(&there);
            Ok(())
        })?;
        self.commit(added)?;
        self.purge()?;
        self.forget_vectors()?;
        Ok(there.len() as u64)
    }

    /// The segments that match a query's words best, best first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn words(&self, query: &str, limit: usize) -> Result<Vec<Found>, CollectionsError> {
        self.guarded(|| self.search().words(query, limit))
    }

    /// The segment that a name means, or up to `similar` titles like it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn named(&self, name: &str, similar: usize) -> Result<Opened, CollectionsError> {
        self.guarded(|| self.search().open(name, similar))
    }

    /// All files, sorted by path.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, CollectionsError> {
        self.guarded(|| self.search().entries())
    }

    /// How many files and segments it has.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn counts(&self) -> Result<(u64, u64), CollectionsError> {
        self.guarded(|| self.search().counts())
    }

    /// Gives back what changing it needs, if nobody has changed it for so long.
    ///
    /// # Errors
    /// What was being merged could not be written.
    pub fn rest(&self, idle: Duration) -> Result<(), CollectionsError> {
        let committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = self.changes();
        let settled = changes.added == (*committed).max(changes.lost);
        let idle = settled && changes.used.is_some_and(|used| used.elapsed() >= idle);
        match changes.writer.take_if(|_| idle) {
            Some(writer) => self.guarded(|| writer.close()),
            None => Ok(()),
        }
    }

    /// Adds a change to the writer: what it gave, and its place among all changes.
    fn change<T>(&self, change: impl FnOnce(&mut Writer, &Search) -> tantivy::Result<T>) -> Result<(T, u64), CollectionsError> {
        let mut changes = self.changes();
        let search = self.search();
        let Changes { writer, added, lost, used } = &mut *changes;
        *used = Some(Instant::now());
        let mut open = match writer.take() {
            Some(writer) => writer,
            None => self.guarded(|| Writer::open(&self.index, self.fields, &search))?,
        };
        match self.guarded(|| change(&mut open, &search)) {
            Ok(value) => {
                *writer = Some(open);
                *added += 1;
                Ok((value, *added))
            }
            Err(error) => {
                // a part of the change is in the writer, with the changes of others
                *lost = *added;
                let _ = self.guarded(|| open.rollback());
                Err(error)
            }
        }
    }

    /// Returns once a change is committed.
    fn commit(&self, change: u64) -> Result<(), CollectionsError> {
        let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        if *committed >= change {
            return Ok(());
        }
        let mut changes = self.changes();
        if changes.lost >= change {
            return Err(self.broken("a change that came with this one failed; try again".to_owned()));
        }
        let Some(mut writer) = changes.writer.take() else {
            return Err(self.broken("its writer has ended; try again".to_owned()));
        };
        match self.guarded(|| writer.commit(&self.files).and_then(|()| self.reader.reload())) {
            Ok(()) => {
                *committed = changes.added;
                changes.writer = Some(writer);
                Ok(())
            }
            Err(error) => {
                changes.lost = changes.added;
                Err(error)
            }
        }
    }

    /// Rewrites what holds deleted segments.
    fn purge(&self) -> Result<(), CollectionsError> {
        let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = self.changes();
        if let Some(mut writer) = changes.writer.take() {
            self.guarded(|| {
                writer.commit(&self.files)?;
                writer.close()
            })?;
            *committed = changes.added;
        }
        self.guarded(|| purge(&self.index, || self.reader.reload()))
    }

    fn search(&self) -> Search {
        Search::new(self.reader.searcher(), self.fields)
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guarded<T>(&self, work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, CollectionsError> {
        guarded(work).map_err(|reason| self.broken(reason))
    }

    fn broken(&self, reason: String) -> CollectionsError {
        CollectionsError::Engine { name: self.name.clone(), reason }
    }
}
