//! The embedder: vectors of queries, and of segments in the background.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use autoact_collections::{Space, Strategy};
use autoact_embedding::{EmbedError, Embedder, MiniLm, MiniLmOptions, OpenAiEmbedder, OpenAiEmbedderOptions};
use autoact_service::{Setup, StartError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::{EmbedderKind, MemoryConfig};
use crate::documents::error::DocumentsError;
use crate::documents::request::{Search, Whose};
use crate::documents::store::{DocumentStore, Unembedded};

/// Segments that are embedded together: so few that a service that stops is not waited for.
const BATCH: usize = 16;
/// The pause where nothing is left to do, unless a file is stored.
const IDLE: Duration = Duration::from_secs(30);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// How often the log says how far it is.
const NOTE_EVERY: Duration = Duration::from_secs(10);
/// What a model's directory has.
const MODEL_FILE: &str = "config.json";

/// The embedder, once it is there.
pub(super) struct Dense {
    embedder: OnceLock<Arc<dyn Embedder>>,
    stored: Notify,
}

impl Dense {
    /// Opens the model, or begins to look for the server, and lets vectors follow what is stored.
    pub(super) async fn open(config: &MemoryConfig, setup: &mut Setup, store: &Arc<dyn DocumentStore>) -> Result<Arc<Dense>, StartError> {
        let dense = Arc::new(Dense { embedder: OnceLock::new(), stored: Notify::new() });
        let directory = config.embedder_dir.clone();
        let model = match config.embedder {
            EmbedderKind::None => return Ok(dense),
            EmbedderKind::Auto if !directory.join(MODEL_FILE).is_file() => {
                tracing::info!("no embedder: documents are found by words alone; `scripts/fetch-embedder` fetches one");
                return Ok(dense);
            }
            EmbedderKind::Auto | EmbedderKind::Model => true,
            EmbedderKind::Server => false,
        };
        if model {
            let opened = tokio::task::spawn_blocking(move || MiniLm::open(&directory, MiniLmOptions::default())).await;
            let opened = opened.map_err(StartError::new)?.map_err(StartError::new)?;
            dense.set(Arc::new(opened));
        }
        let server = OpenAiEmbedderOptions {
            api_key: config.embedder_server.api_key.clone(),
            ..OpenAiEmbedderOptions::new(&config.embedder_server.url, &config.embedder_server.model)
        };
        let (own, store) = (dense.clone(), store.clone());
        setup.tasks().spawn_until_stopped("vectors", move |stopping| async move {
            if !model && !own.find(server, &stopping).await {
                return;
            }
            own.follow(&*store, &stopping).await;
        });
        Ok(dense)
    }

    /// The space of its vectors, once it is there.
    pub(super) fn space(&self) -> Option<Space> {
        self.embedder.get().map(|embedder| space(&**embedder))
    }

    /// Something was stored.
    pub(super) fn wake(&self) {
        self.stored.notify_one();
    }

    /// A query with its vector, if its strategy needs one. A query that names no strategy is one by
    /// words where no vector can be had.
    pub(super) async fn search(&self, query: String, limit: usize, asked: Option<Strategy>) -> Result<Search, DocumentsError> {
        // what finds most among the first five (docs/benchmarks.md)
        let strategy = asked.unwrap_or(Strategy::Concatenation);
        if strategy == Strategy::Words {
            return Ok(Search { query, vector: None, strategy, limit });
        }
        let by_words = |query| Search { query, vector: None, strategy: Strategy::Words, limit };
        let Some(embedder) = self.embedder.get().cloned() else {
            return if asked.is_none() { Ok(by_words(query)) } else { Err(DocumentsError::NoEmbedder) };
        };
        let space = space(&*embedder);
        let text = query.clone();
        let embedded = tokio::task::spawn_blocking(move || embedder.embed(&[&text])).await;
        match embedded.map_err(|error| DocumentsError::Broke(error.to_string()))? {
            Ok(mut vectors) => {
                let vector = vectors.pop().map(|vector| (space, vector));
                Ok(Search { query, vector, strategy, limit })
            }
            Err(error) if asked.is_none() => {
                tracing::warn!(%error, "a query has no vector; it is one by words");
                Ok(by_words(query))
            }
            Err(error) => Err(DocumentsError::Broke(error.to_string())),
        }
    }

    /// The vectors of texts, and the name of what made them.
    pub(super) async fn vectors(&self, texts: Vec<String>) -> Result<(String, Vec<Vec<f32>>), DocumentsError> {
        let embedder = self.embedder.get().cloned().ok_or(DocumentsError::NoEmbedder)?;
        let embedded = tokio::task::spawn_blocking(move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            embedder.embed(&texts).map(|vectors| (embedder.name().to_owned(), vectors))
        });
        let embedded = embedded.await.map_err(|error| DocumentsError::Broke(error.to_string()))?;
        embedded.map_err(|error| DocumentsError::Broke(error.to_string()))
    }

    fn set(&self, embedder: Arc<dyn Embedder>) {
        tracing::info!(embedder = embedder.name(), dimension = embedder.dimension(), "documents are found by meaning too");
        let _ = self.embedder.set(embedder);
    }

    /// Looks for the server until it is there; false when the service stops first.
    async fn find(&self, options: OpenAiEmbedderOptions, stopping: &CancellationToken) -> bool {
        loop {
            let found = tokio::select! {
                () = stopping.cancelled() => return false,
                found = OpenAiEmbedder::connect(options.clone()) => found,
            };
            match found {
                Ok(embedder) => {
                    self.set(Arc::new(embedder));
                    return true;
                }
                Err(error) => tracing::warn!(%error, retry_in = ?PAUSE, "no embedder"),
            }
            if tokio::time::timeout(PAUSE, stopping.cancelled()).await.is_ok() {
                return false;
            }
        }
    }

    /// Makes the vectors of whatever is stored.
    async fn follow(&self, store: &dyn DocumentStore, stopping: &CancellationToken) {
        let Some(embedder) = self.embedder.get() else { return };
        let (mut made, mut noted) = (0, Instant::now());
        while !stopping.is_cancelled() {
            let pause = match round(store, embedder).await {
                Ok(Round { done, left }) => {
                    metrics::counter!("autoact_documents_embedded_total").increment(done as u64);
                    metrics::gauge!("autoact_documents_without_vector").set(left as f64);
                    made += done;
                    let every = noted.elapsed();
                    if made > 0 && (every >= NOTE_EVERY || left == 0) {
                        let rate = (made as f64 / every.as_secs_f64()).round();
                        tracing::info!(made, left, segments_per_second = rate, "vectors of documents");
                        (made, noted) = (0, Instant::now());
                    }
                    if done > 0 { Duration::ZERO } else { IDLE }
                }
                Err(error) => {
                    tracing::warn!(%error, retry_in = ?PAUSE, "no vectors");
                    PAUSE
                }
            };
            if !pause.is_zero() {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = self.stored.notified() => noted = Instant::now(),
                    () = tokio::time::sleep(pause) => noted = Instant::now(),
                }
            }
        }
    }
}

fn space(embedder: &dyn Embedder) -> Space {
    Space { name: embedder.name().to_owned(), dimension: embedder.dimension() }
}

/// What was done in one round over all collections.
#[derive(Debug, Default)]
struct Round {
    done: usize,
    left: usize,
}

/// Why no vectors were made.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Documents(#[from] DocumentsError),
}

/// A batch of each collection.
async fn round(store: &dyn DocumentStore, embedder: &Arc<dyn Embedder>) -> Result<Round, RoundError> {
    let (mut round, space) = (Round::default(), space(&**embedder));
    for whose in store.all().await? {
        // one that is deleted meanwhile, or damaged, does not hold the others up
        match store.without_vector(&whose, &space, BATCH).await {
            Ok((segments, _)) if segments.is_empty() => {}
            Ok((segments, left)) => {
                round.done += segments.len();
                round.left += left.saturating_sub(segments.len());
                embed(store, &whose, &space, embedder.clone(), segments).await?;
            }
            Err(error) => {
                let Whose { tenant, collection } = &whose;
                tracing::warn!(%tenant, %collection, %error, "a collection has no vectors");
            }
        }
    }
    Ok(round)
}

async fn embed(
    store: &dyn DocumentStore,
    whose: &Whose,
    space: &Space,
    embedder: Arc<dyn Embedder>,
    segments: Vec<Unembedded>,
) -> Result<(), RoundError> {
    let embedded = tokio::task::spawn_blocking(move || {
        let texts: Vec<&str> = segments.iter().map(|segment| segment.text.as_str()).collect();
        let vectors = match embedder.embed(&texts) {
            Ok(vectors) => vectors,
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "a batch is refused; its segments are embedded one by one");
                texts.iter().map(|text| one(&*embedder, text)).collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok(segments.iter().map(|segment| segment.id).zip(vectors).collect::<Vec<_>>())
    });
    let vectors = embedded.await.map_err(|error| DocumentsError::Broke(error.to_string()))??;
    Ok(store.add_vectors(whose, space, vectors).await?)
}

/// The vector of a text; one that is refused for good has the vector of nothing, so that it is not
/// tried again and again.
fn one(embedder: &dyn Embedder, text: &str) -> Result<Vec<f32>, EmbedError> {
    match embedder.embed(&[text]) {
        Ok(mut vectors) => Ok(vectors.pop().unwrap_or_else(|| vec![0.0; embedder.dimension()])),
        Err(error) if error.is_transient() => Err(error),
        Err(_) => Ok(vec![0.0; embedder.dimension()]),
    }
}
