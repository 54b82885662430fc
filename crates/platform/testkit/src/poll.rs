//! Waiting for what other processes do: always with a deadline, never with a bare sleep.

use std::time::Duration;

use tokio::time::Instant;

/// How often a condition is looked at again.
const PERIOD: Duration = Duration::from_millis(20);

/// Asks `check` until it gives a value; `None` when `limit` has passed.
pub async fn until<T>(limit: Duration, mut check: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    let mut interval = tokio::time::interval(PERIOD);
    loop {
        interval.tick().await;
        if let Some(value) = check().await {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
    }
}

/// [`until`] for tests: an error that names `what` when `limit` has passed.
pub async fn poll_until<T>(limit: Duration, what: &str, check: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
    until(limit, check).await.ok_or_else(|| anyhow::anyhow!("waited {limit:?} for {what}"))
}

/// `work`, or an error that names `what` when `limit` has passed.
pub async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> anyhow::Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(value) => Ok(value),
        Err(_) => anyhow::bail!("{what} took more than {limit:?}"),
    }
}
