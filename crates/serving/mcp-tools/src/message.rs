//! A message of a server, before rmcp reads it: secrets are replaced, so that none is in an answer, an
//! error or a log of any library.

use autoact_http_tools::Hidden;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// Stands in the error that an answer without form becomes.
pub(crate) const MALFORMED: &str = "the answer has no form that the protocol knows";
/// Stands in the error of a call whose answer is too long.
pub(crate) const TOO_LARGE: &str = "the answer is too long";
/// Stands in the error of a call whose answer broke off.
pub(crate) const BROKE_OFF: &str = "the answer broke off";
/// The members that a server fills as it likes.
const FREE: [&str; 3] = ["result", "params", "error"];

/// What bytes are.
pub(crate) enum Read {
    /// A message.
    Message(Box<ServerJsonRpcMessage>),
    /// JSON that the protocol does not know and that answers nothing.
    Unknown,
    /// No JSON.
    NoJson,
}

/// Reads one message. An answer without form becomes an error for the call that waits for it.
pub(crate) fn read(bytes: &[u8], hidden: &Hidden) -> Read {
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else { return Read::NoJson };
    clean(&mut value, hidden);
    let (id, asks) = (value.get("id").cloned(), value.get("method").is_some());
    if let Ok(message) = serde_json::from_value::<ServerJsonRpcMessage>(value) {
        return Read::Message(Box::new(message));
    }
    match id.and_then(|id| serde_json::from_value::<RequestId>(id).ok()) {
        Some(id) if !asks => {
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, MALFORMED, None);
            Read::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
        }
        _ => Read::Unknown,
    }
}

fn clean(value: &mut Value, hidden: &Hidden) {
    let Value::Object(fields) = value else { return };
    for name in FREE {
        if let Some(free) = fields.get_mut(name) {
            *free = hidden.clean_json(free.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str, secret: &str) -> String {
        let mut hidden = Hidden::default();
        hidden.add(secret);
        match read(message.as_bytes(), &hidden) {
            Read::Message(message) => serde_json::to_string(&message).unwrap(),
            Read::Unknown => "unknown".to_owned(),
            Read::NoJson => "no JSON".to_owned(),
        }
    }

    #[test]
    fn secrets_are_replaced_and_answers_without_form_are_errors() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"key tops3cret"}]}}"#;
        let seen = text(answer, "tops3cret");
        assert!(seen.contains("key ***") && !seen.contains("tops3cret"), "{seen}");
        assert!(text(r#"{"jsonrpc":"2.0","id":7,"outcome":1}"#, "x").contains(MALFORMED));
        assert_eq!(text(r#"{"jsonrpc":"2.0"}"#, "x"), "unknown");
        assert_eq!(text("[1, 2]", "x"), "unknown");
        assert_eq!(text("Server started", "x"), "no JSON");
        assert_eq!(text(&"[".repeat(100_000), "x"), "no JSON");
    }
}
