//! The engine: one thread that owns the model's time, and the handle that services hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use autoact_kernels::Format;
use autoact_lora::Adapter;
use tokio::sync::oneshot;

use crate::backend::{AdapterVersion, Backend, BackendInfo, GenerateError, GenerateRequest};
use crate::draft::MOST_DRAFTED;
use crate::map::release_freed;
use crate::sequence::Work;
use crate::word_bias::TokenBias;
use crate::worker::{Job, Worker};
use crate::{BoundAdapter, ChatTemplate, GenerateStream, LoadError, ModelDir, Tokenizer, Transformer};

/// How an [`Engine`] runs.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The name it reports; `None` = the directory's.
    pub name: Option<String>,
    /// Requests that may wait; one more is refused as overloaded.
    pub queue: usize,
    /// Threads that compute, the engine's own included; 0: one for a small model, as many as there are cores for others.
    pub threads: usize,
    /// Requests that run at once; each of their tokens' passes reads the weights once for all.
    pub batch: usize,
    /// What the weights are computed in; `None` = as in the files, which costs no memory: they are read where they are mapped.
    pub weights: Option<Format>,
    /// Bytes of keys and values kept for prompts that begin like an earlier one; 0 keeps none.
    pub cache_bytes: usize,
    /// Most tokens that a pass reads on the chance that they come next, at most 16; 0: none. Changes no output.
    pub draft: usize,
    /// A directory in memory through which processes share keys and values of what the base has read.
    pub shared_prefixes: Option<PathBuf>,
    /// Most tokens per sequence, where that should be less than the model's own limit.
    pub context_length: Option<usize>,
}

/// Requests that may wait: at a second each, the last one has waited as long as anyone should.
const DEFAULT_QUEUE: usize = 32;
/// Weights up to this size stay in a core's reach: a second thread saves a few microseconds of a product and costs as many for every
/// wake-up, many more when other programs want the cores.
const SMALL: u64 = 64 << 20;
/// More rows than this cost about as much one by one.
const DEFAULT_BATCH: usize = 16;
/// Tokens drafted: with the token before them as many rows as the kernels' widest tile takes, and the next one costs the most.
const DEFAULT_DRAFT: usize = 5;
/// Dozens of trajectories of a small model, or two of a 7B model at 1,000 tokens.
const DEFAULT_CACHE_BYTES: usize = 1 << 30;
/// An overloaded engine is not asked again sooner than this.
const LEAST_RETRY: Duration = Duration::from_millis(50);

impl EngineOptions {
    /// The most that `draft` is taken for.
    pub const MOST_DRAFTED: usize = MOST_DRAFTED;
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            name: None,
            queue: DEFAULT_QUEUE,
            threads: 0,
            batch: DEFAULT_BATCH,
            weights: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            draft: DEFAULT_DRAFT,
            shared_prefixes: None,
            context_length: None,
        }
    }
}

/// An adapter bound to the engine's model.
#[derive(Debug)]
pub(crate) struct LoadedAdapter {
    pub(crate) version: AdapterVersion,
    pub(crate) bound: BoundAdapter,
}

/// What the handle and the thread both use.
pub(crate) struct Shared {
    pub(crate) name: String,
    /// What adapters must have been trained on.
    pub(crate) base_digest: String,
    pub(crate) model: Transformer,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) context_length: usize,
    /// Requests waiting or running.
    pub(crate) waiting: AtomicUsize,
    /// Mean time of a request, in microseconds, recent ones weighing more.
    pub(crate) mean_micros: AtomicU64,
}

/// A model that serves requests. Share it in an `Arc`; when the last handle goes, its thread ends.
pub struct Engine {
    info: BackendInfo,
    shared: Arc<Shared>,
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
    /// Loads the model in `dir` and starts its thread. Blocks while the weights are read: seconds for a large model,
    /// so async code calls it through `spawn_blocking`.
    pub fn start(dir: &ModelDir, options: EngineOptions) -> Result<Self, LoadError> {
        let model = Transformer::load(dir, options.weights)?;
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
        let shared = Arc::new(Shared {
            name: info.name.clone(),
            base_digest: dir.base_digest()?.to_owned(),
            model,
            tokenizer,
            context_length,
            waiting: AtomicUsize::new(0),
            mean_micros: AtomicU64::new(0),
        });
        let (jobs, queue) = sync_channel(options.queue.max(1));
        let threads = threads(dir, options.threads);
        Worker::spawn(shared.clone(), queue, threads, &options)?;
        release_freed();
        Ok(Self { info, shared, adapters: RwLock::default(), template, jobs })
    }

    /// Loads the PEFT adapter in `path` as `name`, in place of one that had this name. Requests that already run keep
    /// the one they started with. Blocks while its files are read.
    pub fn load_adapter(&self, name: impl Into<String>, path: impl AsRef<Path>) -> Result<AdapterVersion, LoadError> {
        let adapter = Adapter::load(path)?;
        let bound = self.shared.model.bind(&adapter, Some(&self.shared.base_digest))?;
        let version = AdapterVersion { name: name.into(), digest: adapter.digest.clone() };
        let loaded = Arc::new(LoadedAdapter { version: version.clone(), bound });
        self.adapters.write().unwrap_or_else(PoisonError::into_inner).insert(version.name.clone(), loaded);
        drop(adapter);
        release_freed();
        Ok(version)
    }

    /// Forgets the adapter `name`; false when there was none.
    pub fn unload_adapter(&self, name: &str) -> bool {
        self.adapters.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// Runs one token through the model, behind what is already waiting; how long the forward pass took.
    pub async fn health_check(&self) -> Result<Duration, GenerateError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Health(reply))?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Forgets the keys and values kept of earlier prompts, and the completions that drafts are made from; those of running requests stay.
    pub fn clear_cache(&self) -> Result<(), GenerateError> {
        self.send(Job::ClearCache)
    }

    /// Bytes of keys and values, of running requests and of kept prompts together.
    pub fn cache_bytes(&self) -> usize {
        let shape = self.shared.model.block_shape();
        shape.live() * shape.bytes()
    }

    /// What the weights are computed in.
    pub fn weights(&self) -> Format {
        self.shared.model.format()
    }

    pub(crate) fn send(&self, job: Job) -> Result<(), GenerateError> {
        // Counted before it is sent: the thread may be done with it before we are back.
        let waiting = self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.try_send(job).map_err(|e| {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            match e {
                TrySendError::Full(_) => {
                    let mean = Duration::from_micros(self.shared.mean_micros.load(Ordering::Relaxed));
                    let queue = u32::try_from(waiting).unwrap_or(u32::MAX);
                    GenerateError::Overloaded { retry_after: mean.saturating_mul(queue).max(LEAST_RETRY) }
                }
                TrySendError::Disconnected(_) => stopped(),
            }
        })
    }

    fn adapter(&self, name: &str) -> Result<Arc<LoadedAdapter>, GenerateError> {
        let adapters = self.adapters.read().unwrap_or_else(PoisonError::into_inner);
        adapters
            .get(name)
            .cloned()
            .ok_or_else(|| GenerateError::UnknownAdapter { name: name.to_owned(), loaded: adapters.keys().cloned().collect() })
    }
}

/// The threads asked for, or those that pay for the model in `dir`.
fn threads(dir: &ModelDir, asked: usize) -> usize {
    if asked > 0 {
        return asked;
    }
    if dir.weight_bytes() <= SMALL { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) }
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

    /// Tokenizes here (microseconds), so that a prompt that cannot fit is refused at once; grammars compile on the
    /// engine's thread, so an invalid one is the stream's first event.
    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let adapter = request.adapter.as_deref().map(|name| self.adapter(name)).transpose()?;
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
        let bias = request.word_bias.as_ref().map(|bias| TokenBias::new(bias, &self.shared.tokenizer)).transpose()?;
        let (sender, stream) = GenerateStream::channel();
        let work = Work { request, tokens, bias, adapter, queued: Instant::now(), span: tracing::Span::current() };
        self.send(Job::Generate(Box::new((work, sender))))?;
        Ok(stream)
    }

    fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    fn cache_bytes(&self) -> Option<usize> {
        Some(Engine::cache_bytes(self))
    }
}
