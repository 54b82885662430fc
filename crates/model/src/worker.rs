//! The engine's thread: takes jobs off the queue and runs them, one at a time for now.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::backend::{GenerateError, Generated};
use crate::engine::Shared;
use crate::grammar::Grammars;
use crate::prefix::Prefixes;
use crate::sequence::{Sequence, Work};
use crate::{GenerateSender, LoadError, Logits};

/// What the thread is asked to do.
pub(crate) enum Job {
    /// Complete a prompt. Boxed: the queue holds places for many.
    Generate(Box<(Work, GenerateSender)>),
    /// Show that the model still computes.
    Health(oneshot::Sender<Result<Duration, GenerateError>>),
    /// Fail as a bug would.
    #[cfg(test)]
    Panic(GenerateSender),
}

/// The thread's own state.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    grammars: Grammars,
    prefixes: Prefixes,
}

/// Weight of the newest request in the mean time of requests: 1 part in this many.
const MEAN_OF: u64 = 8;

impl Worker {
    /// Starts the thread; it ends when every sender of `jobs` is gone.
    pub(crate) fn spawn(shared: Arc<Shared>, jobs: Receiver<Job>, threads: usize, cache_bytes: usize) -> Result<(), LoadError> {
        let grammars = Grammars::new(&shared.tokenizer.env())?;
        let run = move || {
            // The engine's thread is itself the pool's first worker: operations on small tensors then run right here,
            // where handing them to another thread would cost more than they do. The guard lives as long as the loop.
            let _pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread().build();
            let mut worker = Self { shared, grammars, prefixes: Prefixes::new(cache_bytes) };
            for job in jobs {
                worker.serve(job);
            }
        };
        std::thread::Builder::new().name("model".to_owned()).spawn(run).map(drop).map_err(LoadError::Thread)
    }

    fn serve(&mut self, job: Job) {
        let started = Instant::now();
        match job {
            Job::Generate(job) => {
                let (work, mut sender) = *job;
                let span = work.span.clone();
                let _entered = span.enter();
                let result = self.guard(|worker| worker.complete(work, &mut sender));
                if let Err(error @ GenerateError::Engine { .. }) = &result {
                    tracing::error!(%error, "a completion failed");
                }
                self.finished(started);
                sender.end(result);
            }
            Job::Health(reply) => {
                let result = self.guard(Self::health);
                self.finished(started);
                // Nobody waits any more: nothing to tell.
                let _ = reply.send(result);
            }
            #[cfg(test)]
            Job::Panic(sender) => {
                let result = self.guard(|_| panic!("on purpose"));
                self.finished(started);
                sender.end(result);
            }
        }
    }

    /// A panic becomes an error of this one request. Whatever it may have left half done is thrown away.
    fn guard<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, GenerateError>) -> Result<T, GenerateError> {
        match catch_unwind(AssertUnwindSafe(|| f(self))) {
            Ok(result) => result,
            Err(panic) => {
                self.prefixes.clear();
                let message = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
                let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(GenerateError::engine(format!("panic: {}", message.as_deref().unwrap_or("no message"))))
            }
        }
    }

    fn complete(&mut self, work: Work, sender: &mut GenerateSender) -> Result<Generated, GenerateError> {
        Sequence::check(&work, sender)?;
        let mut sequence = Sequence::start(work, &self.shared, &mut self.grammars, &mut self.prefixes)?;
        loop {
            if let Some(reason) = sequence.advance(&self.shared, sender)? {
                return Ok(sequence.finish(reason, &self.shared, &mut self.prefixes));
            }
        }
    }

    fn health(&mut self) -> Result<Duration, GenerateError> {
        let started = Instant::now();
        let tokenizer = &self.shared.tokenizer;
        let token = tokenizer.bos().or_else(|| tokenizer.eos().first().copied()).unwrap_or(0);
        let mut cache = self.shared.model.new_cache()?;
        let logits = self.shared.model.forward(&[token], &mut cache, None, Logits::Last)?;
        if logits.flatten_all()?.to_vec1::<f32>()?.iter().any(|l| l.is_nan()) {
            return Err(GenerateError::engine("the model computes no numbers; are the weights sound?"));
        }
        Ok(started.elapsed())
    }

    fn finished(&self, started: Instant) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mean = self.shared.mean_micros.load(Ordering::Relaxed);
        let mean = if mean == 0 { micros } else { mean - mean / MEAN_OF + micros / MEAN_OF };
        self.shared.mean_micros.store(mean, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Backend, Engine, EngineOptions, GenerateError, GenerateRequest, GenerateStream, ModelDir};

    use super::*;

    #[test]
    fn a_panic_is_reported_and_the_engine_goes_on() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/fixtures/llama2");
        let engine = Engine::start(&ModelDir::open(dir).unwrap(), EngineOptions::default()).unwrap();
        let (sender, stream) = GenerateStream::channel();
        engine.send(Job::Panic(sender)).unwrap();
        let error = stream.blocking_finish().unwrap_err();
        assert!(matches!(&error, GenerateError::Engine { message } if message.contains("on purpose")), "{error}");
        let done = engine.generate(GenerateRequest::new("still there?")).unwrap().blocking_finish();
        assert!(done.is_ok(), "{done:?}");
    }
}
