//! What has the adapters: the engine of this process, or a server that loads them on request.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use autoact_model::{AdapterVersion, Backend, Engine};
use autoact_openai::Remote;
use autoact_registry::AdapterFiles;
use tokio::runtime::Handle;

use crate::registry::Refusal;

/// How long an adapter that nobody of this agent speaks with stays on a server: other agents of the
/// role may still speak with it.
const GRACE: Duration = Duration::from_secs(60);

/// Loads and unloads adapters by name. What a name stands for never changes.
pub(crate) trait Host: Debug + Send + Sync {
    /// SHA-256 digest (hex) of the base's weights; `None` if it cannot be known.
    fn base_digest(&self) -> Option<&str>;

    /// The adapter of this name, if it is loaded.
    fn loaded(&self, name: &str) -> Option<AdapterVersion>;

    /// Loads the PEFT directory `path`. Blocks while files are read or a server loads.
    fn load(&self, name: &str, path: &Path) -> Result<AdapterVersion, Refusal>;

    /// Nobody speaks with the adapter any more. Does not block.
    fn unload(&self, name: &str);
}

impl Host for Engine {
    fn base_digest(&self) -> Option<&str> {
        Some(&self.info().digest)
    }

    fn loaded(&self, name: &str) -> Option<AdapterVersion> {
        self.adapters().into_iter().find(|adapter| adapter.name == name)
    }

    fn load(&self, name: &str, path: &Path) -> Result<AdapterVersion, Refusal> {
        self.load_adapter(name, path).map_err(|source| Refusal::Load { name: name.to_owned(), source: source.into() })
    }

    fn unload(&self, name: &str) {
        self.unload_adapter(name);
    }
}

/// A server that loads adapters while it serves (vLLM with `VLLM_ALLOW_RUNTIME_LORA_UPDATING`).
#[derive(Debug)]
pub(crate) struct ServerHost {
    remote: Arc<Remote>,
    runtime: Handle,
    /// The registry's directory here, and where the server sees it.
    seen: (PathBuf, PathBuf),
    /// What this agent speaks with.
    loaded: Arc<Mutex<Loaded>>,
    grace: Duration,
}

type Loaded = BTreeMap<String, AdapterVersion>;

impl ServerHost {
    /// Needs a tokio runtime, on which the server is asked.
    pub(crate) fn new(remote: Arc<Remote>, registry: &Path, seen_as: &Path) -> ServerHost {
        let seen_as = if seen_as.as_os_str().is_empty() { registry } else { seen_as };
        let seen = (registry.to_owned(), seen_as.to_owned());
        ServerHost { remote, runtime: Handle::current(), seen, loaded: Arc::default(), grace: GRACE }
    }

    /// The server's path of a directory in the registry.
    fn seen(&self, path: &Path) -> PathBuf {
        let (here, there) = &self.seen;
        let path = path.strip_prefix(here).map_or_else(|_| path.to_owned(), |within| there.join(within));
        std::path::absolute(&path).unwrap_or(path)
    }
}

fn lock(loaded: &Mutex<Loaded>) -> std::sync::MutexGuard<'_, Loaded> {
    loaded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host for ServerHost {
    /// Servers do not say what weights they have.
    fn base_digest(&self) -> Option<&str> {
        None
    }

    fn loaded(&self, name: &str) -> Option<AdapterVersion> {
        lock(&self.loaded).get(name).cloned()
    }

    fn load(&self, name: &str, path: &Path) -> Result<AdapterVersion, Refusal> {
        // of the files here: the server says nothing of those that it read
        let AdapterFiles { digest, activated } = autoact_registry::adapter_files(path)?;
        if activated {
            return Err(Refusal::Activated { name: name.to_owned(), path: path.to_owned() });
        }
        let seen = self.seen(path).display().to_string();
        let loaded = self.runtime.block_on(self.remote.load_adapter(name, &seen));
        loaded.map_err(|error| Refusal::Server { name: name.to_owned(), path: seen, reason: error.to_string() })?;
        let version = AdapterVersion { name: name.to_owned(), digest };
        lock(&self.loaded).insert(name.to_owned(), version.clone());
        Ok(version)
    }

    fn unload(&self, name: &str) {
        if lock(&self.loaded).remove(name).is_none() {
            return;
        }
        let (remote, loaded, name, grace) = (Arc::clone(&self.remote), Arc::clone(&self.loaded), name.to_owned(), self.grace);
        drop(self.runtime.spawn(async move {
            tokio::time::sleep(grace).await;
            if lock(&loaded).contains_key(&name) {
                return;
            }
            match remote.unload_adapter(&name).await {
                Ok(()) => tracing::debug!(adapter = name, "adapter unloaded from the server"),
                Err(error) => tracing::warn!(adapter = name, %error, "the server did not unload an adapter"),
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use autoact_model::{EngineOptions, ModelDir};
    use autoact_openai::RemoteOptions;
    use autoact_testkit::{OpenAiOptions, OpenAiServer, poll_until};

    use super::*;
    use crate::testing::tiny_model;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_unloads_what_nobody_has_taken_again() {
        let model = tiny_model("llama3").unwrap();
        let options = EngineOptions { threads: 1, ..EngineOptions::default() };
        let engine = Arc::new(Engine::start(&ModelDir::open(model.path()).unwrap(), options).unwrap());
        let server = OpenAiServer::of_engine(Arc::clone(&engine), OpenAiOptions::default()).await.unwrap();
        let remote = Remote::connect(RemoteOptions::new(server.url(), server.base())).await.unwrap();
        let host = ServerHost::new(Arc::new(remote), model.path(), Path::new(""));
        let host = Arc::new(ServerHost { grace: Duration::from_millis(50), ..host });
        let path = model.path().join("adapter");
        let load = |name: &'static str| {
            let (host, path) = (Arc::clone(&host), path.clone());
            async move { tokio::task::spawn_blocking(move || host.load(name, &path)).await.unwrap() }
        };
        let digest = load("plan@a").await.unwrap().digest;
        assert_eq!((host.loaded("plan@a").unwrap().digest, digest.len()), (digest.clone(), 64));
        assert_eq!(engine.adapters()[0].digest, digest, "of the same files");
        // taken again: it stays, and another agent that loads it is no error
        host.unload("plan@a");
        load("plan@a").await.unwrap();
        load("plan@b").await.unwrap();
        host.unload("plan@b");
        let gone = async || engine.adapters().iter().all(|adapter| adapter.name != "plan@b").then_some(());
        poll_until(Duration::from_secs(60), "the adapter to go", gone).await.unwrap();
        assert!(engine.adapters().iter().any(|adapter| adapter.name == "plan@a"));
        host.unload("never loaded");
        // it would be applied to every token
        let activated = tokio::task::spawn_blocking({
            let (host, path) = (Arc::clone(&host), autoact_testkit::files::root().join("tests/golden/fixtures/llama2/activated"));
            move || host.load("plan@activated", &path)
        });
        let refused = activated.await.unwrap().unwrap_err();
        assert!(refused.to_string().contains("`plan@activated`"), "{refused}");
        assert!(engine.adapters().iter().all(|adapter| adapter.name != "plan@activated"));
        let missing = tokio::task::spawn_blocking({
            let host = Arc::clone(&host);
            move || host.load("plan@c", Path::new("no/such"))
        });
        assert!(matches!(missing.await.unwrap(), Err(Refusal::Registry(_))));
    }
}
