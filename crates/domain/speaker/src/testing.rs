//! For tests only. A scripted model: a closure from request to text stands in for a model; no
//! service can be configured to use it. And tools to choose from, and tiny random checkpoints to
//! load.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use autoact_model::{
    AdapterVersion, Backend, BackendInfo, ChatTemplate, FinishReason, GenerateError, GenerateRequest, GenerateStream, Generated,
};
use autoact_trajectory::ToolSpec;
use futures::FutureExt;
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// A measurement asks without end: only so many requests are kept.
const MOST_REQUESTS: usize = 4096;

type Script = dyn Fn(&GenerateRequest) -> Result<String, GenerateError> + Send + Sync;

/// Answers every request with what its script says, word by word.
pub struct ScriptedBackend {
    info: BackendInfo,
    adapters: Vec<AdapterVersion>,
    template: Option<ChatTemplate>,
    script: Box<Script>,
    pace: Option<Arc<Semaphore>>,
    requests: Mutex<VecDeque<GenerateRequest>>,
    cancelled: Arc<AtomicUsize>,
}

impl ScriptedBackend {
    /// A backend without adapters that says what `script` says.
    pub fn new(script: impl Fn(&GenerateRequest) -> Result<String, GenerateError> + Send + Sync + 'static) -> ScriptedBackend {
        ScriptedBackend {
            info: BackendInfo { name: "scripted".into(), digest: "0".repeat(64), context_length: 4096, chat_template: false },
            adapters: Vec::new(),
            template: None,
            script: Box::new(script),
            pace: None,
            requests: Mutex::default(),
            cancelled: Arc::default(),
        }
    }

    /// Always the same text.
    pub fn saying(text: &'static str) -> ScriptedBackend {
        ScriptedBackend::new(move |_| Ok(text.to_owned()))
    }

    /// With an adapter of this name.
    #[must_use]
    pub fn with_adapter(mut self, name: &str) -> ScriptedBackend {
        self.adapters.push(AdapterVersion { name: name.to_owned(), digest: "1".repeat(64) });
        self
    }

    /// That wants to be asked with this chat template.
    #[must_use]
    pub fn with_template(mut self, template: ChatTemplate) -> ScriptedBackend {
        self.info.chat_template = true;
        self.template = Some(template);
        self
    }

    /// Every word waits for a permit: the test decides how fast the model writes.
    #[must_use]
    pub fn paced(mut self, pace: Arc<Semaphore>) -> ScriptedBackend {
        self.pace = Some(pace);
        self
    }

    /// What was asked so far, of very many the latest.
    pub fn requests(&self) -> Vec<GenerateRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// How many replies were given up by their readers.
    pub fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl Backend for ScriptedBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn adapters(&self) -> Vec<AdapterVersion> {
        self.adapters.clone()
    }

    fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= MOST_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(request.clone());
        drop(requests);
        let text = (self.script)(&request)?;
        let (mut sender, stream) = GenerateStream::channel();
        let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        let shown = words.len().min(request.max_tokens);
        let finish = if shown < words.len() { FinishReason::Length } else { FinishReason::Grammar };
        let generated = Generated {
            text: words[..shown].concat(),
            finish,
            prompt_tokens: request.prompt.split_whitespace().count(),
            cached_prompt_tokens: 0,
            completion_tokens: shown,
            drafted_tokens: 0,
            accepted_tokens: 0,
            queue: Duration::from_micros(1),
            prefill: Duration::from_micros(2),
            decode: Duration::from_micros(3),
            adapter: self.adapters.iter().find(|adapter| Some(&adapter.name) == request.adapter.as_ref()).cloned(),
            model: self.info.name.clone(),
            scores: None,
        };
        let (pace, cancelled) = (self.pace.clone(), Arc::clone(&self.cancelled));
        let write = async move {
            for word in &words[..shown] {
                while let Some(pace) = &pace {
                    let permit = tokio::time::timeout(Duration::from_millis(10), pace.acquire()).await;
                    if let Ok(Ok(permit)) = permit {
                        permit.forget();
                        break;
                    }
                    if sender.is_cancelled() {
                        break;
                    }
                }
                if sender.is_cancelled() {
                    cancelled.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                sender.text(word);
            }
            sender.end(Ok(generated));
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(write)),
            // code without a runtime waits for the whole reply anyway, and without a pace nothing
            // waits
            Err(_) => drop(write.now_or_never()),
        }
        Ok(stream)
    }
}

/// The tools `Retrieve` and `Finish`.
pub fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, usage: &str| ToolSpec {
        definition: format!("The tool {name}."),
        usage: usage.to_owned(),
        timeout: Duration::from_secs(10),
        max_observation_bytes: 4096,
        ..ToolSpec::new(name)
    };
    vec![tool("Retrieve", "Retrieve[title]"), tool("Finish", "Finish[answer]")]
}

/// A copy of a tiny random checkpoint of `tests/golden/fixtures` that reads longer prompts: the
/// fixtures' context is too short for a whole reply. Its weights are random, so only the grammar
/// gives its replies a form.
pub fn tiny_model(fixture: &str) -> std::io::Result<TempDir> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/fixtures").join(fixture);
    let copy = tempfile::tempdir()?;
    copy_files(&source, copy.path())?;
    std::fs::create_dir(copy.path().join("adapter"))?;
    copy_files(&source.join("adapter"), &copy.path().join("adapter"))?;
    let config = copy.path().join("config.json");
    let text = std::fs::read_to_string(&config)?;
    std::fs::write(&config, text.replace("\"max_position_embeddings\": 256", "\"max_position_embeddings\": 2048"))?;
    Ok(copy)
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
