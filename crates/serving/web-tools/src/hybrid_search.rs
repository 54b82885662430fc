//! `hybrid_search`: web results, and the page that the text is about, at the same time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_base::lines::one_line;
use autoact_base::sentences::sentence_spans;
use autoact_documents::Reader;
use autoact_http_tools::{HttpClient, HttpFailure};
use autoact_sandbox::Sandbox;
use autoact_tools::text::fold;
use autoact_tools::{Key, Preset, Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Effect, MAX_SOURCE_PATH_BYTES, Source, ToolSpec, cut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use url::Url;

use crate::engine::{Engine, lines};
use crate::entity::{Entities, Mention, mentions, score};
use crate::options::{ALLOW_PRIVATE, CONCURRENCY, HOSTS, MAX_RESPONSE_BYTES, REDIRECTS, Raw, SANDBOX};
use crate::web_search::{SCHEMA, asked};
use crate::wiki::{Wiki, WikiPage};
use crate::wiki_html::INFOBOX;
use crate::{address, ask, browse_wiki, options};

pub(crate) static PRESET: Preset = Preset {
    kind: "hybrid_search",
    name: "HybridSearch",
    definition: "Searches the web, and describes the person, place or thing that the text is about.",
    schema: Some(SCHEMA),
    usage: None,
    examples: &["How long is the Loire?"],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(20),
    max_observation_bytes: 4096,
    multiline: true,
    keys: &[
        Key { name: "search_url", meaning: "the URL of the search engine, as `url` of `web_search`", required: false },
        Key { name: "search_api", meaning: "instead of `search_url`: the URL of a wiki's api.php", required: false },
        Key { name: "api", meaning: "the URL of the api.php of the wiki whose pages are the entities", required: false },
        Key { name: "entities", meaning: "instead of `api`: a file of JSON lines with `title`, `text` and `aliases`", required: false },
        Key { name: "page_url", meaning: "where people read a page of `entities`: a URL with `{title}`", required: false },
        HOSTS,
        ALLOW_PRIVATE,
        MAX_RESPONSE_BYTES,
        REDIRECTS,
        CONCURRENCY,
        SANDBOX,
    ],
    data: &["entities"],
};

/// Sentences of a description.
const SENTENCES: usize = 3;
/// Bytes of a description, and of the names of sections.
const DESCRIPTION_BYTES: usize = 700;
const SECTIONS_BYTES: usize = 400;
/// Names that a wiki is asked for at once: its bound.
const MOST_NAMES: usize = 50;
/// How much more a page counts that a search for the text finds too.
const FOUND: f64 = 2.0;
const TITLE: &str = "{title}";
/// All but what means nothing in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    search_url: Option<String>,
    search_api: Option<String>,
    api: Option<String>,
    entities: Option<String>,
    page_url: Option<String>,
}

pub(crate) fn make(mut run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let mut mistakes = Vec::new();
    let (raw, again) = (Raw::take(&mut run.clone(), &mut mistakes), Raw::take(&mut run, &mut Vec::new()));
    let reader = options::reader(&mut run, base, &mut mistakes);
    let own: Option<Own> = options::read(run, &mut mistakes);
    let Some(own) = own else { return Err(mistakes) };
    let engine = Engine::new((own.search_url, own.search_api), ("search_url", "search_api"), raw, client, &mut mistakes);
    let entities = match (own.api, own.entities, own.page_url) {
        (Some(api), None, None) => {
            let api = options::url("api", &api, &mut mistakes);
            let wiki = api.and_then(|api| Some(Wiki::new(again.web(&[&api], browse_wiki::ACCEPT, client, &mut mistakes)?, api)));
            wiki.map(|wiki| Half::Wiki(Box::new(wiki), reader))
        }
        (None, Some(file), page_url) => {
            let path = base.map_or_else(|| file.clone().into(), |base| base.join(&file));
            let entities = Entities::load(&path).map_err(|mistake| mistakes.push(mistake)).ok();
            let page_url = page_url.inspect(|url| {
                if !url.contains(TITLE) || options::url("page_url", &url.replace(TITLE, "x"), &mut mistakes).is_none() {
                    mistakes.push(format!("`page_url` is no URL with `{TITLE}`"));
                }
            });
            entities.map(|entities| Half::File(entities, page_url))
        }
        _ => {
            mistakes.push(
                "expected either `api` (the URL of a wiki's api.php) or `entities` (a file), and `page_url` only with a file".to_owned(),
            );
            None
        }
    };
    match (engine, entities) {
        (Some(engine), Some(entities)) if mistakes.is_empty() => {
            Ok(Arc::new(HybridSearch { client: client.clone(), halves: Arc::new((engine, entities)), spec }))
        }
        _ => Err(mistakes),
    }
}

/// Where entities come from.
enum Half {
    Wiki(Box<Wiki>, Reader),
    File(Entities, Option<String>),
}

struct HybridSearch {
    spec: ToolSpec,
    client: HttpClient,
    halves: Arc<(Engine, Half)>,
}

/// What a text is about.
struct Entity {
    title: String,
    url: Option<Url>,
    description: String,
    sections: Vec<String>,
    sources: Vec<Source>,
}

impl Tool for HybridSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        match &self.halves.1 {
            Half::Wiki(_, reader) => reader.sandbox(),
            Half::File(..) => None,
        }
    }

    fn is_trusted(&self) -> bool {
        matches!(&self.halves.1, Half::Wiki(_, reader) if reader.sandbox().is_none())
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let text = asked(call)?;
        let halves = Arc::clone(&self.halves);
        // a half that takes too long has to leave time to tell the other
        let limit = self.spec.timeout * 9 / 10;
        let (web, entity) = ask::wait(self.client.handle(), self.spec.timeout, async move {
            let (engine, half) = &*halves;
            let web = async { tokio::time::timeout(limit, engine.search(&text)).await.unwrap_or_else(|_| late(limit)) };
            let entity = async { tokio::time::timeout(limit, half.entity(&text, limit)).await.unwrap_or_else(|_| late(limit)) };
            Ok(tokio::join!(web, entity))
        })?;
        if let (Err(web), Err(entity)) = (&web, &entity) {
            let message = format!("the search: {web}; the description: {entity}");
            return Err(ToolError::Failed { status: "no result".to_owned(), message });
        }
        let mut told = Vec::new();
        let mut sources = Vec::new();
        match entity {
            Ok(Some(entity)) => {
                let place = entity.url.map_or_else(String::new, |url| format!(" <{url}>"));
                told.push(format!("About: {}{place}: {}", entity.title, cut(entity.description, DESCRIPTION_BYTES).0));
                if !entity.sections.is_empty() {
                    told.push(cut(format!("Sections: {}", entity.sections.join("; ")), SECTIONS_BYTES).0);
                }
                sources = entity.sources;
            }
            Ok(None) => told.push("About: nothing that is known by this name.".to_owned()),
            Err(error) => told.push(format!("About: failed, {}", one_line(&error.to_string()))),
        }
        match web {
            Ok(hits) if hits.is_empty() => told.push("Web: nothing is found.".to_owned()),
            Ok(hits) => {
                told.push("Web:".to_owned());
                told.extend(lines(&hits));
            }
            Err(error) => told.push(format!("Web: failed, {}", one_line(&error.to_string()))),
        }
        Ok(ToolOutput { text: told.join("\n"), sources, ..ToolOutput::default() })
    }
}

fn late<T>(limit: Duration) -> Result<T, ToolError> {
    Err(HttpFailure::TimedOut { after: limit }.into())
}

impl Half {
    async fn entity(&self, text: &str, time: Duration) -> Result<Option<Entity>, ToolError> {
        match self {
            Half::Wiki(wiki, reader) => of_wiki(wiki, text, reader.within_time(time / 2)).await,
            Half::File(entities, page_url) => Ok(entities.link(text).map(|page| {
                let place = page.url.clone().or_else(|| {
                    let title = utf8_percent_encode(&page.title, PLAIN).to_string();
                    page_url.as_ref().map(|url| url.replace(TITLE, &title))
                });
                entity(page.title.clone(), place.and_then(|url| Url::parse(&url).ok()), &page.text, Vec::new())
            })),
        }
    }
}

/// The beginning of a page's text as a description, and as a source if the page has a URL.
fn entity(title: String, url: Option<Url>, text: &str, sections: Vec<String>) -> Entity {
    let spans = sentence_spans(text);
    let end = spans.iter().take(SENTENCES).next_back().map_or(0, |span| span.end);
    let start = spans.first().map_or(0, |span| span.start);
    let lead = text.get(start..end).unwrap_or_default();
    let file = url.as_ref().and_then(|url| address::named(url, MAX_SOURCE_PATH_BYTES));
    let source = file.map(|file| Source {
        file,
        title: title.clone(),
        start: start as u64,
        end: end as u64,
        text: lead.to_owned(),
        ..Source::default()
    });
    Entity { description: one_line(lead), title, url, sections, sources: source.into_iter().collect() }
}

async fn of_wiki(wiki: &Wiki, text: &str, reader: Reader) -> Result<Option<Entity>, ToolError> {
    let mut names: Vec<Mention> = Vec::new();
    for mention in mentions(text) {
        let title = mention.name.len() <= 255 && !mention.name.contains(['|', '#', '<', '>', '[', ']', '{', '}']);
        if title && names.len() < MOST_NAMES && !names.iter().any(|known| known.name == mention.name) {
            names.push(mention);
        }
    }
    let titles: Vec<&str> = names.iter().map(|mention| mention.name.as_str()).collect();
    let asked = async { if titles.is_empty() { Ok(Vec::new()) } else { wiki.pages(&titles).await } };
    let (pages, hits) = tokio::join!(asked, wiki.search(text, 5));
    let (pages, hits) = (pages?, hits?);
    let mut best: Option<(f64, WikiPage)> = None;
    for page in pages {
        let called = page.redirected.as_deref().unwrap_or(&page.title);
        let Some(mention) = names.iter().find(|mention| fold(&mention.name) == fold(called)) else { continue };
        let hit = hits.iter().find(|hit| hit.title == page.title);
        let score = score(mention, text, hit.map_or("", |hit| &hit.summary)) + if hit.is_some() { FOUND } else { 0.0 };
        if best.as_ref().is_none_or(|(most, _)| score > *most) {
            best = Some((score, page));
        }
    }
    let page = match (best, hits.into_iter().next()) {
        (Some((_, page)), _) => page,
        (None, Some(hit)) => {
            let Ok(url) = Url::parse(&hit.url) else { return Ok(None) };
            WikiPage { title: hit.title, url, redirected: None }
        }
        (None, None) => return Ok(None),
    };
    let parsed = wiki.parsed(&page, reader).await?;
    // the infobox comes last, so the first section is the page's beginning, unless there is no other
    let begins = parsed.document.sections.first().filter(|section| section.heading.as_deref() != Some(INFOBOX));
    let lead = begins.map_or("", |section| parsed.document.section_text(section));
    Ok(Some(entity(page.title, Some(page.url), lead, parsed.sections)))
}
