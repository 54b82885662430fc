//! Reads libraries, and keeps what is costly to reach while entries stay the same.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autoact_http_tools::HttpClient;
use autoact_mcp_tools::McpServer;
use autoact_tools::{Kinds, Knowledge, LibraryError, Preset, Tool, ToolLibrary, ToolSet};
use autoact_trajectory::{Effect, ToolSpec};

use crate::{http, mcp, openapi};

/// How long a document that was fetched is believed.
const DOCUMENT_AGE: Duration = Duration::from_secs(600);

/// Reads libraries with tools that are elsewhere.
pub struct Sources {
    client: HttpClient,
    kept: Mutex<HashMap<String, Kept>>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// What an entry gave the last time.
struct Kept {
    set: ToolSet,
    server: Option<(McpServer, u64)>,
    at: Instant,
    /// Whether the library that is being read has the entry.
    used: bool,
}

impl Kept {
    /// Whether the server said that its tools changed.
    fn told(&self) -> bool {
        self.server.as_ref().is_some_and(|(server, changes)| *server.changes().borrow() != *changes)
    }

    /// Whether asking again would say the same.
    fn is_fresh(&self) -> bool {
        let recent = self.server.is_some() || self.at.elapsed() < DOCUMENT_AGE;
        recent && !self.told() && self.set.out_of_service.is_none()
    }
}

impl Sources {
    /// Reads by this client: its secrets, certificates and runtime.
    pub fn new(client: HttpClient) -> Sources {
        Sources { client, kept: Mutex::default() }
    }

    /// The library of a file and of a second one, which need not exist. Servers and documents of
    /// entries that are as they were the last time are not asked again, unless they were out of
    /// service. Call it on a thread that may wait.
    ///
    /// # Errors
    /// The mistakes of the files. That a set cannot be reached is none.
    pub fn library(&self, path: &Path, added: Option<&Path>, knowledge: Knowledge) -> Result<ToolLibrary, LibraryError> {
        self.kept().values_mut().for_each(|kept| kept.used = false);
        let library = ToolLibrary::open(path, added, knowledge, self)?;
        self.kept().retain(|_, kept| kept.used);
        Ok(library)
    }

    /// Whether a server said that its tools changed: a reason to read the library again.
    pub fn has_news(&self) -> bool {
        self.kept().values().any(Kept::told)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(&self, key: &str) -> Option<ToolSet> {
        let mut all = self.kept();
        let kept = all.get_mut(key)?;
        kept.used = true;
        kept.is_fresh().then(|| kept.set.clone())
    }

    fn server(&self, key: &str, entry: toml::Table, base: Option<&Path>) -> Result<ToolSet, Vec<String>> {
        let accepted = entry.get("digest").and_then(toml::Value::as_str).map(str::to_owned);
        // one that is connected stays so: its program may have a state
        let connected = self.kept().get(key).and_then(|kept| kept.server.as_ref().map(|(server, _)| server.clone()));
        let server = match connected {
            Some(server) => server,
            None => mcp::server(entry, base, &self.client)?.0,
        };
        let changes = *server.changes().borrow();
        let set = mcp::set(&server, accepted.as_deref(), &self.client);
        self.keep(key, &set, Some((server, changes)));
        Ok(set)
    }

    fn keep(&self, key: &str, set: &ToolSet, server: Option<(McpServer, u64)>) {
        self.kept().insert(key.to_owned(), Kept { set: set.clone(), server, at: Instant::now(), used: true });
    }
}

impl Kinds for Sources {
    fn kinds(&self) -> &'static [&'static str] {
        &["http", "browse_website", "browse_wiki", "web_search", "hybrid_search", "weather"]
    }

    fn preset(&self, kind: &str) -> Option<&'static Preset> {
        autoact_web_tools::preset(kind)
    }

    fn effect(&self, _: &str, run: &toml::Table) -> Option<Effect> {
        http::effect(run)
    }

    fn tool(&self, kind: &str, run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
        match kind {
            "http" => http::tool(run, spec, base, &self.client),
            _ => autoact_web_tools::tool(kind, run, spec, base, &self.client),
        }
    }

    fn sections(&self) -> &'static [&'static str] {
        &[openapi::SECTION, mcp::SECTION]
    }

    fn set(&self, section: &str, entry: toml::Table, base: Option<&Path>) -> Result<ToolSet, Vec<String>> {
        if section == openapi::SECTION && !openapi::is_remote(&entry) {
            return openapi::set(entry, base, &self.client);
        }
        let key = format!("{section} {entry} {base:?}");
        if let Some(set) = self.remembered(&key) {
            return Ok(set);
        }
        if section == mcp::SECTION {
            return self.server(&key, entry, base);
        }
        let set = openapi::set(entry, base, &self.client)?;
        self.keep(&key, &set, None);
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_made_kind_is_one_of_entries() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let client = HttpClient::new(runtime.handle().clone(), autoact_http_tools::HttpClientOptions::default()).unwrap();
        let sources = Sources::new(client);
        for preset in autoact_web_tools::presets() {
            assert!(sources.kinds().contains(&preset.kind), "{}", preset.kind);
            assert!(sources.preset(preset.kind).is_some());
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tools.toml");
        let entry = "[[tool]]\nname = \"Browse\"\nrun = { kind = \"browse_website\", hosts = [\"example.org\"] }\n";
        let finish = "[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\nrun = { kind = \"finish\" }\n";
        std::fs::write(&path, format!("{entry}{finish}")).unwrap();
        let library = sources.library(&path, None, Knowledge::new(None, None)).unwrap();
        assert_eq!(library.spec("Browse").unwrap().effect, Effect::ReadOnly);
        assert!(library.spec("Browse").unwrap().usage.starts_with("Browse{"));
        // nothing else has to be written
        assert_eq!(autoact_web_tools::presets().filter(|preset| preset.schema.is_some()).count(), 5);
    }
}
