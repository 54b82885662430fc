//! What a model reads of an answer.

use autoact_base::lines::several_lines;
use autoact_http_client::retry::retry_after;
use autoact_trajectory::cut;
use serde_json::Value;

use crate::failure::{HttpFailure, StatusClass};
use crate::html;
use crate::secret::Hidden;
use crate::send::Answer;
use crate::trim::trimmed;

/// The beginning of an error's body.
const ERROR_BYTES: usize = 800;

/// What a body is, as far as a model is concerned.
enum Form {
    Json,
    Html,
    Text,
    Binary,
}

/// The observation, or the failure that the status says. Secrets are replaced before anything is
/// cut, so that no part of one is left.
pub(crate) fn observation(answer: &Answer, bytes: usize, hidden: &Hidden) -> Result<String, HttpFailure> {
    match StatusClass::of(answer.status) {
        None => Ok(shown(answer, bytes, hidden)),
        Some(class) => Err(HttpFailure::Status {
            status: answer.status,
            class,
            retry_after: retry_after(&answer.headers),
            body: shown(answer, bytes.min(ERROR_BYTES), hidden),
        }),
    }
}

fn shown(answer: &Answer, bytes: usize, hidden: &Hidden) -> String {
    if answer.body.is_empty() {
        return cut(hidden.clean(without_body(answer)), bytes).0;
    }
    let text = || String::from_utf8_lossy(&answer.body);
    match form(answer) {
        Form::Json => match serde_json::from_slice::<Value>(&answer.body) {
            Ok(value) => trimmed(&hidden.clean_json(value), bytes),
            // cut off, or nested too deeply for a parser
            Err(_) => cut(hidden.clean(several_lines(&text())), bytes).0,
        },
        Form::Html => cut(hidden.clean(several_lines(&html::text(&text()))), bytes).0,
        Form::Text => cut(hidden.clean(several_lines(&text())), bytes).0,
        Form::Binary => {
            let media = answer.media();
            let media = if media.is_empty() { "data of no named type".to_owned() } else { media };
            cut(hidden.clean(format!("({media}, {} bytes, not shown)", answer.body.len())), bytes).0
        }
    }
}

/// The answer to HEAD, or one without content.
fn without_body(answer: &Answer) -> String {
    let mut text = format!("status {}", answer.status);
    for name in ["content-type", "content-length", "last-modified", "etag", "location"] {
        if let Some(value) = answer.headers.get(name).and_then(|value| value.to_str().ok()) {
            text.push_str(&format!(", {name}: {value}"));
        }
    }
    text + ", no content"
}

fn form(answer: &Answer) -> Form {
    let media = answer.media();
    let subtype = media.split_once('/').map_or("", |(_, subtype)| subtype);
    let begins_as_json = || answer.body.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'{' | b'['));
    if matches!(subtype, "json" | "x-json") || subtype.ends_with("+json") {
        return Form::Json;
    }
    if matches!(media.as_str(), "text/html" | "application/xhtml+xml") {
        return Form::Html;
    }
    let textual = matches!(subtype, "xml" | "yaml" | "x-yaml" | "javascript" | "x-www-form-urlencoded" | "x-ndjson" | "sql" | "graphql");
    if media.starts_with("text/") || textual || subtype.ends_with("+xml") || subtype.ends_with("+yaml") {
        return if subtype == "plain" && begins_as_json() && serde_json::from_slice::<Value>(&answer.body).is_ok() {
            Form::Json
        } else {
            Form::Text
        };
    }
    match media.is_empty() && std::str::from_utf8(&answer.body).is_ok() {
        true if begins_as_json() => Form::Json,
        true => Form::Text,
        false => Form::Binary,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

    use super::*;

    fn answer(status: u16, media: &'static str, body: &[u8]) -> Answer {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        }
        Answer { status, headers, body: Bytes::copy_from_slice(body) }
    }

    fn seen(media: &'static str, body: &[u8], bytes: usize) -> String {
        observation(&answer(200, media, body), bytes, &Hidden::default()).unwrap()
    }

    #[test]
    fn each_form_is_shown_in_its_way() {
        assert_eq!(seen("application/json; charset=utf-8", b"{ \"a\": [1, 2] }", 100), "{\"a\":[1,2]}");
        assert_eq!(seen("application/problem+json", b"{}", 100), "{}");
        assert_eq!(seen("", b" [1]", 100), "[1]");
        assert_eq!(seen("text/html", b"<html><script>x()</script><p>Hello &amp; <b>you</b></p></html>", 100), "Hello & you");
        assert_eq!(seen("text/plain", b"plain", 100), "plain");
        assert_eq!(seen("text/plain", "é".repeat(100).as_bytes(), 70).len(), 70);
        assert_eq!(seen("image/png", &[0x89, b'P'], 100), "(image/png, 2 bytes, not shown)");
        assert_eq!(seen("", &[0xff, 0xfe], 100), "(data of no named type, 2 bytes, not shown)");
        assert_eq!(seen("application/json", b"{\"a\": ", 100), "{\"a\":");
        assert_eq!(seen("text/plain", b"", 100), "status 200, content-type: text/plain, no content");
    }

    #[test]
    fn a_secret_is_replaced_before_the_text_is_cut() {
        let mut hidden = Hidden::default();
        hidden.add("tops3cret");
        let body = format!("{{\"text\":\"{}tops3cret{}\"}}", "x".repeat(1000 - 4), "y".repeat(2000));
        let seen = observation(&answer(200, "application/json", body.as_bytes()), 1200, &hidden).unwrap();
        assert!(!seen.contains("tops"), "{seen}");
        let page = observation(&answer(200, "text/html", b"<b>tops</b>3cret"), 100, &hidden).unwrap();
        assert_eq!(page, "***");
    }

    #[test]
    fn a_status_is_a_failure_of_a_class() {
        for (status, class) in [
            (400, StatusClass::Client),
            (401, StatusClass::Auth),
            (403, StatusClass::Auth),
            (404, StatusClass::Client),
            (429, StatusClass::RateLimited),
            (500, StatusClass::Server),
            (304, StatusClass::Unexpected),
        ] {
            let failure = observation(&answer(status, "text/plain", b"no"), 100, &Hidden::default()).unwrap_err();
            assert_eq!(failure, HttpFailure::Status { status, class, retry_after: None, body: "no".into() });
        }
    }
}
