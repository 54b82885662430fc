//! `browse_website`: the passages of a web page that fit a question.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_documents::Reader;
use autoact_http_tools::HttpClient;
use autoact_sandbox::Sandbox;
use autoact_tools::{Key, Preset, Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Effect, ToolSpec, cut};
use serde::Deserialize;
use url::Url;

use crate::links::{Link, fitting, texts};
use crate::options::{ALLOW_PRIVATE, CONCURRENCY, MAX_RESPONSE_BYTES, REDIRECTS, Raw, SANDBOX};
use crate::web::{Found, Web};
use crate::{address, ask, options, page, passages};

pub(crate) static PRESET: Preset = Preset {
    kind: "browse_website",
    name: "Browse",
    definition: "Reads a web page and shows the passages that fit a question.",
    schema: Some(
        r#"{
  "type": "object",
  "properties": {
    "url": { "type": "string", "minLength": 1, "maxLength": 2048, "description": "the page's URL" },
    "question": { "type": "string", "maxLength": 400, "description": "what to look for on the page" }
  },
  "required": ["url", "question"],
  "additionalProperties": false
}"#,
    ),
    usage: None,
    examples: &[r#"{"url": "https://example.org/loire", "question": "How long is the Loire?"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(30),
    max_observation_bytes: 3072,
    multiline: true,
    keys: &[
        Key {
            name: "hosts",
            meaning: "the hosts whose pages it may read, such as `[\"en.wikipedia.org\", \"*.example.org\"]`; `[\"*\"]`: every public host",
            required: true,
        },
        ALLOW_PRIVATE,
        MAX_RESPONSE_BYTES,
        REDIRECTS,
        CONCURRENCY,
        SANDBOX,
        Key { name: "ignore_robots", meaning: "whether pages are read that robots.txt closes to programs; `false`", required: false },
    ],
    data: &[],
};

const ACCEPT: &str = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/*;q=0.8, */*;q=0.1";
/// Bytes of a title that are shown.
const TITLE_BYTES: usize = 160;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    ignore_robots: bool,
}

pub(crate) fn make(mut run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let mut mistakes = Vec::new();
    if run.get("hosts").and_then(toml::Value::as_array).is_some_and(Vec::is_empty) {
        mistakes.push("`hosts` names no host; expected some such as `example.org`, or `[\"*\"]` for every public host".to_owned());
    }
    let web = Raw::take(&mut run, &mut mistakes).web(&[], ACCEPT, client, &mut mistakes);
    let reader = options::reader(&mut run, base, &mut mistakes);
    let own: Option<Own> = options::read(run, &mut mistakes);
    match (web, own) {
        (Some(web), Some(own)) if mistakes.is_empty() => {
            let web = if own.ignore_robots { web } else { web.with_robots() };
            Ok(Arc::new(BrowseWebsite { spec, web: Arc::new(web), reader }))
        }
        _ => Err(mistakes),
    }
}

struct BrowseWebsite {
    spec: ToolSpec,
    web: Arc<Web>,
    reader: Reader,
}

impl Tool for BrowseWebsite {
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
        let began = Instant::now();
        let url = address::allowed(ask::text(call, "url"), &self.web)?;
        let question = ask::text(call, "question");
        let web = Arc::clone(&self.web);
        let Found { url, seen } = ask::wait(&self.web.client.handle().clone(), self.spec.timeout, async move { web.page(url).await })?;
        let left = self.spec.timeout.saturating_sub(began.elapsed());
        let page = page::read(&self.reader, &url, &seen, left)?;
        let menu = page.html.as_deref().map(texts).unwrap_or_default();
        let title = page.document.title.as_str();
        let links = page.html.as_deref().map(|html| fitting(html, &url, title, question, |url| self.web.check(url).is_ok()));
        show(&page.document, &url, question, &links.unwrap_or_default(), &menu, self.spec.max_observation_bytes)
    }
}

/// The observation: title and URL, passages, links.
fn show(
    document: &autoact_documents::Document,
    url: &Url,
    question: &str,
    links: &[Link],
    menu: &HashSet<String>,
    bytes: usize,
) -> Result<ToolOutput, ToolError> {
    let mut lines = vec![format!("{} <{url}>", cut(document.title.clone(), TITLE_BYTES).0)];
    let links: Vec<String> = links.iter().map(|link| format!("{} <{}>", link.text, link.url)).collect();
    let links = (!links.is_empty()).then(|| format!("Links: {}", links.join("; ")));
    let taken = lines[0].len() + links.as_ref().map_or(0, String::len);
    let shown = passages::best(document, url, question, bytes.saturating_sub(taken + 80), &[], menu)?;
    if !shown.fits {
        lines.push("No passage has a word of the question. The page begins:".to_owned());
    }
    lines.extend(shown.lines);
    lines.extend(links);
    Ok(ToolOutput { text: lines.join("\n"), sources: shown.sources, ..ToolOutput::default() })
}
