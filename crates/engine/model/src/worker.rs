//! The engine's thread: continuous batching. Requests join and leave between two passes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use autoact_base::failpoint::stallpoint;
use autoact_kernels::Team;

use crate::backend::{FinishReason, GenerateError};
use crate::draft::Drafts;
use crate::fairness::{Fairness, OwnerId};
use crate::grammar::Grammars;
use crate::known::Known;
use crate::radix::Prefixes;
use crate::run_delay::RunDelay;
use crate::schedule::{Pace, Wish};
use crate::sequence::{Sequence, Work};
use crate::shared::SharedPrefixes;
use crate::state::EngineState;
use crate::transformer::{Item, Scratch};
use crate::{EngineOptions, GenerateSender, LoadError, ModelDir};

/// A job for the thread.
pub(crate) enum Job {
    /// Complete a prompt. Boxed, because the queue has many places.
    Generate(Box<(Work, GenerateSender)>),
    /// Remove cached keys and values and earlier completions.
    ClearCache,
    /// Panic, as a bug would.
    #[cfg(test)]
    Panic(GenerateSender),
}

impl Job {
    /// Whose request it is; `None`: it is none.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::Generate(job) => Some(job.0.owner_name()),
            _ => None,
        }
    }
}

/// The thread's own state.
pub(crate) struct Worker {
    shared: Arc<EngineState>,
    team: Team,
    grammars: Grammars,
    known: Known,
    drafts: Drafts,
    scratch: Scratch,
    pace: Pace,
    /// The requests that wait, and what each owner has had.
    fairness: Fairness<Box<(Work, GenerateSender)>>,
    running: Vec<Running>,
    /// Maximum number of running sequences, beside those of owners that have less than their part.
    batch: usize,
    passes: usize,
    /// Of this thread, where the others take part only while the machine has cores to spare.
    run_delay: Option<RunDelay>,
}

struct Running {
    owner: OwnerId,
    sequence: Sequence,
    sender: GenerateSender,
    started: Instant,
}

/// Without work for so long, buffers are given back: longer than the pauses within a task.
const IDLE: Duration = Duration::from_secs(5);
/// The run delay is asked for in every so many passes: it costs a microsecond or two.
const PASSES: usize = 8;
/// Models with at most this many bytes of weights have few threads.
const SMALL: u64 = 64 << 20;
/// So many: each product is of a few microseconds, which is what it costs to hand it out.
const FEW: usize = 2;
/// The newest request has the weight 1/`MEAN_OF` in the mean duration.
const MEAN_OF: u64 = 8;

/// How many threads compute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threads {
    most: usize,
    /// Whether the others pause while the machine has no core to spare.
    spare: bool,
}

impl Threads {
    /// The number that is asked for. 0: all cores, or a few threads for a small model.
    pub(crate) fn of(dir: &ModelDir, asked: usize) -> Threads {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let small = asked == 0 && dir.weight_bytes() <= SMALL;
        let most = match asked {
            0 if small => cores().min(FEW),
            0 => cores(),
            _ => asked,
        };
        Threads { most, spare: small && most > 1 }
    }
}

impl Worker {
    /// Starts the thread, which ends when all senders of `jobs` are dropped.
    pub(crate) fn spawn(shared: Arc<EngineState>, jobs: Receiver<Job>, threads: Threads, options: &EngineOptions) -> Result<(), LoadError> {
        let grammars = Grammars::new(&shared.tokenizer.env())?;
        let team = Team::new(threads.most).map_err(LoadError::Thread)?;
        let shape = shared.model.block_shape();
        let format = shared.model.format().to_string();
        let open = |dir: &PathBuf| SharedPrefixes::open(dir, &shared.base_digest, &format, shape, options.cache_bytes);
        let known =
            Known { own: Prefixes::new(shape, options.cache_bytes), shared: options.shared_prefixes.as_ref().map(open).transpose()? };
        let mut worker = Self {
            shared,
            team,
            grammars,
            known,
            drafts: Drafts::new(options.draft),
            scratch: Scratch::default(),
            pace: Pace::default(),
            fairness: Fairness::default(),
            running: Vec::new(),
            batch: options.batch.max(1),
            passes: 0,
            run_delay: None,
        };
        let run = move || {
            worker.run_delay = threads.spare.then(RunDelay::of_this_thread);
            worker.run(&jobs);
        };
        std::thread::Builder::new().name("model".to_owned()).spawn(run).map(drop).map_err(LoadError::Thread)
    }

    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            if self.running.is_empty() && self.fairness.is_empty() {
                self.shared.at_work.end();
                let Some(job) = self.wait(jobs) else { return };
                self.shared.at_work.begin();
                self.take(job);
            }
            // no more at once than there are places: who sends all the time must not keep the model
            // from working
            for job in jobs.try_iter().take(self.shared.places.most()) {
                self.take(job);
            }
            while let Some((owner, request)) = self.fairness.pop(self.batch, self.batch.saturating_mul(2)) {
                self.shared.at_work.begin();
                self.start(owner, *request);
            }
            self.shared.at_work.begin();
            self.leave_unwanted();
            if self.running.is_empty() {
                continue;
            }
            if let Err(error) = guard(|| self.pass()) {
                self.fail(&error);
            }
        }
    }

    /// The next job. Without one for a while, the buffers of large passes are given back: those of 512
    /// tokens of a model of 135M take 35 MiB more than those of 128.
    fn wait(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        match jobs.recv_timeout(IDLE) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        self.scratch.give_back();
        jobs.recv().ok()
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Generate(request) => {
                let owner = request.0.owner_name().to_owned();
                self.fairness.push(&owner, request);
            }
            Job::ClearCache => {
                self.known.own.clear();
                self.drafts.forget();
            }
            #[cfg(test)]
            Job::Panic(sender) => {
                let error = guard(|| -> Result<(), GenerateError> { panic!("on purpose") }).unwrap_err();
                self.fail(&error);
                sender.end(Err(error));
            }
        }
    }

    /// Begins a request: its sequence joins the batch.
    fn start(&mut self, owner: OwnerId, (work, mut sender): (Work, GenerateSender)) {
        let started = Instant::now();
        let begun = guard(|| {
            let mut sequence = Sequence::start(work, &mut self.grammars, &mut self.known)?;
            sequence.check(&sender)?;
            let finish = sequence.begin(&self.shared, &mut sender)?;
            Ok((sequence, finish))
        });
        self.fairness.charge(owner, started.elapsed());
        match begun {
            Ok((sequence, None)) => {
                self.running.push(Running { owner, sequence, sender, started });
                // Rows with the same adapter are adjacent.
                self.running.sort_by_key(|r| r.sequence.speaker());
            }
            Ok((sequence, Some(reason))) => self.end(Running { owner, sequence, sender, started }, Ok(reason)),
            Err(error) => {
                self.finished(owner, started);
                sender.end(Err(error));
            }
        }
    }

    /// Removes cancelled and expired sequences, which frees their blocks.
    fn leave_unwanted(&mut self) {
        let mut at = 0;
        while let Some(running) = self.running.get(at) {
            match running.sequence.check(&running.sender) {
                Ok(()) => at += 1,
                Err(error) => {
                    let running = self.running.remove(at);
                    self.end(running, Err(error));
                }
            }
        }
    }

    /// One forward pass over all running sequences, and the next tokens of each.
    fn pass(&mut self) -> Result<(), GenerateError> {
        let wish = |r: &Running| Wish { pending: r.sequence.pending(), decoding: r.sequence.decoding() };
        let wishes: Vec<Wish> = self.running.iter().map(wish).collect();
        let first = self.fairness.first(self.running.iter().map(|r| r.owner));
        let takes_part = first.map(|first| self.pace.guests(&wishes, &first, self.passes));
        let wishes = wishes.into_iter().enumerate();
        let wishes = wishes.map(|(i, wish)| if takes_part.as_ref().is_none_or(|t| t[i]) { wish } else { Wish::NONE });
        let wishes: Vec<Wish> = wishes.collect();
        let chunks = self.pace.share(&wishes, self.passes);
        self.passes += 1;
        let worth = self.pace.worth(&wishes, &chunks);
        let mut items: Vec<Item<'_>> = Vec::with_capacity(chunks.len());
        let mut drafted = 0;
        let mut parts = Vec::with_capacity(chunks.len());
        for (running, chunk) in self.running.iter_mut().zip(&chunks) {
            if *chunk > 0 {
                let draft = running.sequence.draft(*chunk, &self.shared, &mut self.drafts, worth);
                drafted += draft;
                parts.push((running.owner, *chunk + draft));
                items.push(running.sequence.item(*chunk));
            }
        }
        stallpoint("model-pass", &self.passes);
        if let Some(delay) = self.run_delay.as_mut().filter(|_| self.passes % PASSES == 1) {
            self.team.set_alone(delay.is_full());
        }
        let started = Instant::now();
        let logits = self.shared.model.forward(&self.team, &mut items, &mut self.scratch);
        let took = started.elapsed();
        self.pace.note(took, &wishes, &chunks, drafted);
        self.fairness.charge_shared(took, parts.into_iter());
        drop(items);
        let vocabulary = self.shared.model.config().vocab_size;
        let mut rest = logits;
        let mut ends = Vec::new();
        for (i, (running, (wish, chunk))) in self.running.iter_mut().zip(wishes.iter().zip(&chunks)).enumerate() {
            let rows = running.sequence.take_rows();
            let Some((logits, others)) = rest.split_at_mut_checked(rows * vocabulary) else {
                return Err(GenerateError::engine("a pass gave too few logits"));
            };
            rest = others;
            if *chunk == 0 || *chunk < wish.pending {
                running.sequence.score(logits, rows);
                continue;
            }
            match running.sequence.advance(logits, rows, &self.shared, &mut self.known, &mut self.drafts, &mut running.sender) {
                Ok(None) => {}
                Ok(Some(reason)) => ends.push((i, Ok(reason))),
                Err(error) => ends.push((i, Err(error))),
            }
        }
        for (i, end) in ends.into_iter().rev() {
            let running = self.running.remove(i);
            self.end(running, end);
        }
        Ok(())
    }

    fn end(&mut self, running: Running, end: Result<FinishReason, GenerateError>) {
        let Running { owner, mut sequence, sender, started } = running;
        let end = end.and_then(|reason| {
            guard(|| sequence.weigh(&self.shared, &self.team, &mut self.scratch))?;
            Ok(reason)
        });
        if let Err(error @ GenerateError::Engine { .. }) = &end {
            let _entered = sequence.span().enter();
            tracing::error!(%error, "a completion failed");
        }
        let end = end.map(|reason| sequence.finish(reason, &self.shared, &mut self.known, &mut self.drafts));
        self.finished(owner, started);
        sender.end(end);
    }

    /// Fails all sequences after a panic and clears the caches, which may be inconsistent.
    fn fail(&mut self, error: &GenerateError) {
        self.known.own.clear();
        self.drafts.forget();
        self.scratch = Scratch::default();
        for running in std::mem::take(&mut self.running) {
            self.end(running, Err(error.clone()));
        }
    }

    fn finished(&mut self, owner: OwnerId, started: Instant) {
        self.shared.places.leave(self.fairness.ended(owner));
        let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mean = self.shared.mean_micros.load(Ordering::Relaxed);
        let mean = if mean == 0 { micros } else { mean - mean / MEAN_OF + micros / MEAN_OF };
        self.shared.mean_micros.store(mean, Ordering::Relaxed);
    }
}

/// Converts a panic to an error.
fn guard<T>(f: impl FnOnce() -> Result<T, GenerateError>) -> Result<T, GenerateError> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(panic) => {
            let message = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(GenerateError::engine(format!("panic: {}", message.as_deref().unwrap_or("no message"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Backend, Engine, EngineOptions, GenerateError, GenerateRequest, GenerateStream, ModelDir};

    use super::*;

    #[test]
    fn a_panic_is_reported_and_the_engine_goes_on() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/fixtures/llama2");
        let engine = Engine::start(&ModelDir::open(dir).unwrap(), EngineOptions::default()).unwrap();
        let (sender, stream) = GenerateStream::channel();
        engine.send(Job::Panic(sender)).unwrap();
        let error = stream.blocking_finish().unwrap_err();
        assert!(matches!(&error, GenerateError::Engine { message } if message.contains("on purpose")), "{error}");
        let done = engine.generate(GenerateRequest::new("still there?")).unwrap().blocking_finish();
        assert!(done.is_ok(), "{done:?}");
    }
}
