//! Classification of failed attempts: retry, or an error for the caller.

use std::sync::LazyLock;
use std::time::Duration;

use autoact_http_client::HttpError;
use autoact_http_client::retry::retry_after;
use autoact_http_client::said::{clip, shown};
use autoact_model::GenerateError;
use http::{HeaderMap, StatusCode};
use regex::Regex;
use serde_json::Value;

use crate::wire::refused_fields;

/// Retry delay for the caller if a busy server names none.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// A retry may succeed.
    Again {
        /// The error if no retry succeeds.
        message: String,
        /// When the server wants the retry.
        after: Option<Duration>,
        /// Whether the server works but is overloaded.
        busy: bool,
    },
    /// The prompt, or the prompt and the requested tokens, are longer than the context.
    TooLong {
        /// The server's message.
        message: String,
        /// Number of the prompt's tokens, if the message contains it.
        tokens: Option<usize>,
    },
    /// The server does not accept the request as it is.
    Refused {
        /// The server's message.
        message: String,
    },
    /// The name is no longer served.
    UnknownModel,
    /// No retry will succeed.
    Final(GenerateError),
}

impl Failure {
    pub(crate) fn again(message: impl Into<String>) -> Failure {
        Failure::Again { message: message.into(), after: None, busy: false }
    }

    pub(crate) fn last(message: impl Into<String>) -> Failure {
        Failure::Final(GenerateError::engine(message))
    }

    /// The failure for a status other than 200.
    pub(crate) fn of_status(url: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let said = shown(body);
        let message = format!("`{url}` answered {}: {said}", status.as_u16());
        match status.as_u16() {
            429 => Failure::Again { message, after: retry_after(headers), busy: true },
            // with `Retry-After` the server is busy; without it, it is broken
            503 if retry_after(headers).is_some() => Failure::Again { message, after: retry_after(headers), busy: true },
            408 | 500 | 502..=504 => Failure::Again { message, after: retry_after(headers), busy: false },
            401 | 403 => Failure::last(format!("{message}; is the API key right?")),
            404 if said.contains("does not exist")
                || said.contains("cannot be found")
                || said.contains("model")
                || said.contains("not found") =>
            {
                Failure::UnknownModel
            }
            400 | 413 | 422 => Failure::of_bad_request(message, body, &said),
            501 => Failure::Refused { message },
            _ => Failure::last(message),
        }
    }

    /// The failure for an error event in a stream.
    pub(crate) fn of_event(error: &Value) -> Failure {
        let said = error.get("message").and_then(Value::as_str).map_or_else(|| clip(&error.to_string()), clip);
        let code = error.get("code").and_then(Value::as_u64).unwrap_or(500);
        let message = format!("the server gave up: {said}");
        if code >= 500 { Failure::again(message) } else { Failure::last(message) }
    }

    fn of_bad_request(message: String, body: &[u8], said: &str) -> Failure {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let code = json.pointer("/error/code").and_then(Value::as_str);
        let lower = said.to_lowercase();
        let long = ["context length", "maximum model length", "max_model_len", "maximum input length"];
        if code == Some("context_length_exceeded") || long.iter().any(|words| lower.contains(words)) {
            return Failure::TooLong { message, tokens: prompt_tokens(&lower) };
        }
        if !refused_fields(said).is_empty() {
            return Failure::Refused { message };
        }
        let grammar = ["grammar", "regex", "structured", "guided", "xgrammar", "guidance", "json schema", "json_schema"];
        if grammar.iter().any(|word| lower.contains(word)) {
            return Failure::Final(GenerateError::InvalidGrammar { reason: message });
        }
        Failure::Refused { message }
    }

    /// The error for the caller if there is no further attempt.
    pub(crate) fn told(self) -> GenerateError {
        match self {
            Failure::Again { busy: true, after, .. } => GenerateError::Overloaded { retry_after: after.unwrap_or(BUSY_RETRY) },
            Failure::Again { message, .. } | Failure::TooLong { message, .. } | Failure::Refused { message } => {
                GenerateError::engine(message)
            }
            Failure::UnknownModel => GenerateError::engine("the server does not serve the model any more"),
            Failure::Final(error) => error,
        }
    }
}

/// The failure of a request that got no response.
pub(crate) fn failed(error: HttpError) -> Failure {
    if error.lasting { Failure::last(error.reason) } else { Failure::again(error.reason) }
}

/// The number of tokens in messages such as `… your request has 1900 input tokens …` and
/// `… (4744 in your prompt; 256 for the completion) …`. vLLM's `at least 8193 input tokens` is a
/// bound, not a count.
fn prompt_tokens(message: &str) -> Option<usize> {
    static COUNT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(at least )?(\d+) (?:input tokens|in (?:your|the) (?:prompt|messages))").ok());
    let found = COUNT.as_ref()?.captures(message)?;
    if found.get(1).is_some() {
        return None;
    }
    found.get(2)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, retry: Option<&str>, body: &str) -> Failure {
        let mut headers = HeaderMap::new();
        if let Some(retry) = retry {
            headers.insert(http::header::RETRY_AFTER, retry.parse().unwrap());
        }
        Failure::of_status("u", StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn statuses_and_what_becomes_of_them() {
        assert_eq!(of(429, Some("2"), "{}").told(), GenerateError::Overloaded { retry_after: Duration::from_secs(2) });
        assert!(matches!(of(503, Some("1.5"), ""), Failure::Again { busy: true, .. }));
        assert!(matches!(of(503, None, ""), Failure::Again { busy: false, .. }));
        for status in [408, 500, 502, 504] {
            assert!(matches!(of(status, None, ""), Failure::Again { busy: false, .. }), "{status}");
        }
        for status in [401, 403, 418, 301] {
            assert!(matches!(of(status, None, ""), Failure::Final(_)), "{status}");
        }
        for status in [400, 413, 422, 501] {
            assert!(matches!(of(status, None, ""), Failure::Refused { .. }), "{status}");
        }
        let gone = r#"{"error": {"message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}}"#;
        assert_eq!(of(404, None, gone), Failure::UnknownModel);
        let Failure::Again { message, .. } = of(500, None, r#"{"object": "error", "message": "out of\nmemory"}"#) else { panic!() };
        assert_eq!(message, "`u` answered 500: `out of memory`");
    }

    #[test]
    fn a_prompt_that_is_too_long_is_understood() {
        let json = |message: &str| serde_json::json!({ "error": { "message": message, "code": 400 } }).to_string();
        for (message, tokens) in [
            (
                "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4744 in your prompt; 256 for the completion).",
                Some(4744),
            ),
            (
                "You passed 163 input tokens and requested 16 output tokens. However, the model's context length is only 128 tokens",
                Some(163),
            ),
            (
                "This model's maximum context length is 2048 tokens. However, you requested 256 output tokens and your prompt contains at least 1793 input tokens, for a total of at least 2049 tokens.",
                None,
            ),
            (
                "'max_tokens' is too large: 200. This model's maximum context length is 2048 tokens and your request has 1900 input tokens (200 > 2048 - 1900).",
                Some(1900),
            ),
        ] {
            let failure = of(400, None, &json(message));
            assert!(matches!(&failure, Failure::TooLong { tokens: found, .. } if *found == tokens), "{failure:?}");
        }
        let invalid = of(400, None, &json("Grammar error: unbalanced parenthesis in regex"));
        assert!(matches!(invalid, Failure::Final(GenerateError::InvalidGrammar { .. })), "{invalid:?}");
    }
}
