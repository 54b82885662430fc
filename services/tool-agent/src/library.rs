//! The tools of the service: read at its start, and again when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use autoact_base::FileWatch;
use autoact_http_tools::{HttpClient, HttpClientOptions};
use autoact_sandbox::Tier;
use autoact_service::{StartError, Tasks};
use autoact_tool_sources::Sources;
use autoact_tools::{Collections, Corpus, Knowledge, LibraryError, ToolLibrary};
use autoact_wire::client::Connector;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::collections::RemoteCollections;
use crate::config::ToolSettings;
use crate::told;

/// How often sets of tools are asked again that are out of service, or that can change elsewhere.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The library in use.
pub struct Tools {
    current: RwLock<Current>,
    origin: Option<Origin>,
}

/// A library, and the digest of what is told of it. It is made once, where the library is read:
/// gateways ask every few seconds.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) library: Arc<ToolLibrary>,
    pub(crate) digest: Arc<str>,
}

impl Current {
    fn new(library: Arc<ToolLibrary>) -> Current {
        let digest = told::digest(&library).into();
        Current { library, digest }
    }
}

/// Where the library is read from.
#[derive(Clone)]
struct Origin {
    file: PathBuf,
    own: Option<PathBuf>,
    knowledge: Knowledge,
    sources: Arc<Sources>,
}

impl From<Arc<ToolLibrary>> for Tools {
    /// Tools that never change.
    fn from(library: Arc<ToolLibrary>) -> Tools {
        Tools { current: RwLock::new(Current::new(library)), origin: None }
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
            Ok(Tools { current: RwLock::new(Current::new(Arc::new(library))), origin: Some(origin) })
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

    /// Reads the library again whenever its files change. One with mistakes is not taken: the last
    /// one stays in use, and the log says what is wrong.
    pub(crate) fn watch(self: &Arc<Self>, tasks: &Tasks) {
        let Some(origin) = self.origin.clone() else { return };
        let tools = Arc::clone(self);
        tasks.spawn("tool library", async move {
            let mut watch = FileWatch::new(files(&origin, &tools.library()));
            let mut asked = Instant::now();
            let mut interval = tokio::time::interval(FileWatch::PERIOD);
            loop {
                interval.tick().await;
                let library = tools.library();
                let changed = watch.look_at(files(&origin, &library));
                let due = !library.sets().is_empty() && asked.elapsed() >= ASK_AGAIN;
                if !changed && !due && !origin.sources.has_news() {
                    continue;
                }
                asked = Instant::now();
                let origin = origin.clone();
                let read = tokio::task::spawn_blocking(move || {
                    let library = origin.read().map_err(|error| error.to_string())?;
                    check_sandboxes(&library).map_err(|error| error.to_string())?;
                    Ok::<_, String>(Current::new(Arc::new(library)))
                });
                let outcome = match read.await {
                    Ok(Ok(read)) => {
                        if changed || state(&read.library) != state(&library) {
                            tracing::info!(tools = read.library.specs().len(), "the tool library was read again");
                            report(&read.library);
                        }
                        // files of sets may be other ones now
                        *tools.current.write().unwrap_or_else(PoisonError::into_inner) = read;
                        "read"
                    }
                    Ok(Err(error)) => {
                        tracing::error!(error, "the tool library has mistakes; the last one stays in use");
                        "refused"
                    }
                    Err(error) => {
                        tracing::error!(%error, "reading the tool library broke; the last one stays in use");
                        "refused"
                    }
                };
                metrics::counter!("autoact_tool_library_reads_total", "outcome" => outcome).increment(1);
            }
        });
    }
}

impl Origin {
    fn read(&self) -> Result<ToolLibrary, LibraryError> {
        self.sources.library(&self.file, self.own.as_deref(), self.knowledge.clone())
    }
}

/// The files that the library is made of.
fn files(origin: &Origin, library: &ToolLibrary) -> Vec<PathBuf> {
    let of_sets = library.sets().iter().flat_map(|set| set.files.iter());
    [&origin.file].into_iter().chain(&origin.own).chain(of_sets).cloned().collect()
}

/// What of the sets is worth a line in the log when it changes.
fn state(library: &ToolLibrary) -> Vec<(&str, usize, Option<&str>)> {
    library.sets().iter().map(|set| (set.name.as_str(), set.tools.len(), set.out_of_service.as_deref())).collect()
}

fn report(library: &ToolLibrary) {
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
fn check_sandboxes(library: &ToolLibrary) -> Result<(), StartError> {
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
