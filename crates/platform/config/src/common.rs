//! The settings every service has.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::door::DoorConfig;
use crate::nats::NatsConfig;
use crate::tls::TlsConfig;

/// In-flight calls get this long after SIGTERM: below the 30 s that Kubernetes waits before it
/// kills.
pub const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(25);
/// What a service needs may be missing this long at its start, and work without progress may last
/// this long: below the 300 s that the start-up probes of `k8s/` allow.
pub const DEFAULT_START_LIMIT: Duration = Duration::from_secs(280);
/// Where a NATS server listens unless told otherwise.
pub const DEFAULT_NATS_URL: &str = "nats://127.0.0.1:4222";
/// Shows starts, stops and trouble, one line per call at most.
pub const DEFAULT_LOG_LEVEL: &str = "info";

/// Settings that every service has, with the same names everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// The address the gRPC server binds; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address that serves `/metrics`, `/livez` and `/readyz`.
    pub metrics_listen: SocketAddr,
    /// How long in-flight calls may take to finish after SIGTERM.
    #[serde(with = "crate::duration")]
    pub grace_period: Duration,
    /// How long the service waits at its start for what it needs, before it gives up. Work that
    /// makes progress, such as reading weights, is waited for as long as it takes.
    #[serde(with = "crate::duration")]
    pub start_limit: Duration,
    /// The bus.
    pub nats: NatsConfig,
    /// Logs and traces.
    pub telemetry: TelemetryConfig,
    /// Who may connect, and how it is known who is who.
    pub tls: TlsConfig,
    /// The limits of the gRPC port and of the HTTP port.
    pub door: DoorConfig,
}

impl Common {
    /// The names of the shared settings: the first segment of their keys.
    pub const KEYS: [&str; 8] = ["listen", "metrics_listen", "grace_period", "start_limit", "nats", "telemetry", "tls", "door"];

    /// The defaults of a service that owns these two ports. Only this machine can reach them:
    /// opening up is a decision.
    pub fn on_ports(grpc: u16, metrics: u16) -> Common {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Common {
            listen: SocketAddr::new(local, grpc),
            metrics_listen: SocketAddr::new(local, metrics),
            grace_period: DEFAULT_GRACE_PERIOD,
            start_limit: DEFAULT_START_LIMIT,
            nats: NatsConfig::default(),
            telemetry: TelemetryConfig::default(),
            tls: TlsConfig::default(),
            door: DoorConfig::default(),
        }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// Logs, traces and what they may contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// OTLP over gRPC, e.g. `http://127.0.0.1:4317`. Without it (and without the standard
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`) no trace leaves.
    pub otlp_endpoint: Option<String>,
    /// `text` or `json`.
    pub log_format: LogFormat,
    /// A level, or a filter such as `info,autoact_agent=debug`.
    pub log_level: String,
    /// Put prompts and replies into traces. Off: they may hold private data.
    pub capture_content: bool,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        TelemetryConfig {
            otlp_endpoint: None,
            log_format: LogFormat::default(),
            log_level: DEFAULT_LOG_LEVEL.to_owned(),
            capture_content: false,
        }
    }
}
