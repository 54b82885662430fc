//! Calls an agent again while it is unreachable or busy, within the task's time.

use std::time::Duration;

use tokio::time::Instant;

use crate::agents::AgentError;

/// The first pause.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest one, unless the agent asks for more.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long one agent may keep a task waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// When the task's own time is over.
    pub(crate) deadline: Instant,
    /// How long the agent may be unreachable.
    pub(crate) unreachable: Duration,
    /// How long one call may take.
    pub(crate) call: Duration,
}

impl Patience {
    /// Calls until there is an answer, or an error that a repetition does not mend.
    pub(crate) async fn call<T, F>(&self, call: impl FnMut(Duration) -> F) -> Result<T, AgentError>
    where
        F: Future<Output = Result<T, AgentError>>,
    {
        self.attempts(call).await.0
    }

    /// The same, with the time at which the last attempt began.
    pub(crate) async fn attempts<T, F>(&self, mut call: impl FnMut(Duration) -> F) -> (Result<T, AgentError>, Instant)
    where
        F: Future<Output = Result<T, AgentError>>,
    {
        let mut pause = FIRST_PAUSE;
        let mut gone_since = None;
        loop {
            let now = Instant::now();
            // a call with no time left still says who was asked
            let limit = self.call.min(self.deadline.saturating_duration_since(now)).max(Duration::from_millis(1));
            let error = match call(limit).await {
                Ok(answer) => return (Ok(answer), now),
                Err(error) => error,
            };
            let until = if error.unreachable() {
                *gone_since.get_or_insert(now) + self.unreachable
            } else if error.busy() {
                gone_since = None;
                self.deadline
            } else {
                return (Err(error), now);
            };
            let wait = error.retry_after().unwrap_or(pause);
            if Instant::now() + wait >= until.min(self.deadline) {
                return (Err(error), now);
            }
            tracing::debug!(%error, ?wait, "asking an agent again");
            metrics::counter!("autoact_agent_retries_total").increment(1);
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_proto::status::{ServiceError, to_status};
    use tonic::Code;

    #[derive(Debug, thiserror::Error)]
    #[error("no")]
    struct No(Code, Option<Duration>);

    impl ServiceError for No {
        fn code(&self) -> Code {
            self.0
        }
        fn reason(&self) -> &'static str {
            "NO"
        }
        fn retry_after(&self) -> Option<Duration> {
            self.1
        }
    }

    fn error(code: Code, after: Option<Duration>) -> AgentError {
        AgentError::Call { agent: "plan-agent", address: "a".into(), status: Box::new(to_status(&No(code, after))) }
    }

    fn patience(deadline: u64, unreachable: u64) -> Patience {
        Patience {
            deadline: Instant::now() + Duration::from_secs(deadline),
            unreachable: Duration::from_secs(unreachable),
            call: Duration::from_secs(60),
        }
    }

    async fn failing(patience: Patience, make: impl Fn(u32) -> Option<AgentError>) -> (Result<u32, AgentError>, Duration, u32) {
        let start = Instant::now();
        let mut calls = 0;
        let outcome = patience
            .call(|_| {
                calls += 1;
                let answer = make(calls).map_or(Ok(calls), Err);
                async move { answer }
            })
            .await;
        (outcome, start.elapsed(), calls)
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_comes_back_is_waited_for() {
        let (outcome, ..) = failing(patience(60, 15), |calls| (calls < 4).then(|| error(Code::Unavailable, None))).await;
        assert_eq!(outcome.unwrap(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_stays_away_is_given_up() {
        let (outcome, took, _) = failing(patience(60, 15), |_| Some(error(Code::Unavailable, None))).await;
        assert!(outcome.unwrap_err().unreachable());
        assert!(took > Duration::from_secs(10) && took < Duration::from_secs(16), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_agent_is_waited_for_as_long_as_the_task_has_time() {
        let (outcome, took, calls) =
            failing(patience(60, 15), |_| Some(error(Code::ResourceExhausted, Some(Duration::from_secs(10))))).await;
        assert!(outcome.unwrap_err().busy());
        assert!(took >= Duration::from_secs(50) && calls == 6, "{took:?} {calls}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_repetition_does_not_mend_is_not_repeated() {
        let (outcome, _, calls) = failing(patience(60, 15), |_| Some(error(Code::InvalidArgument, None))).await;
        assert!(outcome.is_err());
        assert_eq!(calls, 1);
    }
}
