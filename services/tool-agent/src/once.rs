//! Runs a step at most once in the life of this process: what the first run returned is what every
//! repetition returns.
//!
//! Memory is bounded twice: by a number of steps, and by bytes. Where the bytes are spent, the
//! oldest outcomes are dropped first. What is kept of such a step is that it ran, so that a
//! repetition is refused instead of run again.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use autoact_trajectory::Action;
use tokio::sync::OnceCell;

use crate::error::ExecuteError;

/// What one step takes beyond its texts, about: its places in the tables and its pointers.
const STEP_BYTES: usize = 256;

/// (task, step): what makes two calls the same call.
type Key = Arc<(String, u32)>;

/// An outcome whose memory can be counted.
pub(crate) trait Weigh {
    /// Its size in bytes, texts included.
    fn bytes(&self) -> usize;
}

/// The outcomes of the last steps: at most `steps` of them, and about `bytes` in all.
#[derive(Debug)]
pub(crate) struct Once<T> {
    steps: usize,
    bytes: usize,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    entries: HashMap<Key, Entry<T>>,
    /// Every entry, by the order of the first calls.
    called: BTreeMap<u64, Key>,
    /// The entries whose outcome is held, by the order in which the runs ended.
    ended: BTreeMap<u64, Key>,
    /// Numbers calls and ends.
    clock: u64,
    /// What all entries take.
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    action: Action,
    called: u64,
    outcome: Outcome<T>,
}

#[derive(Debug)]
enum Outcome<T> {
    /// Nobody has run the step to its end yet.
    Open(Arc<OnceCell<T>>),
    /// It ran; when it ended and how much its outcome takes.
    Held { cell: Arc<OnceCell<T>>, ended: u64, bytes: usize },
    /// It ran, and its outcome had to make room.
    Dropped,
}

impl<T: Clone + Weigh> Once<T> {
    pub(crate) fn new(steps: usize, bytes: usize) -> Once<T> {
        let inner = Inner { entries: HashMap::new(), called: BTreeMap::new(), ended: BTreeMap::new(), clock: 0, bytes: 0 };
        Once { steps: steps.max(1), bytes, inner: Mutex::new(inner) }
    }

    /// The outcome of the step: from its first run, which may still be going on, or from `run`. A
    /// run that fails may be tried again.
    pub(crate) async fn get<E, F>(&self, task: &str, step: u32, action: &Action, run: impl FnOnce() -> F) -> Result<T, E>
    where
        E: From<ExecuteError>,
        F: Future<Output = Result<T, E>>,
    {
        let key = Arc::new((task.to_owned(), step));
        let cell = self.cell(&key, action)?;
        let outcome = cell.get_or_try_init(run).await.cloned();
        self.settle(&key, cell);
        outcome
    }

    /// Where the step's outcome is, or will be.
    fn cell(&self, key: &Key, action: &Action) -> Result<Arc<OnceCell<T>>, ExecuteError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = inner.entries.get(key) {
            let (task, step) = (key.0.clone(), key.1);
            if entry.action != *action {
                let named = |action: &Action| format!("{}[{}]", action.tool, action.params);
                let (ran, asked) = (named(&entry.action), named(action));
                return Err(ExecuteError::OtherAction { task, step, ran, asked });
            }
            return match &entry.outcome {
                Outcome::Open(cell) | Outcome::Held { cell, .. } => Ok(Arc::clone(cell)),
                Outcome::Dropped => Err(ExecuteError::OutcomeDropped { task, step }),
            };
        }
        let cell = Arc::new(OnceCell::new());
        let called = inner.tick();
        let entry = Entry { action: action.clone(), called, outcome: Outcome::Open(Arc::clone(&cell)) };
        inner.bytes += entry.bytes(key);
        inner.called.insert(called, Arc::clone(key));
        inner.entries.insert(Arc::clone(key), entry);
        inner.shrink(self.steps, self.bytes);
        Ok(cell)
    }

    /// Takes note of how a run ended: its outcome is counted, or the step is as if it had never
    /// been called.
    fn settle(&self, key: &Key, cell: Arc<OnceCell<T>>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = inner.tick();
        let Some(entry) = inner.entries.get_mut(key) else { return };
        // another call of the same step may have been here first
        if !matches!(&entry.outcome, Outcome::Open(open) if Arc::ptr_eq(open, &cell)) {
            return;
        }
        let Some(bytes) = cell.get().map(Weigh::bytes) else {
            drop(cell);
            if entry.is_idle() {
                inner.remove(key);
            }
            return;
        };
        entry.outcome = Outcome::Held { cell, ended, bytes };
        inner.bytes += bytes;
        inner.ended.insert(ended, Arc::clone(key));
        inner.shrink(self.steps, self.bytes);
    }
}

impl<T> Inner<T> {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Makes room: outcomes go first, the longest held first, then whole steps. A step that runs
    /// stays; how many run at once is bounded elsewhere.
    fn shrink(&mut self, steps: usize, bytes: usize) {
        while self.bytes > bytes
            && let Some((_, oldest)) = self.ended.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&oldest)
                && let Outcome::Held { bytes, .. } = std::mem::replace(&mut entry.outcome, Outcome::Dropped)
            {
                self.bytes -= bytes;
            }
        }
        while self.entries.len() > steps || self.bytes > bytes {
            let idle = |key: &&Key| self.entries.get(*key).is_none_or(Entry::is_idle);
            let Some(oldest) = self.called.values().find(idle).cloned() else { return };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.called.remove(&entry.called);
        self.bytes -= entry.bytes(key);
        if let Outcome::Held { ended, bytes, .. } = entry.outcome {
            self.ended.remove(&ended);
            self.bytes -= bytes;
        }
    }
}

impl<T> Entry<T> {
    /// What the step takes without its outcome.
    fn bytes(&self, key: &Key) -> usize {
        STEP_BYTES + key.0.len() + self.action.tool.len() + self.action.params.len()
    }

    /// Nobody runs it now, and nobody is about to.
    fn is_idle(&self) -> bool {
        match &self.outcome {
            Outcome::Open(cell) => Arc::strong_count(cell) == 1,
            Outcome::Held { .. } | Outcome::Dropped => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weigh for u32 {
        fn bytes(&self) -> usize {
            4
        }
    }

    impl Weigh for String {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    const PLENTY: usize = 1024 * 1024;

    fn action(params: &str) -> Action {
        Action { tool: "Send".into(), params: params.into() }
    }

    fn held<T>(once: &Once<T>) -> (usize, usize) {
        let inner = once.inner.lock().unwrap();
        assert_eq!(inner.called.len(), inner.entries.len());
        let outcome = |entry: &Entry<T>| if let Outcome::Held { bytes, .. } = &entry.outcome { *bytes } else { 0 };
        let counted: usize = inner.entries.iter().map(|(key, entry)| entry.bytes(key) + outcome(entry)).sum();
        assert_eq!(counted, inner.bytes);
        (inner.entries.len(), inner.bytes)
    }

    #[tokio::test]
    async fn the_second_call_gets_the_first_result() {
        let once: Once<u32> = Once::new(2, PLENTY);
        let run =
            async |step: u32, value: u32| once.get("t", step, &action("x"), || async move { Ok::<_, ExecuteError>(value) }).await.unwrap();
        assert_eq!(run(1, 10).await, 10);
        assert_eq!(run(1, 11).await, 10);
        assert_eq!(run(2, 20).await, 20);
        // the third step pushes the first one out
        assert_eq!(run(3, 30).await, 30);
        assert_eq!(run(1, 12).await, 12);
    }

    #[tokio::test]
    async fn a_failed_run_may_be_tried_again_and_holds_nothing() {
        let once: Once<u32> = Once::new(2, PLENTY);
        let failed = once.get("t", 1, &action("x"), || async { Err::<u32, _>(ExecuteError::Missing("action")) }).await;
        assert!(failed.is_err());
        assert_eq!(held(&once), (0, 0));
        assert_eq!(once.get("t", 1, &action("x"), || async { Ok::<_, ExecuteError>(5) }).await.unwrap(), 5);
    }

    #[tokio::test]
    async fn a_step_has_one_action() {
        let once: Once<u32> = Once::new(2, PLENTY);
        once.get("t", 1, &action("x"), || async { Ok::<_, ExecuteError>(5) }).await.unwrap();
        let other = once.get("t", 1, &action("y"), || async { Ok::<_, ExecuteError>(6) }).await;
        assert!(matches!(other, Err(ExecuteError::OtherAction { .. })));
    }

    #[tokio::test]
    async fn memory_is_bounded_and_what_ran_is_not_run_again() {
        let once: Once<String> = Once::new(1000, 10_000);
        let run = async |step: u32, length: usize| {
            once.get("t", step, &action("x"), || async move { Ok::<_, ExecuteError>("x".repeat(length)) }).await
        };
        for step in 1..=20 {
            assert_eq!(run(step, 4000).await.unwrap().len(), 4000);
            assert!(held(&once).1 <= 10_000, "{step}: {:?}", held(&once));
        }
        assert_eq!(held(&once).0, 20, "that they ran is known of all");
        assert_eq!(run(20, 1).await.unwrap().len(), 4000, "the last outcome is held");
        assert!(matches!(run(1, 1).await, Err(ExecuteError::OutcomeDropped { step: 1, .. })));
        // one that is larger than all there is: its caller gets it, and that it ran is known
        assert_eq!(run(21, 20_000).await.unwrap().len(), 20_000);
        assert!(matches!(run(21, 1).await, Err(ExecuteError::OutcomeDropped { step: 21, .. })));
        // the steps alone are bounded too, by what their actions take
        for step in 100..200 {
            run(step, 1).await.unwrap();
            assert!(held(&once).1 <= 10_000, "{step}: {:?}", held(&once));
        }
        assert!(held(&once).0 < 50);
    }

    #[tokio::test]
    async fn a_step_that_runs_is_not_pushed_out() {
        let once: Once<u32> = Once::new(1, PLENTY);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (first, again) = (action("x"), action("x"));
        let slow = once.get("t", 1, &first, || async move {
            let _ = ended.await;
            Ok::<_, ExecuteError>(1)
        });
        let others = async {
            for step in 2..5 {
                assert_eq!(once.get("t", step, &action("x"), || async move { Ok::<_, ExecuteError>(step) }).await.unwrap(), step);
            }
            end.send(()).unwrap();
            once.get("t", 1, &again, || async { Ok::<_, ExecuteError>(2) }).await.unwrap()
        };
        let (slow, repeated) = tokio::join!(slow, others);
        assert_eq!((slow.unwrap(), repeated), (1, 1));
        assert_eq!(held(&once).0, 1);
    }
}
