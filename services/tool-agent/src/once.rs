//! Runs a step at most once in the life of this process: what the first run returned is what every repetition returns.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use autoact_trajectory::Action;
use tokio::sync::OnceCell;

use crate::error::ExecuteError;

/// (task, step): what makes two calls the same call.
type Key = (String, u32);

/// The outcomes of the last `capacity` steps.
#[derive(Debug)]
pub(crate) struct Once<T> {
    capacity: usize,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    steps: HashMap<Key, Slot<T>>,
    order: VecDeque<Key>,
}

#[derive(Debug, Clone)]
struct Slot<T> {
    action: Action,
    outcome: Arc<OnceCell<T>>,
}

impl<T: Clone> Once<T> {
    pub(crate) fn new(capacity: usize) -> Once<T> {
        Once { capacity: capacity.max(1), inner: Mutex::new(Inner { steps: HashMap::new(), order: VecDeque::new() }) }
    }

    /// The outcome of the step: from its first run, which may still be going on, or from `run`. A run that fails may be tried again.
    pub(crate) async fn get<E, F>(&self, task: &str, step: u32, action: &Action, run: impl FnOnce() -> F) -> Result<T, E>
    where
        E: From<ExecuteError>,
        F: Future<Output = Result<T, E>>,
    {
        let slot = self.slot((task.to_owned(), step), action);
        if slot.action != *action {
            let named = |action: &Action| format!("{}[{}]", action.tool, action.params);
            let (ran, asked) = (named(&slot.action), named(action));
            return Err(ExecuteError::OtherAction { task: task.to_owned(), step, ran, asked }.into());
        }
        slot.outcome.get_or_try_init(run).await.cloned()
    }

    fn slot(&self, key: Key, action: &Action) -> Slot<T> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = inner.steps.get(&key) {
            return slot.clone();
        }
        if inner.order.len() >= self.capacity
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.steps.remove(&oldest);
        }
        let slot = Slot { action: action.clone(), outcome: Arc::default() };
        inner.order.push_back(key.clone());
        inner.steps.insert(key, slot.clone());
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(params: &str) -> Action {
        Action { tool: "Send".into(), params: params.into() }
    }

    #[tokio::test]
    async fn the_second_call_gets_the_first_result() {
        let once: Once<u32> = Once::new(2);
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
    async fn a_failed_run_may_be_tried_again() {
        let once: Once<u32> = Once::new(2);
        let failed = once.get("t", 1, &action("x"), || async { Err::<u32, _>(ExecuteError::Missing("action")) }).await;
        assert!(failed.is_err());
        assert_eq!(once.get("t", 1, &action("x"), || async { Ok::<_, ExecuteError>(5) }).await.unwrap(), 5);
    }

    #[tokio::test]
    async fn a_step_has_one_action() {
        let once: Once<u32> = Once::new(2);
        once.get("t", 1, &action("x"), || async { Ok::<_, ExecuteError>(5) }).await.unwrap();
        let other = once.get("t", 1, &action("y"), || async { Ok::<_, ExecuteError>(6) }).await;
        assert!(matches!(other, Err(ExecuteError::OtherAction { .. })));
    }
}
