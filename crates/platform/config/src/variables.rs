//! Which variables with our prefix set what, and which are no settings at all.

use crate::{COMMON_SECTION, SECTIONS, VARIABLE_PREFIX};

/// Names the configuration file when no `--config` flag does.
pub const CONFIG_VARIABLE: &str = "AUTOACT_CONFIG";

/// Variables with our prefix that are not settings of a service, each with who reads it. Services
/// may find them in their environment: `autoact up` and the tests hand theirs on.
pub const OTHER_VARIABLES: [(&str, &str); 35] = [
    (CONFIG_VARIABLE, "every service: its configuration file"),
    ("AUTOACT_BUF", "scripts/fetch-buf: the program that lints proto/"),
    ("AUTOACT_EMULATED_TILES", "the tests of crates/engine/kernels: the machine is that of tests/tiles/run"),
    ("AUTOACT_FAILPOINTS", "test builds of every service: points at which the process ends or stalls"),
    ("AUTOACT_FAKETIME", "scripts/fetch-faketime and the test that sets clocks"),
    ("AUTOACT_GATEWAY", "the `autoact` command: default of `--gateway`"),
    ("AUTOACT_ISA", "the kernels (crates/engine/kernels), in every process that runs a model"),
    ("AUTOACT_KUSTOMIZE", "scripts/fetch-kustomize and the tests of the manifests"),
    ("AUTOACT_LEARN_MODEL", "meta-agent: default of `--model`"),
    ("AUTOACT_LEARN_PROMOTE", "meta-agent: default of `--promote`"),
    ("AUTOACT_LEARN_PUBLISH", "meta-agent: default of `--publish`"),
    ("AUTOACT_LEARN_QUICK", "meta-agent: default of `--quick`"),
    ("AUTOACT_LEARN_RUN", "meta-agent: default of `--run`"),
    ("AUTOACT_LEARN_TASK", "meta-agent: default of `--task`"),
    ("AUTOACT_LEARN_UNTIL", "meta-agent: default of `--until`"),
    ("AUTOACT_LEARN_VARIANTS", "meta-agent: default of `--variants`"),
    ("AUTOACT_MEMORY", "the `autoact` command: default of `--memory`"),
    ("AUTOACT_NATS_SERVER", "`autoact up`, scripts/fetch-nats and the tests: the program nats-server"),
    ("AUTOACT_STATE_DIR", "`autoact up` and `autoact down`: default of `--state-dir`"),
    ("AUTOACT_TEST_CALENDAR", "the tests of crates/serving/calendar: a file of 10,000 time differences"),
    ("AUTOACT_TEST_DATA", "the tests of crates/lab/datasets: published samples"),
    ("AUTOACT_TEST_EMBEDDER", "the tests of crates/engine/embedding: the directory of the real weights"),
    ("AUTOACT_TEST_HTTPBIN", "the tests of crates/serving/http-tools: the address of a running httpbin"),
    ("AUTOACT_TEST_LONG", "the whole-system tests: kills and mixed fleets go on for minutes"),
    ("AUTOACT_TEST_MCP", "the tests of crates/serving/mcp-tools: a Python interpreter with the package mcp"),
    ("AUTOACT_TEST_MEDIAWIKI", "the tests of crates/serving/web-tools: the api.php of a running MediaWiki"),
    ("AUTOACT_TEST_OPENAPI", "the tests of crates/serving/http-tools: a directory of OpenAPI documents"),
    ("AUTOACT_THREADS", "the benchmark kernel_throughput"),
    ("AUTOACT_TLS_CA", "the `autoact` command: default of `--tls-ca`"),
    ("AUTOACT_TLS_CERT", "the `autoact` command: default of `--tls-cert`"),
    ("AUTOACT_TLS_KEY", "the `autoact` command: default of `--tls-key`"),
    ("AUTOACT_TOKEN", "the `autoact` command: the token that it sends, in place of `--token-file`"),
    ("AUTOACT_TOKEN_FILE", "the `autoact` command: default of `--token-file`"),
    ("AUTOACT_WRITE_RELEASED", "the tests of crates/platform/wire: record the contracts of a release"),
    ("AUTOACT_WRITE_SAMPLES", "the tests of crates/domain/trajectory: write samples instead of reading them"),
];

/// The settings of each service: the first parts of their keys. A variable that names no service is
/// for every service that has the setting, and no mistake of those that have not.
pub const SETTINGS: [(&str, &[&str]); 5] = [
    (
        "gateway",
        &[
            "access",
            "agents",
            "approval",
            "bus",
            "drain",
            "limits",
            "max_attempts",
            "max_limits",
            "max_open",
            "max_running",
            "max_tasks",
            "max_watchers",
            "memory",
            "quota",
            "recall",
            "replicas",
            "run_tenants",
            "tenant",
            "tool_choice",
        ],
    ),
    ("plan-agent", &["adapter", "adapter_announcements", "adapter_registry", "backend", "engine", "model"]),
    (
        "tool-agent",
        &[
            "adapter",
            "adapter_announcements",
            "adapter_registry",
            "backend",
            "corpus",
            "engine",
            "max_runs",
            "memory",
            "model",
            "own_tools",
            "receipts",
            "remembered",
            "tools",
        ],
    ),
    ("reflect-agent", &["adapter", "adapter_announcements", "adapter_registry", "backend", "engine", "model"]),
    (
        "memory",
        &[
            "access",
            "conversation_ttl",
            "data_dir",
            "documents_dir",
            "documents_store",
            "embedder",
            "embedder_dir",
            "embedder_server",
            "qdrant",
            "store",
            "task_ttl",
        ],
    ),
];

/// What a variable sets in one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// The setting's key, in its parts.
    pub(crate) path: Vec<String>,
    /// It names no service, so that it is for every service that has the setting.
    pub(crate) for_all: bool,
}

/// What a variable sets in the service `section`: `AUTOACT_NATS__URL` is `nats.url`;
/// `AUTOACT_PLAN_AGENT__QUEUE` is `queue`, of `plan-agent` only. `None` if it is not ours, no
/// setting, or another service's.
pub(crate) fn named(name: &str, value: &str, section: &str) -> Option<Named> {
    let rest = name.strip_prefix(VARIABLE_PREFIX)?;
    if OTHER_VARIABLES.iter().any(|(other, _)| *other == name) || is_service_link(rest, value) {
        return None;
    }
    let mut path: Vec<String> = rest.split("__").map(str::to_ascii_lowercase).collect();
    let first = path[0].replace('_', "-");
    if path.len() == 1 || !SECTIONS.contains(&first.as_str()) {
        return Some(Named { path, for_all: true });
    }
    if first != section && first != COMMON_SECTION {
        return None;
    }
    path.remove(0);
    Some(Named { path, for_all: false })
}

/// Whether any service has a setting that begins with this part of a key.
pub(crate) fn some_service_has(first: &str) -> bool {
    SETTINGS.iter().any(|(_, keys)| keys.contains(&first))
}

/// Kubernetes tells every pod about every service (`X_SERVICE_HOST`, `X_PORT`, `X_PORT_7400_TCP`
/// …); a service named `autoact-…` gives those our prefix.
fn is_service_link(name: &str, value: &str) -> bool {
    let link = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && link)
        || name.rsplit_once("_PORT_").is_some_and(|(_, tail)| {
            tail.split('_').next().is_some_and(|port| port.parse::<u16>().is_ok())
                && ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| tail.contains(protocol))
        })
}
