//! A URL with places for arguments in its path. Whatever the arguments are, scheme, host, port and
//! the fixed parts of the path stay.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use url::Url;

use crate::encode::{encoded, leads_elsewhere};
use crate::failure::{HttpFailure, Refusal};
use crate::operation::OperationError;

/// What a URL's path does not show as it is. A `%` that is there is an encoded character.
const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'^').add(b'|').add(b'[').add(b']');

/// `https://api.example.com/v1/items/{id}`: places are in the path alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    /// Scheme, host and port.
    origin: Url,
    path: Vec<Piece>,
    /// What stands after the question mark, encoded; may be empty.
    query: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    Place(String),
}

impl UrlTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// It is no URL of http or https, has a user or a fragment, or has a place outside of its path.
    pub fn parse(text: &str) -> Result<UrlTemplate, OperationError> {
        let wrong = |reason| OperationError::Url { url: without_user(text), reason };
        if text.contains(|c: char| c.is_control() || c == '\\') {
            return Err(wrong("it holds control characters or backslashes"));
        }
        let Some((scheme, rest)) = text.split_once("://") else { return Err(wrong("expected `https://` or `http://`")) };
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err(wrong("its scheme is neither http nor https"));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("it holds a user; name a secret instead"));
        }
        if authority.contains(['{', '}', '%']) {
            return Err(wrong("there is a place in its host"));
        }
        if rest.contains('#') {
            return Err(wrong("it has a fragment, which is never sent"));
        }
        let origin = Url::parse(&format!("{scheme}://{authority}/")).map_err(|_| wrong("it has no valid host"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        if query.contains(['{', '}']) {
            return Err(wrong("there is a place in its query; the query is made of the arguments that go there"));
        }
        let path = pieces(if path.is_empty() { "/" } else { path }).ok_or_else(|| wrong("its braces do not match"))?;
        let fixed: String = path.iter().map(|piece| if let Piece::Fixed(text) = piece { text.as_str() } else { "x" }).collect();
        if leads_elsewhere(&fixed) {
            return Err(wrong("its path has segments of dots"));
        }
        let query = utf8_percent_encode(query, PATH).to_string();
        Ok(UrlTemplate { origin, path, query })
    }

    /// The names of its places, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(|piece| match piece {
            Piece::Place(name) => Some(name.as_str()),
            Piece::Fixed(_) => None,
        })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// The URL with values that are encoded already, and more parameters for its query.
    pub(crate) fn fill(&self, value: impl Fn(&str) -> Option<String>, query: &[(String, String)]) -> Result<Url, HttpFailure> {
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                Piece::Fixed(text) => path.push_str(text),
                Piece::Place(name) => {
                    let missing =
                        || HttpFailure::Argument { name: name.clone(), reason: "is part of the path; expected a value".to_owned() };
                    path.push_str(&value(name).filter(|value| !value.is_empty()).ok_or_else(missing)?);
                }
            }
        }
        let changed = || HttpFailure::Refused { host: self.host(), reason: Refusal::Changed };
        if leads_elsewhere(&path) {
            return Err(changed());
        }
        let mut all = self.query.clone();
        for (name, value) in query {
            let mark = if all.is_empty() { "" } else { "&" };
            all.push_str(&format!("{mark}{name}={value}"));
        }
        let mut url = self.origin.clone();
        let text = format!("{}{}{}{all}", &self.origin[..url::Position::BeforePath], path, if all.is_empty() { "" } else { "?" });
        url.clone_from(&Url::parse(&text).map_err(|_| changed())?);
        // no parser may see another host or path than the template's
        let same = url.origin() == self.origin.origin() && url.path() == path && url.fragment().is_none() && url.username().is_empty();
        if same { Ok(url) } else { Err(changed()) }
    }

    /// Its host, as errors name it.
    pub(crate) fn host(&self) -> String {
        self.origin.host_str().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin[..url::Position::BeforePath])?;
        for piece in &self.path {
            match piece {
                Piece::Fixed(text) => f.write_str(text)?,
                Piece::Place(name) => write!(f, "{{{name}}}")?,
            }
        }
        if self.query.is_empty() { Ok(()) } else { write!(f, "?{}", self.query) }
    }
}

/// The parts of a path; `None` if its braces do not match.
fn pieces(path: &str) -> Option<Vec<Piece>> {
    let mut all = Vec::new();
    let mut rest = path;
    while let Some(open) = rest.find(['{', '}']) {
        let (fixed, tail) = rest.split_at(open);
        let (name, tail) = tail.strip_prefix('{')?.split_once('}')?;
        // RFC 6570 has operators, of which none is followed here
        let name = name.trim_start_matches(['+', '/', '.', ';']).trim_end_matches('*');
        if name.is_empty() || name.contains('{') {
            return None;
        }
        if !fixed.is_empty() {
            all.push(Piece::Fixed(fixed_text(fixed)));
        }
        all.push(Piece::Place(name.to_owned()));
        rest = tail;
    }
    if !rest.is_empty() {
        all.push(Piece::Fixed(fixed_text(rest)));
    }
    Some(all)
}

/// The fixed part of a path as it is sent. A `%` that encodes nothing is encoded itself.
fn fixed_text(text: &str) -> String {
    let mut checked = String::new();
    for (at, c) in text.char_indices() {
        let hex = text.get(at + 1..at + 3).is_some_and(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if c == '%' && !hex { checked.push_str(&encoded("%")) } else { checked.push(c) }
    }
    utf8_percent_encode(&checked, PATH).to_string()
}

/// A URL for an error: without what could be a password.
fn without_user(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(start), Some(end)) if start < end => format!("{}***{}", &text[..start + 3], &text[end..]),
        _ => text.to_owned(),
    }
}
