//! The adapter an agent speaks with: in the engine as long as anybody speaks with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use autoact_model::AdapterVersion;
use autoact_registry::{CALIBRATION_FILE, sha256};
use autoact_trajectory::Calibration;

use crate::host::Host;
use crate::registry::Refusal;

/// What an agent speaks with. Held by the agent and by every reply that began with it; when the
/// last of them is done, the engine unloads it.
#[derive(Debug)]
pub(crate) struct Voice {
    /// The adapter's name in the backend; `None`: the base speaks.
    pub(crate) name: Option<String>,
    /// What its judgements are worth, where it was calibrated.
    pub(crate) calibration: Option<Arc<Calibration>>,
    /// SHA-256 digest (hex) of the calibration's file, as it was read.
    pub(crate) calibration_digest: Option<String>,
    /// Where it came from the registry's way: what keeps it loaded.
    _kept: Option<Kept>,
}

impl Voice {
    /// The base, or an adapter that the backend has for good.
    pub(crate) fn fixed(name: Option<String>) -> Voice {
        Voice { name, calibration: None, calibration_digest: None, _kept: None }
    }
}

/// The adapters of an engine or a server, with how many voices use each.
#[derive(Debug)]
pub(crate) struct Adapters {
    host: Arc<dyn Host>,
    uses: Mutex<BTreeMap<String, usize>>,
}

impl Adapters {
    pub(crate) fn new(host: Arc<dyn Host>) -> Adapters {
        Adapters { host, uses: Mutex::default() }
    }

    pub(crate) fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    /// A voice with the adapter in `path`, known as `name`. One that still speaks under this name
    /// is taken as it is: what a name stands for never changes. Blocks while files are read. One
    /// caller at a time.
    pub(crate) fn voice(self: &Arc<Adapters>, name: &str, path: &Path) -> Result<(Voice, AdapterVersion), Refusal> {
        let (calibration, calibration_digest) = calibration(path)?.unzip();
        let kept = self.keep(name);
        let version = match self.host.loaded(name) {
            Some(version) => version,
            None => self.host.load(name, path)?,
        };
        Ok((Voice { name: Some(name.to_owned()), calibration: calibration.map(Arc::new), calibration_digest, _kept: Some(kept) }, version))
    }

    fn keep(self: &Arc<Adapters>, name: &str) -> Kept {
        *self.lock().entry(name.to_owned()).or_default() += 1;
        Kept { adapters: Arc::clone(self), name: name.to_owned() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, usize>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calibration in an adapter's directory, with the digest of its file; `None`: there is none.
fn calibration(adapter: &Path) -> Result<Option<(Calibration, String)>, Refusal> {
    let Some(bytes) = autoact_registry::calibration(adapter)? else { return Ok(None) };
    match Calibration::parse(&String::from_utf8_lossy(&bytes)) {
        Ok(read) => Ok(Some((read, sha256(&bytes)))),
        Err(error) => Err(Refusal::Calibration { path: adapter.join(CALIBRATION_FILE), reason: error.to_string() }),
    }
}

/// One use of a loaded adapter.
#[derive(Debug)]
struct Kept {
    adapters: Arc<Adapters>,
    name: String,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // within the lock: an adapter that is being asked for again is either kept, or gone before
        // it is loaded anew
        let mut uses = self.adapters.lock();
        let Some(count) = uses.get_mut(&self.name) else { return };
        *count -= 1;
        if *count == 0 {
            uses.remove(&self.name);
            self.adapters.host.unload(&self.name);
            tracing::debug!(adapter = self.name, "adapter unloaded");
        }
    }
}

#[cfg(test)]
mod tests {
    use autoact_model::{Backend, Engine, EngineOptions, ModelDir};

    use super::*;
    use crate::agent::{Agent, AgentOptions};
    use crate::testing::{history, tiny_model};

    fn names(engine: &Engine) -> Vec<String> {
        engine.adapters().into_iter().map(|adapter| adapter.name).collect()
    }

    #[tokio::test]
    async fn an_adapter_stays_until_its_last_reply_and_no_longer() {
        let model = tiny_model("llama3").unwrap();
        let path = model.path().join("adapter");
        let engine =
            Engine::start(&ModelDir::open(model.path()).unwrap(), EngineOptions { threads: 1, ..EngineOptions::default() }).unwrap();
        let engine = Arc::new(engine);
        let adapters = Arc::new(Adapters::new(engine.clone()));
        let (voice, version) = adapters.voice("plan@a", &path).unwrap();
        assert_eq!(version.name, "plan@a");
        let agent = Arc::new(Agent::with_voice(autoact_trajectory::Role::Plan, engine.clone(), voice, AgentOptions::default()));
        let request = || crate::Request { trajectory: Some(history(vec![])), ..crate::Request::default() };

        // two replies that have begun with `a`
        let (mut first, second) = (agent.speak(request()).await.unwrap(), agent.speak(request()).await.unwrap());
        agent.switch(adapters.voice("plan@b", &path).unwrap().0);
        assert_eq!(names(&engine), ["plan@a", "plan@b"]);
        drop(second);
        assert_eq!(names(&engine), ["plan@a", "plan@b"], "one still speaks");

        // back to `a` while it speaks: the same one goes on
        agent.switch(adapters.voice("plan@a", &path).unwrap().0);
        assert_eq!(names(&engine), ["plan@a"]);
        let mut spoke = None;
        while let Some(spoken) = first.next().await {
            if let autoact_speaker::ReplyEvent::Done(generated) = spoken.unwrap() {
                spoke = generated.adapter.map(|adapter| adapter.name);
            }
        }
        assert_eq!(spoke.as_deref(), Some("plan@a"));
        drop(first);
        assert_eq!(names(&engine), ["plan@a"], "the agent speaks with it");

        agent.switch(Voice::fixed(None));
        assert_eq!(names(&engine), [""; 0]);
        assert!(adapters.voice("plan@c", Path::new("no/such/adapter")).is_err());
        assert!(adapters.lock().is_empty());
    }

    #[test]
    fn a_calibration_lies_beside_its_adapter() {
        let model = tiny_model("llama3").unwrap();
        let path = model.path().join("adapter");
        let engine =
            Engine::start(&ModelDir::open(model.path()).unwrap(), EngineOptions { threads: 1, ..EngineOptions::default() }).unwrap();
        let engine = Arc::new(engine);
        let adapters = Arc::new(Adapters::new(engine.clone()));
        assert_eq!(adapters.voice("reflect", &path).unwrap().0.calibration, None);
        let json = r#"{"format":1,"threshold":0.9,"precision":0.97,"intercept":1.5,"terms":[],"histories":40}"#;
        std::fs::write(path.join(CALIBRATION_FILE), json).unwrap();
        let read = adapters.voice("reflect", &path).unwrap().0.calibration.unwrap();
        assert_eq!((read.threshold, read.histories), (0.9, 40));
        std::fs::write(path.join(CALIBRATION_FILE), json.replace("0.9,", "1.9,")).unwrap();
        assert!(matches!(adapters.voice("reflect", &path), Err(Refusal::Calibration { .. })));
        assert_eq!(names(&engine), [""; 0]);
    }
}
