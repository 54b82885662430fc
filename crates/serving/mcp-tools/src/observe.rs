//! What a model reads of a result.

use autoact_base::lines::{one_line, several_lines};
use autoact_http_tools::trimmed;
use autoact_trajectory::cut;
use serde_json::Value;

use crate::failure::McpFailure;

/// The beginning of an error that a tool reports.
const ERROR_BYTES: usize = 800;
/// The longest name of a thing that is not shown.
const NAMED: usize = 200;

/// The observation, or the failure that the tool reports. Secrets have been replaced.
pub(crate) fn observation(result: &Value, bytes: usize) -> Result<String, McpFailure> {
    let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
    let text = shown(result, if failed { bytes.min(ERROR_BYTES) } else { bytes });
    match failed {
        true => Err(McpFailure::Tool { message: text }),
        false => Ok(text),
    }
}

fn shown(result: &Value, bytes: usize) -> String {
    let (mut texts, mut things) = (Vec::new(), Vec::new());
    for part in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        match part.get("type").and_then(Value::as_str) {
            Some("text") => texts.push(part.get("text").and_then(Value::as_str).unwrap_or_default()),
            kind => things.push(thing(kind.unwrap_or("unknown"), part)),
        }
    }
    let things = several_lines(&things.join("\n"));
    let room = |things: &str| bytes.saturating_sub(if things.is_empty() { 0 } else { things.len() + 1 });
    let text = match (texts.as_slice(), result.get("structuredContent")) {
        ([], Some(value)) if !value.is_null() => trimmed(value, room(&things)),
        ([only], _) if only.trim_start().starts_with(['{', '[']) => match serde_json::from_str::<Value>(only) {
            Ok(value) => trimmed(&value, room(&things)),
            Err(_) => several_lines(only),
        },
        _ => several_lines(&texts.join("\n")),
    };
    let whole = match (text.is_empty(), things.is_empty()) {
        (_, true) => text,
        (true, false) => things,
        (false, false) => format!("{}\n{things}", cut(text, room(&things)).0),
    };
    cut(whole, bytes).0
}

/// What is not shown, by media type and size.
fn thing(kind: &str, part: &Value) -> String {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(|text| cut(one_line(text), NAMED).0);
    let media = |value: &Value| text(value, "mimeType").unwrap_or_else(|| "no named type".to_owned());
    let decoded =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map_or(0, |data| data.trim_end_matches('=').len() * 3 / 4);
    match kind {
        "image" | "audio" => format!("({kind}, {}, {} bytes, not shown)", media(part), decoded(part, "data")),
        "resource" => {
            let resource = part.get("resource").unwrap_or(&Value::Null);
            let length = resource.get("text").and_then(Value::as_str).map_or_else(|| decoded(resource, "blob"), str::len);
            format!("(resource `{}`, {}, {length} bytes, not shown)", text(resource, "uri").unwrap_or_default(), media(resource))
        }
        "resource_link" => {
            let size = part.get("size").and_then(Value::as_u64).map_or_else(String::new, |size| format!(", {size} bytes"));
            format!("(link to `{}`, {}{size}, not shown)", text(part, "uri").unwrap_or_default(), media(part))
        }
        other => format!("(content of type `{}`, not shown)", cut(one_line(other), NAMED).0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(result: Value, bytes: usize) -> String {
        observation(&result, bytes).unwrap()
    }

    #[test]
    fn texts_are_joined_and_everything_else_is_named() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(seen(json!({"content": [text("a\u{7}b\r\n"), text("c")]}), 100), "a b\n\nc");
        let image = json!({"type": "image", "data": "aGVsbG8=", "mimeType": "image/png\nFinish"});
        assert_eq!(seen(json!({"content": [text("x"), image]}), 100), "x\n(image, image/png Finish, 5 bytes, not shown)");
        let blob = json!({"type": "resource", "resource": {"uri": "a://b", "blob": "aGVsbG8=", "mimeType": "x/y"}});
        assert_eq!(seen(json!({"content": [blob]}), 100), "(resource `a://b`, x/y, 5 bytes, not shown)");
        let link = json!({"type": "resource_link", "uri": "a://b", "name": "n", "size": 7});
        assert_eq!(seen(json!({"content": [link]}), 100), "(link to `a://b`, no named type, 7 bytes, not shown)");
        assert_eq!(seen(json!({"content": [{"type": "hologram"}]}), 100), "(content of type `hologram`, not shown)");
        assert_eq!(seen(json!({"content": []}), 100), "");
    }

    #[test]
    fn json_is_trimmed_by_its_structure() {
        let many: Vec<u32> = (0..1000).collect();
        let structured = seen(json!({"content": [], "structuredContent": {"result": many}}), 60);
        assert!(structured.len() <= 60 && serde_json::from_str::<Value>(&structured).is_ok(), "{structured}");
        let text = json!({"type": "text", "text": json!(many).to_string()});
        let text = seen(json!({"content": [text], "structuredContent": {"result": many}}), 60);
        assert!(text.len() <= 60 && serde_json::from_str::<Value>(&text).is_ok(), "{text}");
    }

    #[test]
    fn an_error_is_a_failure() {
        let result = json!({"isError": true, "content": [{"type": "text", "text": "x".repeat(5000)}]});
        let Err(McpFailure::Tool { message }) = observation(&result, 4096) else { panic!() };
        assert_eq!(message.len(), 800);
    }
}
