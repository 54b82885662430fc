//! Values as text in a request: OpenAPI's styles.

use serde_json::Value;

use crate::encode::encoded;
use crate::operation::{Argument, Style};

/// A scalar as it is, anything else as JSON. `null` is empty.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn join(parts: impl Iterator<Item = String>, mark: &str) -> String {
    parts.collect::<Vec<_>>().join(mark)
}

/// The value of a path's place, or of a header. `encode` is applied to each part of it.
pub(crate) fn in_path(argument: &Argument, value: &Value, encode: impl Fn(&str) -> String) -> String {
    let one = |value: &Value| encode(&text(value));
    let name = encode(&argument.wire);
    let (start, mark) = match argument.style {
        Style::Label => (".", if argument.explode { "." } else { "," }),
        Style::Matrix => (";", if argument.explode { ";" } else { "," }),
        _ => ("", ","),
    };
    let exploded = argument.style == Style::Matrix && argument.explode;
    let prefix = if argument.style == Style::Matrix && !exploded { format!("{name}=") } else { String::new() };
    let parts = match value {
        Value::Array(items) if exploded => join(items.iter().map(|item| format!("{name}={}", one(item))), mark),
        Value::Array(items) => join(items.iter().map(one), mark),
        Value::Object(fields) => {
            let between = if argument.explode { "=" } else { "," };
            join(fields.iter().map(|(key, value)| format!("{}{between}{}", encode(key), one(value))), mark)
        }
        _ if exploded => format!("{name}={}", one(value)),
        _ => one(value),
    };
    format!("{start}{prefix}{parts}")
}

/// The pairs of a query, a form or cookies, encoded.
pub(crate) fn pairs(argument: &Argument, value: &Value) -> Vec<(String, String)> {
    let name = encoded(&argument.wire);
    let one = |value: &Value| encoded(&text(value));
    let joined = |mark: &str| match value {
        Value::Array(items) => join(items.iter().map(one), mark),
        Value::Object(fields) => join(fields.iter().flat_map(|(key, value)| [encoded(key), one(value)]), mark),
        other => one(other),
    };
    match (argument.style, value) {
        (Style::Json, value) => vec![(name, encoded(&value.to_string()))],
        (Style::Deep, Value::Object(fields)) => {
            let mut all = Vec::new();
            for (key, value) in fields {
                deep(format!("{name}{}", encoded(&format!("[{key}]"))), value, &mut all);
            }
            all
        }
        (Style::Form | Style::Space | Style::Pipe | Style::Deep, Value::Array(items)) if argument.explode => {
            items.iter().map(|item| (name.clone(), one(item))).collect()
        }
        (Style::Form, Value::Object(fields)) if argument.explode => fields.iter().map(|(key, value)| (encoded(key), one(value))).collect(),
        (Style::Space, _) => vec![(name, joined("%20"))],
        (Style::Pipe, _) => vec![(name, joined("%7C"))],
        (Style::Tab, _) => vec![(name, joined("%09"))],
        _ => vec![(name, joined(","))],
    }
}

/// `x[a][b]=c`; the depth is that of JSON, which is bounded.
fn deep(name: String, value: &Value, all: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                deep(format!("{name}{}", encoded(&format!("[{key}]"))), value, all);
            }
        }
        Value::Array(items) => all.extend(items.iter().map(|item| (name.clone(), encoded(&text(item))))),
        other => all.push((name, encoded(&text(other)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::Place;

    fn argument(style: Style, explode: bool) -> Argument {
        Argument { name: "x".into(), wire: "x".into(), place: Place::Query, style, explode }
    }

    fn query(style: Style, explode: bool, value: Value) -> String {
        join(pairs(&argument(style, explode), &value).into_iter().map(|(name, value)| format!("{name}={value}")), "&")
    }

    fn path(style: Style, explode: bool, value: Value) -> String {
        in_path(&argument(style, explode), &value, encoded)
    }

    #[test]
    fn a_query_has_the_styles_of_the_standard() {
        let (list, object) = (json!(["a b", 2]), json!({"k": "v", "n": [1, 2]}));
        assert_eq!(query(Style::Form, true, list.clone()), "x=a%20b&x=2");
        assert_eq!(query(Style::Form, false, list.clone()), "x=a%20b,2");
        assert_eq!(query(Style::Space, false, list.clone()), "x=a%20b%202");
        assert_eq!(query(Style::Pipe, false, list.clone()), "x=a%20b%7C2");
        assert_eq!(query(Style::Tab, false, list), "x=a%20b%092");
        assert_eq!(query(Style::Deep, true, object.clone()), "x%5Bk%5D=v&x%5Bn%5D=1&x%5Bn%5D=2");
        assert_eq!(query(Style::Form, true, object), "k=v&n=%5B1%2C2%5D");
        assert_eq!(query(Style::Json, false, json!({"a": 1})), "x=%7B%22a%22%3A1%7D");
        assert_eq!(query(Style::Form, true, json!("a&b=c#")), "x=a%26b%3Dc%23");
        assert_eq!(query(Style::Form, true, json!(true)), "x=true");
        assert_eq!(query(Style::Form, true, json!([])), "");
    }

    #[test]
    fn a_path_has_the_styles_of_the_standard() {
        let (list, object) = (json!(["a", "b/c"]), json!({"k": 1, "l": 2}));
        assert_eq!(path(Style::Simple, false, list.clone()), "a,b%2Fc");
        assert_eq!(path(Style::Simple, false, object.clone()), "k,1,l,2");
        assert_eq!(path(Style::Simple, true, object.clone()), "k=1,l=2");
        assert_eq!(path(Style::Label, true, list.clone()), ".a.b%2Fc");
        assert_eq!(path(Style::Label, false, list.clone()), ".a,b%2Fc");
        assert_eq!(path(Style::Matrix, false, list.clone()), ";x=a,b%2Fc");
        assert_eq!(path(Style::Matrix, true, list), ";x=a;x=b%2Fc");
        assert_eq!(path(Style::Matrix, true, object), ";k=1;l=2");
        assert_eq!(path(Style::Matrix, true, json!(5)), ";x=5");
    }
}
