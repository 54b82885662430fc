//! Kinds of tools that this crate does not have itself: requests over HTTP, and sets of tools that
//! come from elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_trajectory::{Effect, ToolBackground, ToolSpec};

use crate::preset::Preset;
use crate::tool::Tool;

/// Makes the tools of entries whose kinds another crate has.
pub trait Kinds: Send + Sync {
    /// The kinds of single tools: what `kind` of a `[[tool]]` may be besides this crate's.
    fn kinds(&self) -> &'static [&'static str];

    /// What entries of a kind need not say; `None`: they say everything.
    fn preset(&self, _kind: &str) -> Option<&'static Preset> {
        None
    }

    /// What a tool does to the world whose entry does not say it, nor the kind's preset; `None`: the
    /// entry has to.
    fn effect(&self, kind: &str, run: &toml::Table) -> Option<Effect>;

    /// The tool of an entry. `run` has no `kind` any more.
    ///
    /// # Errors
    /// Every mistake of the entry.
    fn tool(&self, kind: &str, run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>>;

    /// The sections of sets, such as `openapi` for entries `[[openapi]]`.
    fn sections(&self) -> &'static [&'static str];

    /// The tools of a set. Runs on a thread that may wait.
    ///
    /// # Errors
    /// Every mistake of the entry. That its tools are not to be had now is no mistake:
    /// [`ToolSet::out_of_service`].
    fn set(&self, section: &str, entry: toml::Table, base: Option<&Path>) -> Result<ToolSet, Vec<String>>;
}

/// A set of tools that comes from elsewhere: the operations of an OpenAPI document, the tools of an
/// MCP server.
#[derive(Clone)]
pub struct ToolSet {
    /// The entry's name.
    pub name: String,
    /// The section that it stands in.
    pub section: &'static str,
    /// Its tools; none while it is out of service.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Why its tools are not to be had.
    pub out_of_service: Option<String>,
    /// Its tools that wait to be accepted.
    pub withheld: Vec<Arc<dyn Tool>>,
    /// The tools that cannot be imported, and why.
    pub skipped: Vec<(String, String)>,
    /// What is told of the set to its operator, such as secrets that are missing.
    pub notes: Vec<String>,
    /// The digest of its definitions as they are now: what an entry's `digest` accepts.
    pub digest: Option<String>,
    /// Files beside the library's that it was made of.
    pub files: Vec<PathBuf>,
    /// What else is known of its tools, by name.
    pub background: BTreeMap<String, ToolBackground>,
}

impl ToolSet {
    /// A set without tools.
    pub fn new(section: &'static str, name: impl Into<String>) -> ToolSet {
        ToolSet {
            name: name.into(),
            section,
            tools: Vec::new(),
            out_of_service: None,
            withheld: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
            digest: None,
            files: Vec::new(),
            background: BTreeMap::new(),
        }
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("ToolSet")
            .field("name", &self.name)
            .field("tools", &tools)
            .field("out_of_service", &self.out_of_service)
            .finish_non_exhaustive()
    }
}

/// This crate's kinds and no others.
pub(crate) struct OwnKinds;

impl Kinds for OwnKinds {
    fn kinds(&self) -> &'static [&'static str] {
        &[]
    }

    fn effect(&self, _: &str, _: &toml::Table) -> Option<Effect> {
        None
    }

    fn tool(&self, kind: &str, _: toml::Table, _: ToolSpec, _: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
        Err(vec![format!("the kind `{kind}` is unknown")])
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn set(&self, section: &str, _: toml::Table, _: Option<&Path>) -> Result<ToolSet, Vec<String>> {
        Err(vec![format!("the section `{section}` is unknown")])
    }
}

/// Kinds that only tool-agent runs: where there is no network to use, they are refused by name.
pub(crate) const ELSEWHERE: [&str; 3] = ["http", "openapi", "mcp"];

/// The same for ready-made tools that read the web.
pub(crate) const WEB: [&str; 5] = ["browse_website", "browse_wiki", "web_search", "hybrid_search", "weather"];
