//! `browse_wiki`: the passages of a wiki's page that fit a question.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_base::lines::one_line;
use autoact_documents::{Document, Reader};
use autoact_http_tools::HttpClient;
use autoact_sandbox::Sandbox;
use autoact_tools::text::{query_stems, stems};
use autoact_tools::{Key, Preset, Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Effect, MAX_SOURCE_PATH_BYTES, Source, ToolSpec, cut};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use url::Url;

use crate::options::{ALLOW_PRIVATE, CONCURRENCY, HOSTS, MAX_RESPONSE_BYTES, REDIRECTS, Raw, SANDBOX};
use crate::wiki::{Hit, Parsed, Wiki, WikiPage};
use crate::wiki_html::INFOBOX;
use crate::{address, ask, options, passages};

pub(crate) static PRESET: Preset = Preset {
    kind: "browse_wiki",
    name: "Wiki",
    definition: "Reads a page of the wiki and shows the passages that fit a question.",
    schema: Some(
        r#"{
  "type": "object",
  "properties": {
    "title": { "type": "string", "minLength": 1, "maxLength": 500, "description": "the page's title or URL" },
    "question": { "type": "string", "maxLength": 400, "description": "what to look for on the page" }
  },
  "required": ["title", "question"],
  "additionalProperties": false
}"#,
    ),
    usage: None,
    examples: &[r#"{"title": "Loire", "question": "How long is the Loire?"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(30),
    max_observation_bytes: 3072,
    multiline: true,
    keys: &[
        Key { name: "api", meaning: "the URL of the wiki's api.php, such as `https://en.wikipedia.org/w/api.php`", required: true },
        HOSTS,
        ALLOW_PRIVATE,
        MAX_RESPONSE_BYTES,
        REDIRECTS,
        CONCURRENCY,
        SANDBOX,
    ],
    data: &[],
};

pub(crate) const ACCEPT: &str = "application/json";
/// Pages that are named where none has the title.
const SIMILAR: usize = 5;
/// Lines of a page that lists what its title may mean.
const MEANINGS: usize = 10;
/// Bytes of such a line.
const MEANING_BYTES: usize = 120;
/// Rows of the infobox that are shown.
const ROWS: usize = 6;
/// Bytes of a row.
const ROW_BYTES: usize = 160;
/// Bytes that name the sections.
const SECTIONS_BYTES: usize = 400;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    api: String,
}

pub(crate) fn make(mut run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let mut mistakes = Vec::new();
    let raw = Raw::take(&mut run, &mut mistakes);
    let reader = options::reader(&mut run, base, &mut mistakes);
    let own: Option<Own> = options::read(run, &mut mistakes);
    let api = own.and_then(|own| options::url("api", &own.api, &mut mistakes));
    let wiki = api.and_then(|api| Some(Wiki::new(raw.web(&[&api], ACCEPT, client, &mut mistakes)?, api)));
    match wiki {
        Some(wiki) if mistakes.is_empty() => Ok(Arc::new(BrowseWiki { spec, client: client.clone(), wiki: Arc::new(wiki), reader })),
        _ => Err(mistakes),
    }
}

struct BrowseWiki {
    spec: ToolSpec,
    client: HttpClient,
    wiki: Arc<Wiki>,
    reader: Reader,
}

enum Opened {
    Page(Box<(WikiPage, Parsed)>),
    Unknown(Vec<Hit>),
}

impl Tool for BrowseWiki {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.reader.sandbox()
    }

    fn is_trusted(&self) -> bool {
        self.reader.sandbox().is_none()
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let title = title(ask::text(call, "title"), self.wiki.host())?;
        let question = ask::text(call, "question");
        let (wiki, wanted, reader) = (Arc::clone(&self.wiki), title.clone(), self.reader.within_time(self.spec.timeout / 2));
        let time = self.spec.timeout;
        let opened = ask::wait(self.client.handle(), time, async move {
            match wiki.pages(&[&wanted]).await?.pop() {
                Some(page) => {
                    let parsed = wiki.parsed(&page, reader).await?;
                    Ok(Opened::Page(Box::new((page, parsed))))
                }
                None => Ok(Opened::Unknown(wiki.search(&wanted, SIMILAR).await?)),
            }
        })?;
        match opened {
            Opened::Unknown(hits) => Ok(unknown(&title, &hits).into()),
            Opened::Page(opened) => match &*opened {
                (page, parsed) if parsed.disambiguation => Ok(meanings(page, &parsed.document).into()),
                (page, parsed) => show(page, parsed, question, self.spec.max_observation_bytes),
            },
        }
    }
}

/// The title that a model means: as it is, or that of a URL of this wiki.
fn title(written: &str, host: &str) -> Result<String, ToolError> {
    let wrong = |why: String| ToolError::Params(format!("{why}; expected the title of a page, such as `Loire`"));
    let title = if written.contains("://") {
        let url = address::read(written)?;
        if url.host_str() != Some(host) {
            return Err(wrong(format!("`{}` is not this wiki, which is `{host}`", url.host_str().unwrap_or_default())));
        }
        of_url(&url).ok_or_else(|| wrong("the URL names no page".to_owned()))?
    } else {
        written.to_owned()
    };
    let title = one_line(title.split('#').next().unwrap_or_default());
    if title.is_empty() || title.len() > 255 || title.contains(['|', '<', '>', '[', ']', '{', '}']) {
        return Err(wrong("this is no title of a page".to_owned()));
    }
    Ok(title)
}

/// The title in a URL: `?title=`, or what stands after `/wiki/` or `index.php/`, or the last part.
fn of_url(url: &Url) -> Option<String> {
    if let Some((_, title)) = url.query_pairs().find(|(key, _)| key == "title") {
        return Some(title.replace('_', " "));
    }
    let path = url.path();
    let after = |mark: &str| path.split_once(mark).map(|(_, title)| title);
    let title = after("/wiki/").or_else(|| after("/index.php/")).or_else(|| path.rsplit('/').next())?;
    Some(percent_decode_str(title).decode_utf8_lossy().replace('_', " "))
}

fn unknown(title: &str, hits: &[Hit]) -> String {
    let mut lines = vec![format!("No page is titled {title}.")];
    if !hits.is_empty() {
        lines.push("A search finds:".to_owned());
        lines.extend(hits.iter().map(|hit| cut(format!("- {}: {}", hit.title, hit.summary), 2 * MEANING_BYTES).0));
    }
    lines.join("\n")
}

fn head(page: &WikiPage) -> String {
    let from = page.redirected.as_ref().map_or_else(String::new, |from| format!(" (redirected from {from})"));
    format!("{} <{}>{from}", page.title, page.url)
}

fn meanings(page: &WikiPage, document: &Document) -> String {
    let lines = document.text.lines().filter(|line| !line.is_empty()).take(MEANINGS);
    let lines = lines.map(|line| format!("- {}", cut(line.to_owned(), MEANING_BYTES).0));
    [head(page), "It may mean:".to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// The observation: title and URL, passages, rows of the infobox, sections.
fn show(page: &WikiPage, parsed: &Parsed, question: &str, bytes: usize) -> Result<ToolOutput, ToolError> {
    let Parsed { document, sections, .. } = parsed;
    let mut lines = vec![head(page)];
    let (rows, row_sources) = infobox(page, document, question);
    let rows = (!rows.is_empty()).then(|| format!("{INFOBOX}: {}", rows.join("; ")));
    let sections = (!sections.is_empty()).then(|| cut(format!("Sections: {}", sections.join("; ")), SECTIONS_BYTES).0);
    let taken = lines[0].len() + rows.as_ref().map_or(0, String::len) + sections.as_ref().map_or(0, String::len);
    let shown = passages::best(document, &page.url, question, bytes.saturating_sub(taken + 80), &[INFOBOX], &HashSet::new())?;
    if !shown.fits && !shown.lines.is_empty() {
        lines.push("No passage has a word of the question. The page begins:".to_owned());
    }
    lines.extend(shown.lines);
    lines.extend(rows);
    lines.extend(sections);
    let sources = shown.sources.into_iter().chain(row_sources).collect();
    Ok(ToolOutput { text: lines.join("\n"), sources, ..ToolOutput::default() })
}

/// The rows of the infobox that have words of the question, else its first rows.
fn infobox(page: &WikiPage, document: &Document, question: &str) -> (Vec<String>, Vec<Source>) {
    let wanted = query_stems(question);
    let title = stems(&page.title);
    let Some(section) = document.sections.iter().find(|section| section.heading.as_deref() == Some(INFOBOX)) else {
        return Default::default();
    };
    let mut at = section.span.start;
    let mut rows = Vec::new();
    for line in document.section_text(section).split_inclusive('\n') {
        let row = line.trim_end();
        let words = stems(row);
        let fits = wanted.iter().any(|stem| words.contains(stem) && !title.contains(stem));
        if !row.is_empty() {
            rows.push((fits, at, row));
        }
        at += line.len();
    }
    if rows.iter().any(|(fits, ..)| *fits) {
        rows.retain(|(fits, ..)| *fits);
    }
    rows.truncate(ROWS);
    let source = |(_, at, row): &(bool, usize, &str)| {
        Some(Source {
            file: address::named(&page.url, MAX_SOURCE_PATH_BYTES)?,
            title: page.title.clone(),
            heading: INFOBOX.to_owned(),
            start: *at as u64,
            end: (*at + row.len()) as u64,
            text: (*row).to_owned(),
            ..Source::default()
        })
    };
    let sources = rows.iter().filter_map(source).collect();
    (rows.into_iter().map(|(_, _, row)| cut(row.to_owned(), ROW_BYTES).0).collect(), sources)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;

    #[test]
    fn a_title_or_a_url_of_the_wiki_is_taken() {
        for (written, expected) in [
            ("Loire", "Loire"),
            (" The  Loire#Length", "The Loire"),
            ("https://en.wiki.test/wiki/S%C3%A3o_Paulo#x", "São Paulo"),
            ("https://en.wiki.test/w/index.php?title=Mount_Etna&x=1", "Mount Etna"),
            ("https://en.wiki.test/index.php/AC/DC", "AC/DC"),
            ("https://en.wiki.test/Loire", "Loire"),
        ] {
            assert_eq!(title(written, "en.wiki.test").unwrap(), expected, "{written}");
        }
        for wrong in
            ["", "a|b", "[x]", "https://other.test/wiki/Loire", "ftp://en.wiki.test/wiki/X", "https://en.wiki.test/", &"x".repeat(300)]
        {
            assert!(title(wrong, "en.wiki.test").is_err(), "{wrong}");
        }
    }
}
