//! Short ways through YAML values.

use serde_norway::Value;

/// The value at a path of keys and indices: `spec.containers.0.name`.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match key.parse::<usize>() {
        Ok(index) if value.is_sequence() => value.get(index),
        _ => value.get(key),
    })
}

/// Text at a path.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// A whole number at a path.
pub(crate) fn number(value: &Value, path: &str) -> Option<u64> {
    at(value, path)?.as_u64()
}

/// The items of a list at a path; none when there is no list.
pub(crate) fn items<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    at(value, path).and_then(Value::as_sequence).into_iter().flatten()
}

/// The entries of a map of texts at a path.
pub(crate) fn texts(value: &Value, path: &str) -> Vec<(String, String)> {
    let map = at(value, path).and_then(Value::as_mapping).into_iter().flatten();
    map.filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value.as_str()?.to_owned()))).collect()
}

/// Whether `labels` has everything that `selector` asks for.
pub(crate) fn selects(selector: &[(String, String)], labels: &[(String, String)]) -> bool {
    !selector.is_empty() && selector.iter().all(|wanted| labels.contains(wanted))
}
