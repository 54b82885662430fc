//! What a service needs from others: waited for at its start, and looked at while it serves.

use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{StartError, one_line};
use crate::readiness::Condition;
use crate::setup::Setup;

/// The first pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest one: how late we may notice that it is there.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often the log says that we still wait.
const LOG_PERIOD: Duration = Duration::from_secs(10);

type Cause = Box<dyn Error + Send + Sync>;

/// Why something is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence<E> {
    /// It may come: try again.
    Missing(E),
    /// Waiting does not help: a wrong address, a wrong password.
    Refused(E),
}

/// How something that a service needs is looked at while it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// From the end of one check to the next.
    pub period: Duration,
    /// How long one check may take; then it has failed.
    pub limit: Duration,
    /// So many failures in a row make the service not ready. One success makes it ready again.
    pub failures: u32,
}

impl Default for Checks {
    /// Noticed within ten seconds, and not misled by one lost packet.
    fn default() -> Checks {
        Checks { period: Duration::from_secs(2), limit: Duration::from_secs(2), failures: 2 }
    }
}

impl Setup {
    /// Tries until `attempt` succeeds, for as long as the setting `start_limit` allows. Meanwhile
    /// `/readyz` names it, and the log tells of the first failure and every ten seconds.
    pub async fn wait_for<T, E, F>(&self, name: &'static str, attempt: impl FnMut() -> F) -> Result<T, StartError>
    where
        E: Into<Cause>,
        F: Future<Output = Result<T, Absence<E>>>,
    {
        let missing = self.condition(name);
        let outcome = wait_for(name, self.common().start_limit, attempt).await;
        if outcome.is_ok() {
            missing.set(true);
        }
        outcome
    }

    /// Ready only while `check` succeeds. It should try what the service's calls will need: that a
    /// socket is connected does not mean that anything behind it works.
    pub fn ready_while<E, F>(&self, name: &'static str, checks: Checks, check: impl FnMut() -> F + Send + 'static)
    where
        E: Display + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        self.tasks().spawn(name, watch(name, self.condition(name), checks, check));
    }
}

async fn wait_for<T, E, F>(name: &str, limit: Duration, mut attempt: impl FnMut() -> F) -> Result<T, StartError>
where
    E: Into<Cause>,
    F: Future<Output = Result<T, Absence<E>>>,
{
    let begun = Instant::now();
    let deadline = begun + limit;
    let (mut pause, mut told) = (FIRST_PAUSE, None::<Instant>);
    loop {
        let error = match tokio::time::timeout_at(deadline, attempt()).await {
            Ok(Ok(there)) => {
                if told.is_some() {
                    tracing::info!(waited = ?begun.elapsed(), "`{name}` is there");
                }
                return Ok(there);
            }
            Ok(Err(Absence::Refused(error))) => return Err(StartError::new(error)),
            Ok(Err(Absence::Missing(error))) => error.into(),
            Err(_) => Cause::from(format!("no answer from `{name}`")),
        };
        if Instant::now() + pause >= deadline {
            let limit = autoact_config::duration::format(limit);
            let told = format!("waited {limit} (`start_limit`) for `{name}`: {}", one_line(error.as_ref()));
            // its own advice is better than ours
            let advised = told.contains("; fix: ");
            let failure = StartError::new(told);
            return Err(if advised { failure } else { failure.fix(format!("start `{name}`, or correct its address")) });
        }
        if told.is_none_or(|told| told.elapsed() >= LOG_PERIOD) {
            let error = one_line(error.as_ref());
            tracing::warn!(waited = ?begun.elapsed(), ?limit, error, "`{name}` is not there yet; trying again");
            told = Some(Instant::now());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn watch<E, F>(name: &'static str, condition: Condition, checks: Checks, mut check: impl FnMut() -> F)
where
    E: Display,
    F: Future<Output = Result<(), E>>,
{
    let mut works = None;
    let mut failures = 0;
    loop {
        let failure = match tokio::time::timeout(checks.limit, check()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {:?}", checks.limit)),
        };
        failures = if failure.is_some() { failures + 1 } else { 0 };
        match failure {
            None => {
                if works == Some(false) {
                    tracing::info!("`{name}` works again");
                }
                works = Some(true);
                condition.set(true);
            }
            Some(error) if works != Some(false) && failures >= checks.failures.max(1) => {
                tracing::warn!(error, "`{name}` does not work; not ready");
                works = Some(false);
                condition.set(false);
            }
            Some(_) => {}
        }
        tokio::time::sleep(checks.period).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::readiness::Readiness;

    /// Comes with the given attempt.
    async fn comes_with(attempt: u32, limit: Duration) -> (Result<u32, StartError>, Duration) {
        let (attempts, begun) = (Cell::new(0), Instant::now());
        let outcome = wait_for("bus", limit, || {
            attempts.set(attempts.get() + 1);
            let count = attempts.get();
            async move { if count >= attempt { Ok(count) } else { Err(Absence::Missing("connection refused")) } }
        });
        (outcome.await, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_is_waited_for_until_the_limit() {
        let (there, took) = comes_with(30, Duration::from_secs(280)).await;
        assert_eq!(there.unwrap(), 30);
        assert!(took > Duration::from_secs(100) && took < Duration::from_secs(280), "{took:?}");
        let (gone, took) = comes_with(u32::MAX, Duration::from_secs(280)).await;
        let told = "waited 4m40s (`start_limit`) for `bus`: connection refused; fix: start `bus`, or correct its address";
        assert_eq!(gone.unwrap_err().to_string(), told);
        assert!(took > Duration::from_secs(270) && took <= Duration::from_secs(280), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_the_limit_and_a_refusal_at_once() {
        let begun = Instant::now();
        let hangs = wait_for("bus", Duration::from_secs(20), std::future::pending::<Result<(), Absence<&str>>>).await;
        assert!(hangs.unwrap_err().to_string().contains("no answer from `bus`; fix: "));
        assert_eq!(begun.elapsed().as_secs(), 20);
        let refused = wait_for("bus", Duration::from_secs(20), || async { Err::<(), _>(Absence::Refused("wrong password")) }).await;
        assert_eq!(refused.unwrap_err().to_string(), "wrong password");
        assert_eq!(begun.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_follows_what_really_works() {
        const WORKS: u32 = 0;
        const FAILS: u32 = 1;
        const HANGS: u32 = 2;
        let (readiness, state) = (Readiness::default(), Arc::new(AtomicU32::new(HANGS)));
        let now = Arc::clone(&state);
        let checks = Checks { period: Duration::from_secs(2), limit: Duration::from_secs(1), failures: 2 };
        let watching = tokio::spawn(watch("bus", readiness.condition("bus"), checks, move || {
            let state = now.load(Ordering::Relaxed);
            async move {
                match state {
                    WORKS => Ok(()),
                    FAILS => Err("no stream"),
                    _ => std::future::pending().await,
                }
            }
        }));
        let until = async |ready: bool| {
            let begun = Instant::now();
            while readiness.is_ready() != ready {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            begun.elapsed().as_secs()
        };
        assert_eq!(readiness.waiting(), ["bus"], "nobody is told that it is there before it was looked at");
        for broken in [FAILS, HANGS] {
            state.store(WORKS, Ordering::Relaxed);
            assert!(until(true).await <= 3);
            state.store(broken, Ordering::Relaxed);
            // the second failure in a row counts, not the first
            assert!((2..=7).contains(&until(false).await));
        }
        watching.abort();
    }
}
