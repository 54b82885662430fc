//! The tools of the service: read at its start, and again when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use autoact_base::FileWatch;
use autoact_http_tools::{HttpClient, HttpClientOptions};
use autoact_sandbox::Tier;
use autoact_service::{StartError, Tasks};
use autoact_tool_sources::Sources;
use autoact_tools::{Collections, Corpus, Knowledge, LibraryError, ToolLibrary};
use autoact_wire::client::Connector;
use tokio::runtime::Handle;

use crate::collections::RemoteCollections;
use crate::config::ToolSettings;
use crate::told;
use crate::watch::{Reading, Watcher};

/// The library in use.
pub struct Tools {
    current: RwLock<Current>,
    /// Taken by who watches.
    watcher: Mutex<Option<Watcher>>,
}

/// A library, and the digest of what is told of it. It is made once, where the library is read:
/// gateways ask every few seconds.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) library: Arc<ToolLibrary>,
    pub(crate) digest: Arc<str>,
}

impl Current {
    pub(crate) fn new(library: Arc<ToolLibrary>) -> Current {
        let digest = told::digest(&library).into();
        Current { library, digest }
    }
}

/// Where the library is read from.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) file: PathBuf,
    pub(crate) own: Option<PathBuf>,
    pub(crate) knowledge: Knowledge,
    pub(crate) sources: Arc<Sources>,
}

impl From<Arc<ToolLibrary>> for Tools {
    /// Tools that never change.
    fn from(library: Arc<ToolLibrary>) -> Tools {
        Tools { current: RwLock::new(Current::new(library)), watcher: Mutex::default() }
    }
}

impl Tools {
    /// Reads the library that the settings name.
    pub(crate) async fn open(settings: &ToolSettings, connector: &Connector) -> Result<Tools, StartError> {
        let collections = match settings.memory.as_str() {
            "" => None,
            address => Some(Arc::new(RemoteCollections::new(connector, address).map_err(StartError::new)?) as Arc<dyn Collections>),
        };
        let client = HttpClient::new(Handle::current(), HttpClientOptions::from_environment());
        let sources = Arc::new(Sources::new(client.map_err(StartError::new)?));
        let (file, corpus) = (settings.tools.clone(), settings.corpus.clone());
        let own = Some(settings.own_tools.clone()).filter(|own| !own.as_os_str().is_empty());
        let opened = tokio::task::spawn_blocking(move || {
            let corpus = if corpus.as_os_str().is_empty() { None } else { Some((name(&corpus), open_corpus(&corpus)?)) };
            let origin = Origin { file, own, knowledge: Knowledge::new(corpus, collections), sources };
            let library = origin.read().map_err(|error| {
                StartError::because(format!("cannot open tools `{}`", origin.file.display()), &error)
                    .fix("set `--tools FILE` (or AUTOACT_TOOLS) to a tool library such as `corpora/atlas/tools.toml`")
            })?;
            check_sandboxes(&library)?;
            report(&library);
            // before the model is read, which takes time
            let watcher = Mutex::new(Some(Watcher::new(origin, &library)));
            Ok(Tools { current: RwLock::new(Current::new(Arc::new(library))), watcher })
        });
        opened.await.map_err(StartError::new)?
    }

    /// The library as it is now. A call keeps the one that it began with.
    pub(crate) fn library(&self) -> Arc<ToolLibrary> {
        self.current().library
    }

    /// The same with the digest of what is told of it.
    pub(crate) fn current(&self) -> Current {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes another one into use.
    pub(crate) fn replace(&self, library: Current) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = library;
    }

    /// Reads the library again whenever what it is made of changes.
    pub(crate) fn watch(self: &Arc<Self>, tasks: &Tasks) {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut watcher) = watcher else { return };
        let tools = Arc::clone(self);
        tasks.spawn("tool library", async move {
            let mut interval = tokio::time::interval(FileWatch::PERIOD);
            loop {
                interval.tick().await;
                let outcome = match watcher.look(&tools).await {
                    None => continue,
                    Some(Reading::Taken) => "read",
                    Some(Reading::Refused) => "refused",
                };
                metrics::counter!("autoact_tool_library_reads_total", "outcome" => outcome).increment(1);
            }
        });
    }
}

impl Origin {
    pub(crate) fn read(&self) -> Result<ToolLibrary, LibraryError> {
        self.sources.library(&self.file, self.own.as_deref(), self.knowledge.clone())
    }
}

pub(crate) fn report(library: &ToolLibrary) {
    for set in library.sets() {
        let (section, name) = (set.section, set.name.as_str());
        match &set.out_of_service {
            Some(why) => tracing::warn!(section, name, why, "a set of tools is out of service"),
            None => tracing::info!(section, name, tools = set.tools.len(), skipped = set.skipped.len(), "a set of tools is in service"),
        }
        for note in &set.notes {
            tracing::warn!(section, name, note, "a set of tools");
        }
    }
}

/// A tool whose sandbox is not to be had is refused here, not in the middle of a task.
pub(crate) fn check_sandboxes(library: &ToolLibrary) -> Result<(), StartError> {
    for (tool, sandbox) in library.sandboxes() {
        let tiers = Tier::probe().map_err(StartError::new)?;
        let tier = tiers.choose(sandbox.tier, sandbox.allow_lesser);
        let tier = tier.map_err(|error| StartError::because(format!("the tool `{tool}` cannot be confined"), &error))?;
        tracing::info!(tool, %tier, "a tool's program is confined");
    }
    Ok(())
}

fn open_corpus(path: &Path) -> Result<Arc<Corpus>, StartError> {
    let corpus = Corpus::load(path).map_err(|error| {
        StartError::because(format!("cannot open corpus `{}`", path.display()), &error)
            .fix("set `--corpus FILE` (or AUTOACT_CORPUS) to a file with one page `{\"title\": …, \"text\": …}` a line")
    })?;
    tracing::info!(corpus = %path.display(), pages = corpus.pages().len(), "corpus opened");
    Ok(Arc::new(corpus))
}

/// By this name tasks ask for the corpus beside collections: `atlas` for `atlas/pages.jsonl`, and
/// otherwise the file's.
fn name(corpus: &Path) -> String {
    let stem = corpus.file_stem().unwrap_or_default();
    let directory = corpus.parent().and_then(Path::file_name).filter(|_| stem == "pages");
    directory.unwrap_or(stem).to_string_lossy().into_owned()
}
