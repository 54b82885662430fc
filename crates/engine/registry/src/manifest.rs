//! `manifest.json`: the content of a version and its origin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::VersionId;

/// The layout this crate writes; a later one may add fields, which are ignored here.
pub(crate) const FORMAT: u32 = 1;

/// The content of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The manifest's layout.
    pub format: u32,
    /// The version.
    pub id: VersionId,
    /// When it was published, RFC 3339 in UTC.
    pub created: String,
    /// The name of the task it was trained for.
    pub task: String,
    /// The base model it belongs to.
    pub base: BaseRecord,
    /// The version it was trained from, or is an improvement on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<VersionId>,
    /// The adapters by agent: `plan`, `tool`, `reflect`.
    pub adapters: BTreeMap<String, AdapterRecord>,
    /// The data sets it was trained on, by name.
    #[serde(default)]
    pub data: BTreeMap<String, DataRecord>,
    /// How it was trained.
    #[serde(default)]
    pub settings: Value,
    /// How well it does.
    #[serde(default)]
    pub metrics: Value,
}

/// The base model of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseRecord {
    /// Its name, for people.
    pub name: String,
    /// sha256 (hex) of its weights, as the engine computes it.
    pub sha256: String,
}

/// One adapter of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterRecord {
    /// sha256 (hex) of its configuration and weights, as the engine computes it and every reply names it.
    pub sha256: String,
    /// Size of both files.
    pub bytes: u64,
}

/// A data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// sha256 (hex) of its file.
    pub sha256: String,
    /// Its examples.
    pub count: u64,
}
