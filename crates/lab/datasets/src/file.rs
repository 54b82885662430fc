//! Files of JSON records: an array, an object with ids as keys, or one object per line.

use std::path::Path;

use serde_json::Value;

use crate::error::{DatasetError, RecordMistake};
use crate::format::Format;
use crate::record::Record;

/// Maximum number of mistakes that are reported for one file.
const MOST_MISTAKES: usize = 20;
/// Maximum size of a file. The largest published one, HotpotQA's training set, has 566 MB.
const LARGEST: u64 = 1 << 30;

/// The result for one JSON value: a record, `None` for a record of another split, or a mistake.
pub(crate) type Made = Result<Option<Record>, String>;

/// The file's text.
pub(crate) fn read(path: &Path) -> Result<String, DatasetError> {
    let failed = |source| DatasetError::Read { path: path.to_owned(), source };
    let bytes = path.metadata().map_err(failed)?.len();
    if bytes > LARGEST {
        return Err(DatasetError::TooLarge { path: path.to_owned(), bytes, limit: LARGEST });
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// All records of a text. `make` gets the value's id if the file has ids as keys.
pub(crate) fn records(
    text: &str,
    origin: &str,
    format: Format,
    make: fn(Option<&str>, &Value) -> Made,
) -> Result<Vec<Record>, DatasetError> {
    let values = values(text).map_err(|source| DatasetError::NotJson { origin: origin.to_owned(), source })?;
    let mut records = Vec::new();
    let mut mistakes = Vec::new();
    for Placed { place, id, value } in values {
        match value.and_then(|value| make(id.as_deref(), &value)) {
            Ok(record) => records.extend(record),
            Err(message) => mistakes.push(RecordMistake { place, message }),
        }
    }
    let origin = origin.to_owned();
    if !mistakes.is_empty() {
        let more = mistakes.len().saturating_sub(MOST_MISTAKES);
        mistakes.truncate(MOST_MISTAKES);
        return Err(DatasetError::Mistakes { origin, format, mistakes, more });
    }
    if records.is_empty() {
        return Err(DatasetError::Empty { origin, format });
    }
    Ok(records)
}

/// A value and its position.
struct Placed {
    place: String,
    id: Option<String>,
    value: Result<Value, String>,
}

fn values(text: &str) -> Result<Vec<Placed>, serde_json::Error> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('[') {
        let values: Vec<Value> = serde_json::from_str(text)?;
        let placed = |(at, value)| Placed { place: format!("record {}", at + 1), id: None, value: Ok(value) };
        return Ok(values.into_iter().enumerate().map(placed).collect());
    }
    if let Some(problems) = by_id(text) {
        let placed = |(id, value)| Placed { place: format!("problem {id}"), id: Some(id), value: Ok(value) };
        return Ok(problems.into_iter().map(placed).collect());
    }
    let line = |(at, line): (usize, &str)| Placed {
        place: format!("line {}", at + 1),
        id: None,
        value: serde_json::from_str(line).map_err(|error| format!("no JSON: {error}")),
    };
    Ok(text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(line).collect())
}

/// An object whose values are all objects: `{"1": {…}, "2": {…}}`. A single record has other
/// fields.
fn by_id(text: &str) -> Option<serde_json::Map<String, Value>> {
    let map: serde_json::Map<String, Value> = serde_json::from_str(text).ok()?;
    (!map.is_empty() && map.values().all(Value::is_object)).then_some(map)
}
