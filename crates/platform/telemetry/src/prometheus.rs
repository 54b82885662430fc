//! The metrics recorder of the process and the HTTP routes that show it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds: from a cached planning step to the longest task and the longest call of an agent, an
/// hour. Each is two to three times the one before.
pub const SECONDS_BUCKETS: [f64; 21] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
/// How often [`upkeep`] sorts new samples into their buckets: what is not sorted yet takes 24 bytes
/// each.
pub const UPKEEP_PERIOD: Duration = Duration::from_secs(5);
/// Shares, such as a confidence: finest where approvals are decided.
const SHARE_BUCKETS: [f64; 13] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 1.0];
/// Everything else: counts of tokens, of bytes.
const COUNT_BUCKETS: [f64; 11] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];

/// What a service still waits for; ready when empty.
pub type Waiting = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// The recorder of this process, installed on first use.
pub fn recorder() -> Result<PrometheusHandle, BuildError> {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    if let Some(handle) = HANDLE.get() {
        return Ok(handle.clone());
    }
    let recorder = PrometheusBuilder::new()
        .set_buckets(&COUNT_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)?
        .set_buckets_for_metric(Matcher::Suffix("_confidence".to_owned()), &SHARE_BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    Ok(HANDLE
        .get_or_init(|| {
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder was there first; `/metrics` stays empty");
            }
            handle
        })
        .clone())
}

/// Keeps the histograms small, scraped or not: the recorder holds every sample until it is sorted
/// into a bucket. Without end.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP_PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}

/// `/metrics`, `/livez` (503 with what is `stuck` for good; only a new process helps) and `/readyz` (503 with what it waits for, until it
/// can serve).
pub fn router(handle: PrometheusHandle, waiting: Waiting, stuck: Waiting) -> Router {
    Router::new()
        .route(
            "/metrics",
            get(move || async move {
                handle.run_upkeep();
                ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], handle.render())
            }),
        )
        .route(
            "/livez",
            get(move || async move {
                let stuck = stuck();
                if stuck.is_empty() {
                    (StatusCode::OK, "ok\n".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("stuck: {}\n", stuck.join(", ")))
                }
            }),
        )
        .route(
            "/readyz",
            get(move || async move {
                let waiting = waiting();
                if waiting.is_empty() {
                    (StatusCode::OK, "ready\n".to_owned())
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready, waiting for: {}\n", waiting.join(", ")))
                }
            }),
        )
}
