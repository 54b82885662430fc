//! The collections for async callers: off the runtime's threads, a bounded number at once, measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_collections::{Collections, CollectionsError};
use tokio::sync::Semaphore;

use crate::documents::error::DocumentsError;

/// Queries that wait or run.
const QUERIES: usize = 256;
/// A query that has not been answered by then is not waited for.
const LONGEST_QUERY: Duration = Duration::from_secs(10);

/// The collections, and the bounds on their use.
#[derive(Clone)]
pub(super) struct Shelf {
    collections: Arc<Collections>,
    queries: Arc<Semaphore>,
    /// As many as there are processors.
    running: Arc<Semaphore>,
}

impl Shelf {
    pub(super) fn new(collections: Arc<Collections>) -> Shelf {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Shelf { collections, queries: semaphore(QUERIES), running: semaphore(processors) }
    }

    /// A change. It goes on when its caller has gone away, and takes as long as the disk does.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Collections) -> Result<T, CollectionsError> + Send + 'static,
    ) -> Result<T, DocumentsError> {
        let collections = self.collections.clone();
        measured(operation, async {
            let done = tokio::task::spawn_blocking(move || work(&collections)).await;
            Ok(done.map_err(|error| DocumentsError::Broke(error.to_string()))??)
        })
        .await
    }

    /// A query.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Collections) -> Result<T, CollectionsError> + Send + 'static,
    ) -> Result<T, DocumentsError> {
        let waiting = self.queries.clone().try_acquire_owned().map_err(|_| DocumentsError::Busy { running: QUERIES })?;
        let collections = self.collections.clone();
        measured(operation, async {
            let running = self.running.clone().acquire_owned().await.map_err(|error| DocumentsError::Broke(error.to_string()))?;
            // the permits go with the query: it runs on when its caller has gone away
            let query = tokio::task::spawn_blocking(move || {
                let done = work(&collections);
                drop((running, waiting));
                done
            });
            match tokio::time::timeout(LONGEST_QUERY, query).await {
                Ok(done) => Ok(done.map_err(|error| DocumentsError::Broke(error.to_string()))??),
                Err(_) => Err(DocumentsError::TooSlow { after: LONGEST_QUERY }),
            }
        })
        .await
    }
}

/// Measures an operation and logs what the store failed at.
pub(super) async fn measured<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, DocumentsError>>,
) -> Result<T, DocumentsError> {
    let started = Instant::now();
    let result = work.await;
    let outcome = match &result {
        Ok(_) => "ok",
        Err(DocumentsError::Collections(CollectionsError::Unknown { .. })) => "unknown",
        Err(_) => "error",
    };
    metrics::histogram!("autoact_documents_seconds", "operation" => operation, "outcome" => outcome)
        .record(started.elapsed().as_secs_f64());
    if let Err(error @ (DocumentsError::Broke(_) | DocumentsError::Collections(CollectionsError::Engine { .. }))) = &result {
        tracing::error!(operation, %error, "the documents failed");
    }
    result
}
