//! Work at a service's start that takes long: waited for as long as it makes progress.

use std::future::Future;
use std::time::Duration;

use autoact_base::progress::Progress;
use tokio::time::Instant;

use crate::error::StartError;
use crate::setup::Setup;

/// How often progress is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// Work that takes less is not spoken of.
const SILENT: Duration = Duration::from_secs(2);
/// How often the log says how far it is.
const LOG_PERIOD: Duration = Duration::from_secs(10);

impl Setup {
    /// Waits for `work` without a limit while the bytes that `progress` counts grow, and also while
    /// it counts none. Meanwhile `/readyz` tells how far it is, and so does the log after two
    /// seconds and then every ten.
    ///
    /// # Errors
    /// The count stood still for as long as the setting `start_limit` allows.
    pub async fn while_it_goes_on<T>(
        &self,
        name: &'static str,
        progress: &Progress,
        work: impl Future<Output = T>,
    ) -> Result<T, StartError> {
        let missing = self.readiness().worked_on(name, progress.clone());
        let outcome = while_it_goes_on(name, self.common().start_limit, progress, work).await;
        if outcome.is_ok() {
            missing.set(true);
        }
        outcome
    }
}

/// What was seen of a phase of counted work.
struct Phase {
    begun: Instant,
    done: u64,
    moved: Instant,
    told: Option<Instant>,
}

async fn while_it_goes_on<T>(name: &str, limit: Duration, progress: &Progress, work: impl Future<Output = T>) -> Result<T, StartError> {
    let mut work = std::pin::pin!(work);
    let mut phase = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep(LOOK_PERIOD) => {}
        }
        let now = Instant::now();
        let Some(look) = progress.look() else {
            phase = None;
            continue;
        };
        let phase = phase.get_or_insert(Phase { begun: now, done: look.done, moved: now, told: None });
        if phase.done != look.done {
            (phase.done, phase.moved) = (look.done, now);
        }
        if now - phase.moved >= limit {
            let limit = autoact_config::duration::format(limit);
            let told = format!("`{name}` made no progress for {limit} (`start_limit`): {look}");
            return Err(StartError::new(told).fix("check the disk or the network that the files are on"));
        }
        if now - phase.begun >= SILENT && phase.told.is_none_or(|told| now - told >= LOG_PERIOD) {
            tracing::info!("reading the files of `{name}`: {look}");
            phase.told = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(280);

    #[tokio::test(start_paused = true)]
    async fn what_makes_progress_is_waited_for_whatever_the_limit() {
        let (progress, begun) = (Progress::default(), Instant::now());
        let work = async {
            progress.begin(15_000_000_000);
            for _ in 0..150 {
                // slower than the limit in all, and just faster between two bytes
                tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
                progress.add(1);
            }
            progress.end();
            // what is not counted has no limit
            tokio::time::sleep(LIMIT * 3).await;
            "opened"
        };
        assert_eq!(while_it_goes_on("model", LIMIT, &progress, work).await.unwrap(), "opened");
        assert!(begun.elapsed() > LIMIT * 150);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stands_still_is_given_up() {
        let (progress, begun) = (Progress::default(), Instant::now());
        let work = async {
            progress.begin(15_000_000_000);
            tokio::time::sleep(Duration::from_secs(60)).await;
            progress.add(3_000_000_000);
            std::future::pending::<()>().await;
        };
        let error = while_it_goes_on("model", LIMIT, &progress, work).await.unwrap_err().to_string();
        assert!(error.starts_with("`model` made no progress for 4m40s (`start_limit`): 3.0 of 15.0 GB, "), "{error}");
        assert!(error.ends_with("; fix: check the disk or the network that the files are on"), "{error}");
        assert_eq!(begun.elapsed().as_secs(), 60 + LIMIT.as_secs());
    }
}
