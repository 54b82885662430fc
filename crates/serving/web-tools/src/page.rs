//! What a server answered as a document.

use std::time::Duration;

use autoact_documents::{Document, Kind, ReadError, Reader};
use autoact_http_tools::Seen;
use autoact_tools::ToolError;
use url::Url;

use crate::charset::decode;

/// A page as a document, and the text of its file where that is HTML.
pub(crate) struct Page {
    pub(crate) document: Document,
    pub(crate) html: Option<String>,
}

/// Reads a page within `time`.
pub(crate) fn read(reader: &Reader, url: &Url, seen: &Seen, time: Duration) -> Result<Page, ToolError> {
    let failed = |message: String| ToolError::Failed { status: "no result".to_owned(), message };
    let media = seen.media();
    let Some(kind) = kind(url, &media, &seen.body) else {
        let media = if media.is_empty() { "data of no named type".to_owned() } else { media };
        return Err(failed(format!("the page is {media} of {} bytes; only HTML, text, Markdown and PDF can be read", seen.body.len())));
    };
    let html = (kind == Kind::Html).then(|| decode(&seen.body, seen.content_type(), true));
    let bytes = match (&html, kind) {
        (_, Kind::Pdf) => seen.body.to_vec(),
        (Some(html), _) => marked(html),
        _ => marked(&decode(&seen.body, seen.content_type(), false)),
    };
    // a parser that hangs is given up after twice its time
    match reader.within_time(time / 2).read(&name(url), kind, bytes) {
        Ok(document) => Ok(Page { document, html }),
        Err(ReadError::NoText | ReadError::Empty) if kind == Kind::Html => {
            Err(failed("the page has no text; a page that is made by scripts cannot be read, look for another one".to_owned()))
        }
        Err(error) => Err(failed(format!("the page cannot be read: {error}"))),
    }
}

/// The text as a file that says itself that it is UTF-8, whatever the page declares.
fn marked(text: &str) -> Vec<u8> {
    [b"\xef\xbb\xbf", text.trim_start_matches('\u{feff}').as_bytes()].concat()
}

/// The format that the server says, or that the bytes have where it says nothing.
fn kind(url: &Url, media: &str, body: &[u8]) -> Option<Kind> {
    let by_name = || Kind::of(std::path::Path::new(url.path()));
    let begins = |mark: &[u8]| body.trim_ascii_start().get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark));
    let subtype = media.split_once('/').map_or("", |(_, subtype)| subtype);
    match media {
        _ if begins(b"%PDF-") => Some(Kind::Pdf),
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "text/markdown" | "text/x-markdown" => Some(Kind::Markdown),
        "text/plain" => Some(if by_name() == Some(Kind::Markdown) { Kind::Markdown } else { Kind::Text }),
        "" | "application/octet-stream" if begins(b"<!doctype html") || begins(b"<html") => Some(Kind::Html),
        "" | "application/octet-stream" if std::str::from_utf8(body).is_ok() => {
            by_name().filter(|kind| *kind != Kind::Pdf).or(Some(Kind::Text))
        }
        _ if media.starts_with("text/") => Some(Kind::Text),
        _ if matches!(subtype, "json" | "xml" | "yaml") || subtype.ends_with("+json") || subtype.ends_with("+xml") => Some(Kind::Text),
        _ => None,
    }
}

/// What a page without a title is called: the last part of its path, else its host.
fn name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.rfind(|part| !part.is_empty()));
    last.or(url.host_str()).unwrap_or("page").to_owned()
}
