//! Users' documents on disk: collections of files, each divided into segments.
//!
//! A [`Collections`] is a directory that one process holds. A collection is a tantivy index of its
//! own, so deleting it removes its files, and what one collection has does not change how another
//! is ranked. [`Collection::put`] replaces what a collection has of one file in one step, and
//! returns once that survives a crash and is found.
//!
//! Everything is synchronous: services call it on blocking threads. Nothing is held in memory
//! whole but one file's segments while they are stored.

mod collection;
mod error;
mod fields;
mod guard;
mod merge;
mod model;
mod name;
mod search;
mod segment_names;
mod store;
mod vectors;
mod writer;

pub use collection::Collection;
pub use error::CollectionsError;
pub use guard::guarded;
pub use merge::{LEAST_CANDIDATES, Strategy, merge};
pub use model::{Entry, Found, NewSegment, Opened, Segment};
pub use name::{CollectionName, InvalidName};
pub use segment_names::{MAX_NAME_CHARS, MOST_ALSO, SegmentNames, title_forms, unique_title};
pub use store::Collections;
pub use vectors::Space;
