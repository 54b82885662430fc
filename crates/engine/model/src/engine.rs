//! The engine: a thread that runs the model, and the handle that services hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use autoact_kernels::{BLOCK, Format, KvFormat};
use autoact_lora::Adapter;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::backend::{AdapterVersion, Backend, BackendInfo, GenerateError, GenerateRequest, Owner};
use crate::known::Owned;
use crate::scores::Scoring;
use crate::sequence::Work;
use crate::state::{AtWork, EngineState, LoadedAdapter};
use crate::word_bias::TokenBias;
use crate::word_limit::TokenLimit;
use crate::worker::{Job, Threads, Worker};
use crate::{ChatTemplate, EngineOptions, GenerateStream, LoadError, ModelDir, Places, Prompt, Tokenizer, Transformer};
/// Places of the queue for jobs that are no requests.
const OTHER_JOBS: usize = 16;
/// Minimum time after which an overloaded engine may be called again.
const LEAST_RETRY: Duration = Duration::from_millis(50);

/// A model that serves requests. It is shared in an `Arc`; dropping the last handle ends its
/// thread.
pub struct Engine {
    info: BackendInfo,
    shared: Arc<EngineState>,
    adapters: RwLock<BTreeMap<String, Arc<LoadedAdapter>>>,
    template: Option<ChatTemplate>,
    jobs: SyncSender<Job>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Engine {
    /// Loads the model in `dir` and starts its thread. It blocks while weights are read, which
    /// takes seconds for a large model, so async code calls it through `spawn_blocking`.
    pub fn start(dir: &ModelDir, options: EngineOptions) -> Result<Self, LoadError> {
        let model = Transformer::load(dir, options.weights)?;
        let model = match options.kv {
            Some(kv) => model.with_kv(kv),
            None => model,
        };
        let tokenizer = dir.tokenizer()?;
        let template = dir.chat_template()?;
        let limit = model.config().context_length;
        let context_length = options.context_length.map_or(limit, |n| n.clamp(1, limit));
        let info = BackendInfo {
            name: options.name.clone().unwrap_or_else(|| dir.name().to_owned()),
            digest: dir.digest()?.to_owned(),
            context_length,
            chat_template: template.is_some(),
        };
        let places = options.queue.max(1).saturating_add(options.batch.max(1));
        let shared = Arc::new(EngineState {
            name: info.name.clone(),
            base_digest: dir.base_digest()?.to_owned(),
            model,
            tokenizer,
            context_length,
            places: Places::new(places),
            mean_micros: AtomicU64::new(0),
            at_work: AtWork::default(),
        });
        // the places bound the requests; what else is sent finds room beside them
        let (jobs, queue) = sync_channel(shared.places.most() + OTHER_JOBS);
        let threads = Threads::of(dir, options.threads);
        Worker::spawn(shared.clone(), queue, threads, &options)?;
        Ok(Self { info, shared, adapters: RwLock::default(), template, jobs })
    }

    /// Loads the PEFT adapter in `path` under `name` and replaces one with that name. Running
    /// requests keep the adapter that they started with. Blocks while files are read.
    pub fn load_adapter(&self, name: impl Into<String>, path: impl AsRef<Path>) -> Result<AdapterVersion, LoadError> {
        let adapter = Adapter::load(path)?;
        let bound = self.shared.model.bind(&adapter, Some(&self.shared.base_digest))?;
        let version = AdapterVersion { name: name.into(), digest: adapter.digest };
        let loaded = Arc::new(LoadedAdapter { version: version.clone(), bound });
        self.adapters.write().unwrap_or_else(PoisonError::into_inner).insert(version.name.clone(), loaded);
        Ok(version)
    }

    /// Unloads the adapter `name`. Returns false if there is none.
    pub fn unload_adapter(&self, name: &str) -> bool {
        self.adapters.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// Removes cached keys and values and the completions used for drafts. Running requests are not
    /// affected.
    pub fn clear_cache(&self) -> Result<(), GenerateError> {
        self.send(Job::ClearCache)
    }

    /// Bytes of keys and values, of running requests and of the prefix cache together.
    pub fn cache_bytes(&self) -> usize {
        let shape = self.shared.model.block_shape();
        shape.live() * shape.bytes()
    }

    /// The number format of the weights in matrix products.
    pub fn weights(&self) -> Format {
        self.shared.model.format()
    }

    /// The number format of keys and values.
    pub fn kv(&self) -> KvFormat {
        self.shared.model.kv_format()
    }

    /// Bytes of keys and values of one token.
    pub fn token_bytes(&self) -> usize {
        self.shared.model.block_shape().bytes() / BLOCK
    }

    pub(crate) fn send(&self, job: Job) -> Result<(), GenerateError> {
        let owner = job.owner().map(str::to_owned);
        if let Some(owner) = &owner {
            self.shared.places.enter(owner).map_err(|here| self.overloaded(here))?;
        }
        self.jobs.try_send(job).map_err(|e| {
            owner.iter().for_each(|owner| self.shared.places.leave(owner));
            match e {
                TrySendError::Full(_) => self.overloaded(self.shared.places.most()),
                TrySendError::Disconnected(_) => stopped(),
            }
        })
    }

    fn overloaded(&self, here: usize) -> GenerateError {
        let mean = Duration::from_micros(self.shared.mean_micros.load(Ordering::Relaxed));
        let queue = u32::try_from(here).unwrap_or(u32::MAX);
        GenerateError::Overloaded { retry_after: mean.saturating_mul(queue).max(LEAST_RETRY) }
    }

    /// How many of the prompt's tokens all owners may share: those that the head alone begins with
    /// too, so that none of them depends on what comes after the head.
    fn owned(&self, owner: &Owner, request: &GenerateRequest, tokens: &[u32]) -> Result<Owned, GenerateError> {
        let head = self.shared.tokenizer.encode(&owner.head, request.add_bos)?;
        let common = head.iter().zip(tokens).take_while(|(head, token)| head == token).count();
        Ok(Owned { name: owner.name.clone(), common })
    }

    fn adapter(&self, name: &str) -> Result<Arc<LoadedAdapter>, GenerateError> {
        let adapters = self.adapters.read().unwrap_or_else(PoisonError::into_inner);
        adapters
            .get(name)
            .cloned()
            .ok_or_else(|| GenerateError::UnknownAdapter { name: name.to_owned(), loaded: adapters.keys().cloned().collect() })
    }
}

fn stopped() -> GenerateError {
    GenerateError::engine("the model's thread has stopped")
}

impl Backend for Engine {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn adapters(&self) -> Vec<AdapterVersion> {
        let adapters = self.adapters.read().unwrap_or_else(PoisonError::into_inner);
        adapters.values().map(|a| a.version.clone()).collect()
    }

    /// Tokenises here, in microseconds, so that a prompt that does not fit is refused immediately.
    /// Grammars are compiled on the engine's thread, so an invalid one is the stream's first event.
    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let adapter = request.adapter.as_deref().map(|name| self.adapter(name)).transpose()?;
        if !request.prompt.messages().is_empty() {
            return Err(GenerateError::engine("the engine takes prompts, not messages; render them with the model's chat template"));
        }
        let tokens = self.shared.tokenizer.encode(&request.prompt, request.add_bos)?;
        let limit = self.shared.context_length - 1;
        if tokens.len() > limit {
            return Err(GenerateError::PromptTooLong { tokens: tokens.len(), limit });
        }
        let vocabulary = self.shared.model.config().vocab_size;
        if let Some(token) = tokens.iter().find(|t| **t as usize >= vocabulary) {
            return Err(GenerateError::engine(format!("the prompt holds token `{token}`, the model knows `{vocabulary}`")));
        }
        let Some(_) = tokens.first() else {
            return Err(GenerateError::engine("the prompt is empty and the model has no begin-of-sequence token"));
        };
        let bias = TokenBias::new(&request.word_bias, &self.shared.tokenizer)?;
        let limit = request.word_limit.as_ref().map(TokenLimit::new);
        let scoring = request.scores.as_ref().map(|scores| Scoring::new(scores, &self.shared.tokenizer)).transpose()?;
        let (sender, stream) = GenerateStream::channel();
        let owner = request.owner.as_ref().map(|owner| self.owned(owner, &request, &tokens)).transpose()?;
        let work = Work { request, tokens, owner, bias, limit, scoring, adapter, queued: Instant::now(), span: tracing::Span::current() };
        self.send(Job::Generate(Box::new((work, sender))))?;
        Ok(stream)
    }

    fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    fn count_tokens(&self, prompt: &Prompt, add_bos: Option<bool>) -> BoxFuture<'_, Result<usize, GenerateError>> {
        let tokens = self.shared.tokenizer.encode(prompt, add_bos);
        std::future::ready(tokens.map(|tokens| tokens.len())).boxed()
    }

    fn cache_bytes(&self) -> Option<usize> {
        Some(Engine::cache_bytes(self))
    }

    fn at_work(&self) -> Option<Duration> {
        self.shared.at_work.lasts()
    }
}
