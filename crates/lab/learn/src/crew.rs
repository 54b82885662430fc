//! Work on all cores: one engine for each while the model is small, and threads that keep the engines' queues filled.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use autoact_in_process::engines;
use autoact_model::{Backend, Engine, GenerateError, GenerateRequest, Generated, ModelDir, Tokenizer};

use crate::error::LearnError;

/// Threads for each engine: it computes what they wait for in one pass, and reads its weights once for all of them.
const THREADS_PER_ENGINE: usize = 8;

/// Asks the stop of everything; shared with the handler of Ctrl-C.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The engines over one model.
pub(crate) struct Crew {
    backends: Vec<Arc<dyn Backend>>,
    /// For adapters, which every engine has to load; empty with scripted models.
    engines: Vec<Arc<Engine>>,
    tokenizer: Option<Arc<Tokenizer>>,
}

impl Crew {
    /// Loads the model: on every core while it is small.
    ///
    /// # Errors
    /// The model cannot be loaded.
    pub(crate) fn start(path: &Path) -> Result<Crew, LearnError> {
        let failed = |source| LearnError::Model { path: path.to_owned(), source: Box::new(source) };
        let dir = ModelDir::open(path).map_err(failed)?;
        let engines: Vec<Arc<Engine>> = engines(&dir, usize::MAX).map_err(|source| failed(*source))?.into_iter().map(Arc::new).collect();
        let backends = engines.iter().map(|engine| Arc::clone(engine) as Arc<dyn Backend>).collect();
        Ok(Crew { backends, engines, tokenizer: Some(Arc::new(dir.tokenizer().map_err(failed)?)) })
    }

    /// A crew over backends at hand; it cannot load adapters, and counts tokens by characters.
    #[cfg(test)]
    pub(crate) fn of(backends: Vec<Arc<dyn Backend>>) -> Crew {
        Crew { backends, engines: Vec::new(), tokenizer: None }
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

    /// One of the backends.
    pub(crate) fn backend(&self, number: usize) -> &Arc<dyn Backend> {
        &self.backends[number % self.backends.len()]
    }

    /// Whether the model expects to be told what to do.
    pub(crate) fn is_chat(&self) -> bool {
        self.backends.first().is_some_and(|backend| backend.info().chat_template)
    }

    /// How many tokens a text has.
    pub(crate) fn tokens(&self, text: &str) -> usize {
        let counted = self.tokenizer.as_ref().and_then(|tokenizer| tokenizer.encode(text, None).ok());
        counted.map_or(text.len() / 3, |tokens| tokens.len())
    }

    /// Works the items off in parallel. `work` gets an item and a backend; `take` gets the results one at a time as they are ready, on
    /// this thread. Ends early, without error, once `stop` is raised: what has begun is finished.
    ///
    /// # Errors
    /// The first error of `work` or `take`; what runs is finished and dropped.
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
                        // the receiver is gone after an error: nobody waits for this
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

/// Completes a prompt. The engines' queues are longer than there are threads to fill them.
///
/// # Errors
/// What the model cannot do.
pub(crate) fn complete(backend: &dyn Backend, request: GenerateRequest) -> Result<Generated, GenerateError> {
    backend.generate(request)?.blocking_finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_speaker::testing::ScriptedBackend;

    fn crew() -> Crew {
        Crew::of((0..2).map(|_| Arc::new(ScriptedBackend::saying("x")) as Arc<dyn Backend>).collect())
    }

    #[test]
    fn every_item_is_done_once() {
        let items: Vec<usize> = (0..100).collect();
        let mut seen = vec![0; 100];
        let done = crew().each(
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
        let ended = crew().each(&items, &Stop::default(), |item, _| if *item == 7 { Err("seven") } else { Ok(()) }, |_, ()| Ok(()));
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
        assert_eq!(crew().each(&items, &stop, |_, _| Ok(()), raise), Ok(()));
        assert!(count < 1000);
    }
}
