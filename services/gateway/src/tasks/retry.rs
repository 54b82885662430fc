//! Retrying a task from a step: a new task, which shares the history up to there.

use std::time::{Duration, Instant};

use autoact_access::{Principal, Role};
use autoact_trajectory::{Digest, EventBody, Limits, NotShared, Sampling, Submitted, Task, TaskId, shared};
use autoact_wire::store::digest;

use crate::tasks::{Application, SubmitError, TaskError, key, name};

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Retry {
    /// The task whose history is shared.
    pub(crate) origin: TaskId,
    /// The first step that is made anew, from 1.
    pub(crate) from: u32,
    /// The new task's id; `None`: one is made.
    pub(crate) id: Option<TaskId>,
    /// Bounds that differ from the first task's.
    pub(crate) bounds: Bounds,
    /// Another seed than the first task's.
    pub(crate) seed: Option<u64>,
    /// The trace that the request came in; empty: none.
    pub(crate) trace_id: String,
}

/// Bounds that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_reflections: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) max_time: Option<Duration>,
}

impl Bounds {
    fn over(&self, limits: &Limits) -> Limits {
        Limits {
            max_steps: self.max_steps.unwrap_or(limits.max_steps),
            max_reflections: self.max_reflections.unwrap_or(limits.max_reflections),
            max_tokens: self.max_tokens.unwrap_or(limits.max_tokens),
            max_time: self.max_time.unwrap_or(limits.max_time),
        }
    }
}

impl Retry {
    /// SHA-256 over all that makes the request, the same in every release: a request that is sent
    /// again is the same task.
    fn digest(&self, limits: &Limits, seed: u64) -> Digest {
        let Limits { max_steps, max_reflections, max_tokens, max_time } = *limits;
        let asked = [u64::from(self.from), max_steps.into(), max_reflections.into(), max_tokens.into(), seed].map(|part| part.to_string());
        digest(format!("retry {} {} {}", self.origin, asked.join(" "), max_time.as_nanos()).as_bytes())
    }
}

impl Application {
    /// Submits a task that goes on from a step of another, which may have ended or not. The other
    /// stays as it is.
    pub(crate) async fn retry(&self, who: &Principal, retry: Retry, received: Instant) -> Result<Task, SubmitError> {
        who.require(Role::Ask)?;
        let source = key(who, &retry.origin);
        let events = self.bus.load(&source).await?;
        let Some(EventBody::Submitted(first)) = events.first().map(|event| &event.body) else {
            let before = self.retried_before(who, &retry).await?;
            return before.ok_or_else(|| SubmitError::Origin(Box::new(TaskError::NotFound(retry.origin))));
        };
        let origin = match shared(&events, retry.from) {
            Ok(found) => found.origin,
            Err(NotShared::Fold(source)) => return Err(SubmitError::Fold { task: retry.origin, source: Box::new(source) }),
            Err(source) => return Err(SubmitError::Step { task: retry.origin, source }),
        };
        let limits = retry.bounds.over(&first.limits);
        self.check_limits(&limits)?;
        let seed = retry.seed.unwrap_or(first.sampling.seed);
        let request = retry.digest(&limits, seed);
        let submitted = Submitted {
            limits,
            sampling: Sampling { seed, ..first.sampling },
            request: Some(request),
            trace_id: retry.trace_id,
            // a policy that has become stricter holds
            approval: first.approval.max(self.approvals.of(&who.tenant)),
            origin: Some(Box::new(origin)),
            by: name(who),
            ..first.clone()
        };
        if let Some(id) = &retry.id
            && let Some(task) = self.existing(&key(who, id), request, &submitted.question).await?
        {
            return Ok(task);
        }
        self.new_task(who, received)?;
        let key = key(who, &retry.id.unwrap_or_else(TaskId::generate));
        let _entering = self.admit_new(who, &key).await?;
        self.accept(&key, submitted, received).await
    }

    /// The task that the same request made before the task whose history it shares was deleted.
    async fn retried_before(&self, who: &Principal, retry: &Retry) -> Result<Option<Task>, SubmitError> {
        let Some(id) = &retry.id else { return Ok(None) };
        let events = self.bus.load(&key(who, id)).await?;
        let Some(EventBody::Submitted(made)) = events.first().map(|event| &event.body) else { return Ok(None) };
        // its bounds are the first task's with those of the request over them
        let request = retry.digest(&retry.bounds.over(&made.limits), retry.seed.unwrap_or(made.sampling.seed));
        if made.request != Some(request) { Ok(None) } else { self.existing(&key(who, id), request, &made.question).await }
    }
}
