//! robots.txt (RFC 9309): which paths of a site a program may read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autoact_http_tools::{HttpClient, HttpFailure, Visit, Visited};
use autoact_tools::ToolError;
use url::Url;

/// The name that sites call us by, as in the header `User-Agent`.
const AGENT: &str = "autoact";
/// How long the rules of a site are believed. The standard allows a day.
const AGE: Duration = Duration::from_secs(3600);
/// How long a site whose rules cannot be had is left alone.
const FAILED_AGE: Duration = Duration::from_secs(60);
/// Sites that are remembered.
const MOST_SITES: usize = 256;
/// More of a robots.txt is not read (the standard's least).
const MOST_BYTES: usize = 500 * 1024;
/// Redirects of a robots.txt that are followed (the standard's least).
const REDIRECTS: usize = 5;

/// The rules of the sites that were asked.
#[derive(Default)]
pub(crate) struct Robots {
    kept: Mutex<HashMap<String, (Instant, Arc<Answer>)>>,
}

enum Answer {
    Rules(Rules),
    /// The site failed to say: nothing may be read.
    Failed(u16),
}

impl Robots {
    /// Whether the site's rules allow to read the URL.
    pub(crate) async fn check(&self, client: &HttpClient, visit: &Visit, url: &Url) -> Result<(), ToolError> {
        let site = url.origin().ascii_serialization();
        let answer = match self.remembered(&site) {
            Some(answer) => answer,
            None => {
                let answer = Arc::new(ask(client, visit, url).await?);
                self.keep(site.clone(), Arc::clone(&answer));
                answer
            }
        };
        match &*answer {
            Answer::Rules(rules) if rules.allows(&url[url::Position::BeforePath..url::Position::AfterQuery]) => Ok(()),
            Answer::Rules(_) => Err(refused(format!("{site}/robots.txt does not allow programs to read this page; choose another page"))),
            Answer::Failed(status) => Err(refused(format!(
                "{site}/robots.txt was answered with status {status}: until it can be read, no page of the site may be"
            ))),
        }
    }

    fn remembered(&self, site: &str) -> Option<Arc<Answer>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, answer) = kept.get(site)?;
        let age = if matches!(**answer, Answer::Failed(_)) { FAILED_AGE } else { AGE };
        (at.elapsed() < age).then(|| Arc::clone(answer))
    }

    fn keep(&self, site: String, answer: Arc<Answer>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_SITES
            && let Some(oldest) = kept.iter().min_by_key(|(_, (at, _))| *at).map(|(site, _)| site.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(site, (Instant::now(), answer));
    }
}

fn refused(message: String) -> ToolError {
    ToolError::Failed { status: "no result".to_owned(), message }
}

/// Asks a site. One without a robots.txt, or with one that leads nowhere, has no rules.
async fn ask(client: &HttpClient, visit: &Visit, url: &Url) -> Result<Answer, HttpFailure> {
    let visit = Visit { response_bytes: MOST_BYTES, cut: true, accept: "text/plain", ..visit.clone() };
    let mut at = url.clone();
    at.set_path("/robots.txt");
    at.set_query(None);
    let none = Answer::Rules(Rules::default());
    for _ in 0..=REDIRECTS {
        match visit.get(client, &at).await {
            Ok(Visited::Moved(to)) => at = to,
            Ok(Visited::Seen(seen)) => {
                return Ok(match seen.status {
                    200..=299 => Answer::Rules(Rules::parse(&String::from_utf8_lossy(&seen.body), AGENT)),
                    429 | 500.. => Answer::Failed(seen.status),
                    _ => none,
                });
            }
            // the page itself may be where requests may go
            Err(HttpFailure::Redirect { .. } | HttpFailure::Encoded { .. }) => return Ok(none),
            Err(HttpFailure::Refused { host, .. }) if Some(host.as_str()) != url.host_str() => return Ok(none),
            Err(other) => return Err(other),
        }
    }
    Ok(none)
}

/// The rules of one site for us.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Whether it allows, and the pattern of the path.
    rules: Vec<(bool, String)>,
}

impl Rules {
    /// The rules of all groups that name `agent`; of the groups for `*` if none does.
    pub(crate) fn parse(text: &str, agent: &str) -> Rules {
        let (mut own, mut others) = (None, Vec::new());
        let (mut for_us, mut for_all, mut names_end) = (false, false, true);
        for line in text.trim_start_matches('\u{feff}').split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if std::mem::take(&mut names_end) {
                        (for_us, for_all) = (false, false);
                    }
                    let end = value.find(|c: char| !(c.is_ascii_alphabetic() || matches!(c, '-' | '_'))).unwrap_or(value.len());
                    for_all |= value.starts_with('*');
                    if value[..end].eq_ignore_ascii_case(agent) {
                        for_us = true;
                        own.get_or_insert_with(Vec::new);
                    }
                }
                rule @ ("allow" | "disallow") => {
                    names_end = true;
                    // an empty rule says nothing
                    if !value.is_empty() {
                        let rule = (rule == "allow", normal(value));
                        if for_us {
                            own.get_or_insert_with(Vec::new).push(rule.clone());
                        }
                        if for_all {
                            others.push(rule);
                        }
                    }
                }
                _ => {}
            }
        }
        Rules { rules: own.unwrap_or(others) }
    }

    /// Whether a path with its query may be read: by the longest rule that fits, and of two equally
    /// long ones by that which allows.
    pub(crate) fn allows(&self, path: &str) -> bool {
        if path == "/robots.txt" {
            return true;
        }
        let path = normal(path);
        let fitting = self.rules.iter().filter(|(_, pattern)| fits(pattern, &path));
        fitting.map(|(allows, pattern)| (pattern.len(), *allows)).max().is_none_or(|(_, allows)| allows)
    }
}

/// A path in which every character has one form: what need not be percent-encoded is not, the rest
/// is in capitals.
fn normal(path: &str) -> String {
    let mut all = String::with_capacity(path.len());
    let mut bytes = path.as_bytes();
    while let [byte, rest @ ..] = bytes {
        bytes = rest;
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let coded = match (byte, rest) {
            (b'%', [high, low, ..]) => hex(high).zip(hex(low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        match coded {
            Some(coded) => {
                bytes = &rest[2..];
                if coded.is_ascii_alphanumeric() || matches!(coded, b'-' | b'.' | b'_' | b'~') {
                    all.push(char::from(coded));
                } else {
                    all.push_str(&format!("%{coded:02X}"));
                }
            }
            None if byte.is_ascii() => all.push(char::from(*byte)),
            None => all.push_str(&format!("%{byte:02X}")),
        }
    }
    all
}

/// Whether a pattern fits the beginning of a path. `*` is any text, a `$` at the end is the path's
/// end.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !whole || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if whole && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
#[path = "robots_tests.rs"]
mod tests;
