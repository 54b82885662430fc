//! Calls an agent again while that may help, within the task's time.

use std::time::Duration;

use autoact_planning::{Failure, FailureClass};
use tokio::time::Instant;

use crate::agents::route::Route;

/// The first pause.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest one, unless the agent asks for more.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long one agent may keep a task waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When the task's own time is over.
    pub(crate) deadline: Instant,
    /// How long the agent may be away, from the first failure on.
    pub(crate) away: Duration,
    /// How long one call may take.
    pub(crate) call: Duration,
}

/// One attempt at a call.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// 1 for the first.
    pub(crate) number: u32,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// An attempt before it may have been carried out.
    pub(crate) may_have_run: bool,
    /// Where it goes; `None` leaves that to who is called.
    pub(crate) route: Option<Route>,
}

impl Patience {
    /// Calls until there is an answer, or a failure that a repetition does not mend.
    pub(crate) async fn call<T, F>(&self, call: impl FnMut(Attempt) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.attempts(None, call).await.0
    }

    /// The same on a route, with the time at which the last attempt began. As long as another
    /// replica may help, there is no pause.
    pub(crate) async fn attempts<T, F>(&self, route: Option<&Route>, mut call: impl FnMut(Attempt) -> F) -> (Result<T, Failure>, Instant)
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let (mut pause, mut away_since, mut number, mut may_have_run) = (FIRST_PAUSE, None, 0, false);
        loop {
            let began = Instant::now();
            number += 1;
            // a call with no time left still says who was asked
            let limit = self.call.min(self.deadline.saturating_duration_since(began)).max(Duration::from_millis(1));
            let failure = match call(Attempt { number, limit, may_have_run, route: route.cloned() }).await {
                Ok(answer) => return (Ok(answer), began),
                Err(failure) => failure,
            };
            let until = match failure.class {
                // counted from the failure: a call that ran for a minute before its agent died is
                // tried again like any other
                FailureClass::NotSent | FailureClass::MayHaveRun => *away_since.get_or_insert_with(Instant::now) + self.away,
                FailureClass::Busy => {
                    away_since = None;
                    self.deadline
                }
                FailureClass::TimedOut | FailureClass::Refused | FailureClass::Broken | FailureClass::Fenced => {
                    return (Err(failure), began);
                }
            };
            may_have_run |= failure.class.may_have_run();
            let now = Instant::now();
            if now < self.deadline && route.is_some_and(|route| route.moves_on(&failure)) {
                tracing::debug!(failure = failure.chain(), class = failure.class.as_str(), "asking another replica");
                metrics::counter!("autoact_agent_retries_total", "class" => failure.class.as_str()).increment(1);
                continue;
            }
            // who was told when to come back is; others do not all come at once
            let wait = failure.retry_after.unwrap_or_else(|| autoact_replicas::jitter(pause));
            if Instant::now() + wait >= until.min(self.deadline) {
                return (Err(failure), began);
            }
            tracing::debug!(failure = failure.chain(), class = failure.class.as_str(), ?wait, "asking again");
            metrics::counter!("autoact_agent_retries_total", "class" => failure.class.as_str()).increment(1);
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass, after: Option<Duration>) -> Failure {
        Failure { retry_after: after, ..Failure::new(class, "plan-agent", "no") }
    }

    fn patience(deadline: u64, away: u64) -> Patience {
        Patience {
            deadline: Instant::now() + Duration::from_secs(deadline),
            away: Duration::from_secs(away),
            call: Duration::from_secs(60),
        }
    }

    /// The outcome, how long it took, and how many calls were made. Each call takes `each`.
    async fn failing(patience: Patience, each: u64, make: impl Fn(u32) -> Option<Failure>) -> (Result<u32, Failure>, Duration, u32) {
        let start = Instant::now();
        let mut calls = 0;
        let outcome = patience
            .call(|attempt| {
                calls += 1;
                assert_eq!(attempt.number, calls);
                let answer = make(calls).map_or(Ok(calls), Err);
                async move {
                    tokio::time::sleep(Duration::from_secs(each)).await;
                    answer
                }
            })
            .await;
        (outcome, start.elapsed(), calls)
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_comes_back_is_waited_for() {
        for class in [FailureClass::NotSent, FailureClass::MayHaveRun] {
            let (outcome, ..) = failing(patience(60, 15), 0, |calls| (calls < 4).then(|| failure(class, None))).await;
            assert_eq!(outcome.unwrap(), 4);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_stays_away_is_given_up() {
        let (outcome, took, _) = failing(patience(60, 15), 0, |_| Some(failure(FailureClass::NotSent, None))).await;
        assert_eq!(outcome.unwrap_err().class, FailureClass::NotSent);
        assert!(took > Duration::from_secs(10) && took < Duration::from_secs(16), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn patience_counts_from_the_first_failure() {
        // the first call is longer than the patience, and is tried again all the same
        let broke = |calls| (calls < 2).then(|| failure(FailureClass::MayHaveRun, None));
        let (outcome, _, calls) = failing(patience(600, 15), 40, broke).await;
        assert_eq!((outcome.unwrap(), calls), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_agent_is_waited_for_as_long_as_the_task_has_time() {
        let busy = |_| Some(failure(FailureClass::Busy, Some(Duration::from_secs(10))));
        let (outcome, took, calls) = failing(patience(60, 15), 0, busy).await;
        assert_eq!(outcome.unwrap_err().class, FailureClass::Busy);
        assert!(took >= Duration::from_secs(50) && calls == 6, "{took:?} {calls}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_repetition_does_not_mend_is_not_repeated() {
        for class in [FailureClass::TimedOut, FailureClass::Refused, FailureClass::Broken, FailureClass::Fenced] {
            let (outcome, _, calls) = failing(patience(60, 15), 0, |_| Some(failure(class, None))).await;
            assert!(outcome.is_err());
            assert_eq!(calls, 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_after_one_that_may_have_run_says_so() {
        let mut said = Vec::new();
        let classes = [FailureClass::NotSent, FailureClass::Busy, FailureClass::MayHaveRun, FailureClass::NotSent];
        let patience = patience(60, 15);
        let answer = patience.call(|attempt| {
            said.push(attempt.may_have_run);
            let class = classes.get(said.len() - 1).copied();
            async move { class.map_or(Ok(()), |class| Err(failure(class, None))) }
        });
        answer.await.unwrap();
        assert_eq!(said, [false, false, false, true, true]);
    }
}
