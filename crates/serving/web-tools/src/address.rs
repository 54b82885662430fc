//! A URL as a model writes it.

use autoact_http_tools::{HttpFailure, Refusal};
use autoact_tools::ToolError;
use url::Url;

use crate::web::Web;

/// A longer URL is none that a page shows.
const LONGEST: usize = 2048;

/// Reads a URL. One without a scheme is of https.
pub(crate) fn read(written: &str) -> Result<Url, ToolError> {
    let text = written.trim().trim_matches(['<', '>', '"', '`']);
    let wrong = |why: &str| ToolError::Params(format!("this URL cannot be read: {why}; expected one such as https://example.org/page"));
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.len() > LONGEST {
        return Err(wrong("it is longer than 2048 bytes"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("it has blanks"));
    }
    let whole = if has_scheme(text) { text.to_owned() } else { format!("https://{text}") };
    let mut url = Url::parse(&whole).map_err(|error| wrong(&error.to_string()))?;
    url.set_fragment(None);
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(&Refusal::Scheme.to_string()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a user or a password; leave out what stands before the `@`"));
    }
    Ok(url)
}

/// Whether the text before the first colon is a scheme: `example.org:8080/x` has none.
fn has_scheme(text: &str) -> bool {
    let Some((before, after)) = text.split_once(':') else { return false };
    let port = after.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let named = before.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    named && !is_port
}

/// [`read`], and whether the tool may go there.
pub(crate) fn allowed(written: &str, web: &Web) -> Result<Url, ToolError> {
    let url = read(written)?;
    match web.check(&url) {
        Ok(()) => Ok(url),
        Err(HttpFailure::Refused { host, reason }) => {
            let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
            Err(ToolError::Params(format!("no request may go to `{host}{port}`: {reason}; this tool reads {}", web.allowed())))
        }
        Err(other) => Err(other.into()),
    }
}

/// A URL as a source names its document: within the bound of a path. A longer one loses its query;
/// one that is still longer names nothing.
pub(crate) fn named(url: &Url, most: usize) -> Option<String> {
    let mut url = url.clone();
    if url.as_str().len() > most {
        url.set_query(None);
    }
    (url.as_str().len() <= most).then(|| url.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_url_may_lack_its_scheme_but_not_have_another() {
        for (written, expected) in [
            ("https://example.org/a?b=c#d", "https://example.org/a?b=c"),
            (" <http://Example.org> ", "http://example.org/"),
            ("example.org/a", "https://example.org/a"),
            ("example.org:8080/a", "https://example.org:8080/a"),
            ("localhost:1/a", "https://localhost:1/a"),
            ("/b", "https://b/"),
        ] {
            assert_eq!(read(written).unwrap().as_str(), expected, "{written}");
        }
        for wrong in [
            "",
            " ",
            "ftp://example.org",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://me:pw@example.org",
            "https://me@example.org",
            "http://",
            "a b",
            "https://exa mple.org",
            "http://[::1",
            &format!("https://example.org/{}", "x".repeat(LONGEST)),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("https://example.org/page"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_long_url_is_named_without_its_query() {
        let url = Url::parse("https://example.org/a?bc").unwrap();
        assert_eq!(named(&url, 100).unwrap(), "https://example.org/a?bc");
        assert_eq!(named(&url, 22).unwrap(), "https://example.org/a");
        assert_eq!(named(&url, 5), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}|[a-z]{0,6}:[/@:.a-z0-9\\[\\]%]{0,30}") {
            if let Ok(url) = read(&text) {
                prop_assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.fragment().is_none());
            }
        }
    }
}
