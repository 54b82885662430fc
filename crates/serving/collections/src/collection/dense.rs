//! A collection's dense vectors. Whoever has an embedder makes them: they follow the segments.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, PoisonError};

use crate::collection::Collection;
use crate::error::CollectionsError;
use crate::model::{Found, Segment};
use crate::vectors::{Space, Vectors};

/// The directory of the vectors.
const VECTORS: &str = "vectors";
/// Vectors of segments that are gone stay until they are this share of all (1 / so many).
const MOST_STALE: u64 = 5;

impl Collection {
    /// The oldest segments that have no vector in a space yet, and how many there are in all.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn without_vector(&self, space: &Space, limit: usize) -> Result<(Vec<Segment>, usize), CollectionsError> {
        let from = self.vectors(space)?.next();
        let search = self.search();
        let mut numbers: Vec<u64> = self.guarded(|| search.numbers())?.into_iter().filter(|number| *number >= from).collect();
        let all = numbers.len();
        if all > limit {
            numbers.select_nth_unstable(limit);
            numbers.truncate(limit);
        }
        numbers.sort_unstable();
        let segments = self.guarded(|| numbers.into_iter().filter_map(|number| search.numbered(number).transpose()).collect())?;
        Ok((segments, all))
    }

    /// Stores vectors of segments, whose numbers ascend, as [`without_vector`](Self::without_vector)
    /// gave them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_vectors(&self, space: &Space, new: &[(u64, Vec<f32>)]) -> Result<(), CollectionsError> {
        let vectors = self.vectors(space)?;
        self.disk(vectors.add(new))?;
        if new.is_empty() || vectors.count() < MOST_STALE {
            return Ok(());
        }
        let (_, segments) = self.counts()?;
        if vectors.count().saturating_sub(segments) > vectors.count() / MOST_STALE {
            self.forget_stale(&vectors)?;
        }
        Ok(())
    }

    /// How many segments have a vector in a space.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn with_vector(&self, space: &Space) -> Result<u64, CollectionsError> {
        let from = self.vectors(space)?.next();
        let numbers = self.guarded(|| self.search().numbers())?;
        Ok(numbers.into_iter().filter(|number| *number < from).count() as u64)
    }

    /// The segments whose vectors are nearest to a query's, nearest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn near(&self, space: &Space, query: &[f32], limit: usize) -> Result<Vec<Found>, CollectionsError> {
        let vectors = self.vectors(space)?;
        let search = self.search();
        // some may be of segments that are gone
        let nearest = self.disk(vectors.nearest(query, limit + limit / 2))?;
        let found = nearest.into_iter().filter_map(|(number, score)| {
            let segment = self.guarded(|| search.numbered(number)).transpose()?;
            Some(segment.map(|segment| Found { segment, score }))
        });
        found.take(limit).collect()
    }

    fn vectors(&self, space: &Space) -> Result<Arc<Vectors>, CollectionsError> {
        let mut open = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vectors) = open.get(space) {
            return Ok(vectors.clone());
        }
        let vectors = Arc::new(self.disk(Vectors::open(&self.path.join(VECTORS), space))?);
        open.insert(space.clone(), vectors.clone());
        Ok(vectors)
    }

    /// Removes the vectors of segments that are gone, in every space that there ever was: a vector
    /// tells of its text.
    pub(super) fn forget_vectors(&self) -> Result<(), CollectionsError> {
        for space in self.disk(Vectors::spaces(&self.path.join(VECTORS)))? {
            self.forget_stale(&*self.vectors(&space)?)?;
        }
        Ok(())
    }

    /// Removes the vectors of segments that are gone.
    fn forget_stale(&self, vectors: &Vectors) -> Result<(), CollectionsError> {
        let there: HashSet<u64> = self.guarded(|| self.search().numbers())?.into_iter().collect();
        self.disk(vectors.retain(|number| there.contains(&number)))
    }

    fn disk<T>(&self, result: io::Result<T>) -> Result<T, CollectionsError> {
        result.map_err(|error| self.broken(format!("its vectors: {error}")))
    }
}
