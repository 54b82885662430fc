//! Files and segments as points of a Qdrant collection.
//!
//! ```text
//! entry    id: a hash of the path     what = entry, path, version, stored_at, entry
//! segment  id: version + its index    what = draft | segment, path, version, stored_at, name, alias,
//!                                     segment; vectors: words, letters, and one for each embedder
//! ```
//! A version is one storing of a file. Its segments are drafts, which nobody sees, until all of them
//! are there.

use std::collections::HashMap;

use autoact_collections::{Entry, NewSegment, Segment, SegmentNames};
use qdrant_client::qdrant::{Condition, FieldType, NamedVectors, PointId, PointStruct, Value};
use qdrant_client::{Payload, QdrantError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::documents::qdrant::sparse::{name_letters, segment_words, vector};
use crate::documents::store::SegmentId;
use crate::server::json;

/// The sparse vector of words.
pub(super) const WORDS: &str = "words";
/// The sparse vector of the letters of names.
pub(super) const LETTERS: &str = "letters";
/// The fields that queries filter and sort by.
pub(super) const FIELDS: [(&str, FieldType); 6] = [
    ("what", FieldType::Keyword),
    ("path", FieldType::Keyword),
    ("version", FieldType::Keyword),
    ("stored_at", FieldType::Integer),
    ("name", FieldType::Keyword),
    ("alias", FieldType::Keyword),
];

/// What a point is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum What {
    Entry,
    Draft,
    Segment,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            What::Entry => "entry",
            What::Draft => "draft",
            What::Segment => "segment",
        }
    }

    pub(super) fn is(self) -> Condition {
        Condition::matches("what", self.name().to_owned())
    }

    /// What is found and listed.
    pub(super) fn is_seen() -> Condition {
        Condition::matches("what", [What::Entry, What::Segment].map(|what| what.name().to_owned()).to_vec())
    }
}

/// The entry of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredEntry {
    pub(super) what: What,
    pub(super) path: String,
    #[serde(with = "text")]
    pub(super) version: Uuid,
    /// Of the version.
    pub(super) stored_at: i64,
    pub(super) entry: Entry,
}

impl StoredEntry {
    pub(super) fn id(path: &str) -> PointId {
        let hash = Sha256::digest(path.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        PointId::from(Uuid::from_bytes(bytes).to_string())
    }

    pub(super) fn point(&self) -> Result<PointStruct, QdrantError> {
        Ok(PointStruct::new(StoredEntry::id(&self.path), NamedVectors::default(), payload(self)?))
    }
}

/// When a point's version was stored.
#[derive(Debug, Deserialize)]
pub(super) struct StoredAt {
    pub(super) stored_at: i64,
}

/// A segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSegment {
    pub(super) what: What,
    pub(super) path: String,
    #[serde(with = "text")]
    pub(super) version: Uuid,
    /// Of the version: it tells which of two is newer.
    pub(super) stored_at: i64,
    pub(super) name: String,
    pub(super) alias: Vec<String>,
    pub(super) segment: Content,
}

/// What a segment says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// Its place among those of its version.
    index: u64,
    title: String,
    text: String,
    heading: Option<String>,
    page: Option<u32>,
    start: u64,
}

impl StoredSegment {
    /// A draft; `title` is the one that no other file has.
    pub(super) fn draft(path: &str, version: Uuid, stored_at: i64, index: u64, title: String, new: NewSegment) -> StoredSegment {
        let NewSegment { title: given, mut aliases, text, heading, page, start } = new;
        if given != title {
            aliases.push(given);
        }
        let SegmentNames { name, aliases: alias } = SegmentNames::new(&title, &aliases);
        let segment = Content { index, title, text, heading, page, start };
        StoredSegment { what: What::Draft, path: path.to_owned(), version, stored_at, name, alias, segment }
    }

    pub(super) fn id(&self) -> SegmentId {
        self.version.as_u128().wrapping_add(self.segment.index.into())
    }

    pub(super) fn point(&self) -> Result<PointStruct, QdrantError> {
        let mut vectors = NamedVectors::default();
        let words = segment_words(&self.segment.title, &self.segment.text);
        let letters = name_letters(self.names());
        for (name, sparse) in [(WORDS, words), (LETTERS, letters)] {
            if !sparse.is_empty() {
                vectors = vectors.add_vector(name, vector(sparse));
            }
        }
        Ok(PointStruct::new(point_id(self.id()), vectors, payload(self)?))
    }

    /// Segments in the order in which they were stored.
    pub(super) fn place(&self) -> (i64, u64) {
        (self.stored_at, self.segment.index)
    }

    /// The title and the aliases, folded.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.alias).map(String::as_str)
    }

    pub(super) fn title(&self) -> &str {
        &self.segment.title
    }
}

impl From<StoredSegment> for Segment {
    fn from(stored: StoredSegment) -> Segment {
        // the half that tells segments apart
        let number = stored.id() as u64;
        let Content { index: _, title, text, heading, page, start } = stored.segment;
        Segment { number, path: stored.path, title, text, heading, page, start }
    }
}

pub(super) fn point_id(id: SegmentId) -> PointId {
    PointId::from(Uuid::from_u128(id).to_string())
}

/// What a point's payload says, or `None` (and a line in the log) where it is not one of ours.
pub(super) fn read<T: DeserializeOwned>(payload: HashMap<String, Value>) -> Option<T> {
    match serde_json::from_value(json(payload)) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(%error, "a stored payload is not a segment or a file; it is left out");
            None
        }
    }
}

fn payload<T: Serialize>(value: &T) -> Result<Payload, QdrantError> {
    Payload::try_from(serde_json::to_value(value).unwrap_or_default())
}

/// An id as text.
mod text {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use uuid::Uuid;

    pub(super) fn serialize<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
