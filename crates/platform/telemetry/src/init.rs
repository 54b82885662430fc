//! Sets up the process's subscriber and, when asked for, the export of traces.

use std::io::IsTerminal;
use std::time::Duration;

use autoact_config::{LogFormat, TelemetryConfig};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::trace_ids::WithTraceIds;

/// How long the last spans may take to leave at shutdown: a collector that is gone must not hold a
/// pod.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);
/// How long one export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Libraries below us whose spans are noise in a task's trace.
const QUIET: [&str; 7] = ["ractor", "h2", "hyper", "hyper_util", "tonic", "tower", "opentelemetry"];

/// Why telemetry could not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log level is not a filter.
    #[error("`{filter}` is no log filter ({reason}); use a level such as `info` or a filter such as `info,autoact_agent=debug`")]
    Filter {
        /// What was configured.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The trace exporter could not be made.
    #[error("cannot export traces to `{endpoint}`; use an address such as `http://127.0.0.1:4317`")]
    Exporter {
        /// What was configured.
        endpoint: String,
        /// What the exporter says.
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// Another subscriber is there already.
    #[error("telemetry was set up twice in one process")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
    /// The metrics recorder could not be made.
    #[error("cannot set up metrics")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
}

/// Keeps telemetry alive. Call [`Guard::shutdown`] last, so that the spans of the last calls leave
/// too.
#[derive(Debug)]
#[must_use = "traces stop when the guard is dropped"]
pub struct Guard {
    provider: Option<SdkTracerProvider>,
}

impl Guard {
    /// Sends what is left, within a time limit.
    pub async fn shutdown(mut self) {
        let Some(provider) = self.provider.take() else { return };
        let flush = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_LIMIT));
        match tokio::time::timeout(FLUSH_LIMIT, flush).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the last traces were not sent"),
            Ok(Err(_)) | Err(_) => tracing::warn!("the last traces were not sent in time"),
        }
    }

    /// Sends what has been recorded so far: for tests.
    pub async fn flush(&self) {
        if let Some(provider) = self.provider.clone() {
            let _ = tokio::task::spawn_blocking(move || provider.force_flush()).await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.take() {
            let _ = provider.shutdown_with_timeout(FLUSH_LIMIT);
        }
    }
}

/// Whether a log level is one; what is wrong with it otherwise.
pub fn check_filter(filter: &str) -> Result<(), TelemetryError> {
    parse_filter(filter).map(|_| ())
}

fn parse_filter(filter: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::builder().parse(filter).map_err(|error| TelemetryError::Filter { filter: filter.to_owned(), reason: error.to_string() })
}

/// Sets up logs and traces of this process. Needs a tokio runtime when traces are on.
pub fn init(config: &TelemetryConfig, service: &'static str, version: &'static str) -> Result<Guard, TelemetryError> {
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let filter = parse_filter(&config.log_level)?;
    let provider = match &config.otlp_endpoint {
        Some(endpoint) => Some(provider(endpoint, service, version)?),
        None => None,
    };
    let traces = provider.as_ref().map(|provider| {
        let quiet = QUIET.iter().map(|target| (*target, LevelFilter::OFF));
        let filter = Targets::new().with_default(LevelFilter::INFO).with_targets(quiet);
        tracing_opentelemetry::layer().with_tracer(provider.tracer("autoact")).with_location(false).with_threads(false).with_filter(filter)
    });
    // a reader of our logs that has gone away is no reason to fail, so errors of writing are not
    // reported (where, anyway?)
    let logs: Box<dyn Layer<Registry> + Send + Sync> = match config.log_format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            tracing_subscriber::fmt::layer()
                .log_internal_errors(false)
                .with_writer(std::io::stderr)
                .with_ansi(colours)
                .with_filter(filter)
                .boxed()
        }
        LogFormat::Json => {
            let json = tracing_subscriber::fmt::layer().log_internal_errors(false).json().flatten_event(true).with_writer(std::io::stderr);
            json.map_event_format(WithTraceIds).with_filter(filter).boxed()
        }
    };
    tracing_subscriber::registry().with(logs).with(traces).try_init().map_err(TelemetryError::Twice)?;
    Ok(Guard { provider })
}

fn provider(endpoint: &str, service: &'static str, version: &'static str) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(|source| TelemetryError::Exporter { endpoint: endpoint.to_owned(), source })?;
    let resource = Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", version))
        .with_attribute(KeyValue::new("service.instance.id", uuid::Uuid::new_v4().to_string()))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}
