//! Ready-made tools that read the web.
//!
//! Each kind is a preset and a tool: [`kinds`], [`preset`], [`tool`]. All requests go through the
//! HTTP client of the HTTP tools: hosts and addresses are checked, also behind redirects, and sizes
//! and times are bounded. What is read is extractive: passages of a page stand in the observation as
//! they stand in the page's text, and are its sources.

mod address;
mod ask;
mod browse_website;
mod browse_wiki;
mod charset;
mod date;
mod engine;
mod entity;
mod hybrid_search;
mod links;
mod options;
mod page;
mod passages;
mod robots;
mod weather;
mod weather_text;
mod web;
mod web_search;
mod wiki;
mod wiki_html;

use std::path::Path;
use std::sync::Arc;

use autoact_http_tools::HttpClient;
use autoact_tools::{Preset, Tool};
use autoact_trajectory::ToolSpec;

/// Makes the tool of an entry, or tells its mistakes.
type Make = fn(run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>>;

/// One kind.
struct WebKind {
    preset: &'static Preset,
    make: Make,
}

/// All of them, in the order in which people are shown them.
const ALL: &[WebKind] = &[
    WebKind { preset: &browse_website::PRESET, make: browse_website::make },
    WebKind { preset: &browse_wiki::PRESET, make: browse_wiki::make },
    WebKind { preset: &web_search::PRESET, make: web_search::make },
    WebKind { preset: &hybrid_search::PRESET, make: hybrid_search::make },
    WebKind { preset: &weather::PRESET, make: weather::make },
];

/// The presets of all kinds.
pub fn presets() -> impl Iterator<Item = &'static Preset> {
    ALL.iter().map(|kind| kind.preset)
}

/// The preset of a kind.
pub fn preset(kind: &str) -> Option<&'static Preset> {
    presets().find(|preset| preset.kind == kind)
}

/// The tool of an entry. `run` has no `kind`, and only keys of the preset. Relative paths start from
/// `base`.
///
/// # Errors
/// Every mistake of the entry.
pub fn tool(kind: &str, run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    match ALL.iter().find(|known| known.preset.kind == kind) {
        Some(known) => (known.make)(run, spec, base, client),
        None => Err(vec![format!("the kind `{kind}` is unknown")]),
    }
}
