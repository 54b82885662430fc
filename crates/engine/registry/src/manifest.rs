//! `manifest.json`: the content of a version and its origin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::VersionId;

/// The version of the layout. Later ones may add fields, which are ignored here.
pub(crate) const FORMAT: u32 = 1;

/// The content of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the manifest's layout.
    pub format: u32,
    /// The version.
    pub id: VersionId,
    /// Time of publication, RFC 3339 in UTC.
    pub created: String,
    /// The name of the task it was trained for.
    pub task: String,
    /// The base model it belongs to.
    pub base: BaseRecord,
    /// The version that it was trained from or improves on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<VersionId>,
    /// The adapters by agent: `plan`, `tool`, `reflect`.
    pub adapters: BTreeMap<String, AdapterRecord>,
    /// The data sets it was trained on, by name.
    #[serde(default)]
    pub data: BTreeMap<String, DataRecord>,
    /// The settings of the training.
    #[serde(default)]
    pub settings: Value,
    /// The results of the evaluation.
    #[serde(default)]
    pub metrics: Value,
}

/// The base model of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseRecord {
    /// Its name, for people.
    pub name: String,
    /// SHA-256 digest (hex) of its weights, as the engine computes it.
    pub sha256: String,
}

/// One adapter of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterRecord {
    /// SHA-256 digest (hex) of its configuration and weights, as in the engine and in every reply.
    pub sha256: String,
    /// Size of both files in bytes.
    pub bytes: u64,
    /// SHA-256 digest (hex) of its `calibration.json`; absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_sha256: Option<String>,
}

/// A data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRecord {
    /// SHA-256 digest (hex) of its file.
    pub sha256: String,
    /// Number of examples.
    pub count: u64,
}
