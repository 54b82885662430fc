//! Parallel use of engines over one model, and the request to stop.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use autoact_in_process::engines;
use autoact_model::{Backend, Engine, GenerateError, GenerateRequest, Generated, ModelDir, Tokenizer};

use crate::error::LearnError;

/// Threads for each engine. It batches their requests, so that weights are read once for all.
const THREADS_PER_ENGINE: usize = 8;

/// A shared flag that asks all work to stop. The Ctrl-C handler holds a clone.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The engines over one model.
pub(crate) struct EnginePool {
    backends: Vec<Arc<dyn Backend>>,
    /// The same engines, for loading adapters; empty with scripted models.
    engines: Vec<Arc<Engine>>,
    tokenizer: Option<Arc<Tokenizer>>,
}

impl EnginePool {
    /// Loads the model into as many engines as [`autoact_in_process::engines`] allows.
    ///
    /// # Errors
    /// The model cannot be loaded.
    pub(crate) fn start(path: &Path) -> Result<EnginePool, LearnError> {
        let failed = |source| LearnError::Model { path: path.to_owned(), source: Box::new(source) };
        let dir = ModelDir::open(path).map_err(failed)?;
        let engines: Vec<Arc<Engine>> = engines(&dir, usize::MAX).map_err(|source| failed(*source))?.into_iter().map(Arc::new).collect();
        let backends = engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Backend>).collect();
        Ok(EnginePool { backends, engines, tokenizer: Some(Arc::new(dir.tokenizer().map_err(failed)?)) })
    }

    /// A pool over given backends. It cannot load adapters and estimates numbers of tokens.
    #[cfg(test)]
    pub(crate) fn of(backends: Vec<Arc<dyn Backend>>) -> EnginePool {
        EnginePool { backends, engines: Vec::new(), tokenizer: None }
    }

    /// Loads an adapter into every engine.
    ///
    /// # Errors
    /// It cannot be read or does not fit.
    pub(crate) fn load_adapter(&self, name: &str, path: &Path) -> Result<(), LearnError> {
        for engine in &self.engines {
            engine.load_adapter(name, path).map_err(|source| LearnError::Model { path: path.to_owned(), source: Box::new(source) })?;
        }
        Ok(())
    }

    /// The backend of a worker thread; threads are distributed over the backends.
    pub(crate) fn backend(&self, number: usize) -> &Arc<dyn Backend> {
        &self.backends[number % self.backends.len()]
    }

    /// Whether the model has a chat template and thus expects instructions.
    pub(crate) fn is_chat(&self) -> bool {
        self.backends.first().is_some_and(|backend| backend.info().chat_template)
    }

    /// Number of tokens of a text; estimated from its length without a tokenizer.
    pub(crate) fn tokens(&self, text: &str) -> usize {
        let counted = self.tokenizer.as_ref().and_then(|tokenizer| tokenizer.encode(text, None).ok());
        counted.map_or(text.len() / 3, |tokens| tokens.len())
    }

    /// Processes the items in parallel. `work` gets an item and a backend. `take` gets the results
    /// on this thread, one at a time and in order of completion. If `stop` is requested, running
    /// items are finished, the others are skipped, and the result is still `Ok`.
    ///
    /// # Errors
    /// The first error of `work` or `take`. Running items are finished and their results dropped.
    pub(crate) fn each<I: Sync, R: Send, E: Send>(
        &self,
        items: &[I],
        stop: &Stop,
        work: impl Fn(&I, &Arc<dyn Backend>) -> Result<R, E> + Sync,
        mut take: impl FnMut(usize, R) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = (self.backends.len() * THREADS_PER_ENGINE).min(items.len());
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            let (sender, results) = sync_channel(threads);
            for number in 0..threads {
                let (sender, next, failed, work) = (sender.clone(), &next, &failed, &work);
                scope.spawn(move || {
                    while !failed.load(Ordering::Relaxed) && !stop.is_raised() {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(at) else { break };
                        // after an error the receiver is gone, and the result is not needed
                        if sender.send((at, work(item, self.backend(number)))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            for (at, result) in results {
                if let Err(error) = result.and_then(|result| take(at, result)) {
                    failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        })
    }
}

/// Completes a prompt and waits for the reply. The engines' queues hold more requests than there
/// are threads, so they are never full.
///
/// # Errors
/// The model refuses the request or fails.
pub(crate) fn complete(backend: &dyn Backend, request: GenerateRequest) -> Result<Generated, GenerateError> {
    backend.generate(request)?.blocking_finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_speaker::testing::ScriptedBackend;

    fn pool() -> EnginePool {
        EnginePool::of((0..2).map(|_| Arc::new(ScriptedBackend::saying("x")) as Arc<dyn Backend>).collect())
    }

    #[test]
    fn every_item_is_done_once() {
        let items: Vec<usize> = (0..100).collect();
        let mut seen = vec![0; 100];
        let done = pool().each(
            &items,
            &Stop::default(),
            |item, _| Ok::<_, ()>(*item),
            |at, item| {
                assert_eq!(at, item);
                seen[at] += 1;
                Ok(())
            },
        );
        assert_eq!((done, seen), (Ok(()), vec![1; 100]));
    }

    #[test]
    fn an_error_ends_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        let ended = pool().each(&items, &Stop::default(), |item, _| if *item == 7 { Err("seven") } else { Ok(()) }, |_, ()| Ok(()));
        assert_eq!(ended, Err("seven"));
    }

    #[test]
    fn a_raised_stop_ends_it_without_an_error() {
        let stop = Stop::default();
        let items: Vec<usize> = (0..1000).collect();
        let mut count = 0;
        let raise = |_, ()| {
            count += 1;
            stop.raise();
            Ok::<_, ()>(())
        };
        assert_eq!(pool().each(&items, &stop, |_, _| Ok(()), raise), Ok(()));
        assert!(count < 1000);
    }
}
