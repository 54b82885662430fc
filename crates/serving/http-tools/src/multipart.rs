//! `multipart/form-data` of texts.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::style::text;

/// The media type and the body of a form. A list is several fields of one name.
pub(crate) fn form(fields: &[(&str, &Value)]) -> (String, String) {
    let mut flat = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Array(items) => flat.extend(items.iter().map(|item| (*name, text(item)))),
            other => flat.push((*name, text(other))),
        }
    }
    // a boundary that is in no value: it is made of all of them
    let mut hash = Sha256::new();
    for (name, value) in &flat {
        hash.update(name);
        hash.update([0]);
        hash.update(value);
        hash.update([0]);
    }
    let boundary: String = hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    let mut body = String::new();
    for (name, value) in flat {
        // as HTML's forms escape names
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        body.push_str(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str(&format!("--{boundary}--\r\n"));
    (format!("multipart/form-data; boundary={boundary}"), body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_or_a_value_cannot_begin_a_part() {
        let (list, hostile) = (json!(["a", 2]), json!("x\r\n--b\r\nContent-Disposition: form-data; name=\"y\"\r\n\r\nz"));
        let (media, body) = form(&[("l", &list), ("n\"\r\nX: y", &hostile)]);
        let boundary = media.split_once("boundary=").unwrap().1;
        assert_eq!(body.matches(&format!("--{boundary}\r\n")).count(), 3);
        assert!(body.contains("name=\"n%22%0D%0AX: y\"\r\n\r\nx\r\n--b"), "{body}");
    }
}
