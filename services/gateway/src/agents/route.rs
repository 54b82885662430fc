//! Where the attempts of one call go: to the replica of its key, and after a failure to another.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use autoact_base::random::stable_hash;
use autoact_planning::{Failure, FailureClass};
use autoact_replicas::{Call, Id, Outcome, Pool, Unresolved};

/// A call that gets no answer for shorter says nothing about its replica: its task had no time left.
const SILENT: Duration = Duration::from_secs(5);

/// The way of one call: cheap to clone, and its clones are the same call.
#[derive(Debug, Clone)]
pub(crate) struct Route(Arc<Way>);

#[derive(Debug)]
struct Way {
    pool: Arc<Pool>,
    key: u64,
    state: Mutex<Tried>,
}

#[derive(Debug, Default)]
struct Tried {
    /// Replicas that the call failed on, of late.
    replicas: Vec<Id>,
    /// The one that it went to last.
    last: Option<Id>,
}

impl Route {
    /// The way of a call of `key`: all calls with the same key go to the same replica, as long as
    /// that is well.
    pub(crate) fn new(pool: &Arc<Pool>, key: &str) -> Route {
        Route(Arc::new(Way { pool: pool.clone(), key: stable_hash(key), state: Mutex::default() }))
    }

    /// Begins the next attempt.
    pub(crate) async fn begin(&self) -> Result<Call, Unresolved> {
        let tried = {
            let mut tried = self.tried();
            if self.0.pool.all_tried(&tried.replicas) {
                tried.replicas.clear();
            }
            tried.replicas.clone()
        };
        let call = self.0.pool.call(self.0.key, &tried).await?;
        let mut tried = self.tried();
        tried.last = Some(call.id);
        tried.replicas.push(call.id);
        Ok(call)
    }

    /// The replica of the last attempt.
    pub(crate) fn last(&self) -> Option<Id> {
        self.tried().last
    }

    /// Whether the call is repeated on another replica at once. One that was refused as too much
    /// for a replica may be little for another.
    pub(crate) fn moves_on(&self, failure: &Failure) -> bool {
        let helps = match failure.class {
            FailureClass::NotSent | FailureClass::Busy | FailureClass::MayHaveRun => true,
            FailureClass::TimedOut | FailureClass::Refused | FailureClass::Broken | FailureClass::Fenced => false,
        };
        helps && self.0.pool.may_move(&self.tried().replicas)
    }

    fn tried(&self) -> std::sync::MutexGuard<'_, Tried> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the end of an attempt says about its replica.
pub(crate) fn outcome(class: FailureClass, took: Duration) -> Outcome {
    match class {
        FailureClass::NotSent | FailureClass::MayHaveRun => Outcome::Failed,
        FailureClass::TimedOut if took >= SILENT => Outcome::Silent,
        FailureClass::TimedOut | FailureClass::Busy | FailureClass::Refused | FailureClass::Broken | FailureClass::Fenced => {
            Outcome::Answered
        }
    }
}
