//! Percent-encoding of what a model wrote.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const ARGUMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text in which no character means anything in a URL, a cookie or a form.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ARGUMENT).to_string()
}

/// Whether a server that splits the text into path segments, also after decoding it, would find
/// one that leads elsewhere.
pub(crate) fn leads_elsewhere(text: &str) -> bool {
    let dots = |text: &str| text.split(['/', '\\']).any(|part| matches!(part.trim(), "." | ".."));
    let once = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    let twice = percent_encoding::percent_decode_str(&once).decode_utf8_lossy();
    dots(text) || dots(&once) || dots(&twice)
}
