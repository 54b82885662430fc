//! A document and its references.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::error::{ImportError, SkipReason};

/// References to references.
const HOPS: usize = 32;

/// Which OpenAPI it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V2,
    V30,
    V31,
}

/// A document.
pub(crate) struct Document {
    pub(crate) root: Value,
    pub(crate) version: Version,
}

impl Document {
    pub(crate) fn new(root: Value) -> Result<Document, ImportError> {
        let said = root.get("openapi").or_else(|| root.get("swagger")).ok_or(ImportError::NotADocument)?;
        let said = match said {
            Value::String(text) => text.trim().to_owned(),
            // YAML's `swagger: 2.0`
            Value::Number(number) => format!("{:.1}", number.as_f64().unwrap_or_default()),
            _ => return Err(ImportError::NotADocument),
        };
        let is = |start: &str| said == start || said.strip_prefix(start).is_some_and(|rest| rest.starts_with(['.', '-']));
        let version = match () {
            () if root.get("swagger").is_some() && is("2.0") => Version::V2,
            () if is("3.0") => Version::V30,
            () if is("3.1") => Version::V31,
            () => return Err(ImportError::Version { found: autoact_trajectory::cut(said, 40).0 }),
        };
        if !root.get("paths").is_some_and(Value::is_object) {
            return Err(ImportError::NotADocument);
        }
        Ok(Document { root, version })
    }

    /// A schema that stands alone: its references lead into itself.
    pub(crate) fn of_schema(root: Value) -> Document {
        Document { root, version: Version::V31 }
    }

    /// What a value is or refers to.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> Result<&'a Value, SkipReason> {
        let mut value = value;
        for _ in 0..HOPS {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err(SkipReason::MissingRef(value["$ref"].as_str().unwrap_or_default().to_owned()))
    }

    /// What a reference leads to.
    pub(crate) fn target(&self, reference: &str) -> Result<&Value, SkipReason> {
        let pointer = reference.strip_prefix('#').ok_or_else(|| SkipReason::ExternalRef(shown(reference)))?;
        let decoded = percent_decode_str(pointer).decode_utf8_lossy();
        let found = self.root.pointer(&decoded).or_else(|| self.root.pointer(pointer));
        found.filter(|_| !pointer.is_empty()).ok_or_else(|| SkipReason::MissingRef(shown(reference)))
    }
}

/// The last part of a reference.
pub(crate) fn name_of(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn shown(reference: &str) -> String {
    autoact_trajectory::cut(autoact_base::lines::one_line(reference), 120).0
}
