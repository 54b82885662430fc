//! The gateway's settings.

mod approval;
mod quota;
mod recall;
mod replicas;
mod tool_choice;

use std::path::PathBuf;
use std::time::Duration;

use autoact_access::{AccessConfig, AccessMode};
use autoact_bus::{BusConfig, NatsConfig};
use autoact_config::{Check, Common, Section};
use autoact_trajectory::{Limits, Tenant};
use serde::{Deserialize, Serialize};

pub use self::approval::ApprovalConfig;
pub use self::quota::{QuotaConfig, TenantQuotaConfig};
pub use self::recall::RecallConfig;
pub use self::replicas::ReplicasConfig;
pub use self::tool_choice::ToolChoiceConfig;

/// First of the five services.
const GRPC_PORT: u16 = 7400;
/// A hundred above.
const METRICS_PORT: u16 = 7500;
/// The planning agent's default address.
const PLAN_AGENT: &str = "http://127.0.0.1:7401";
/// The tool agent's default address.
const TOOL_AGENT: &str = "http://127.0.0.1:7402";
/// The reflecting agent's default address.
const REFLECT_AGENT: &str = "http://127.0.0.1:7403";
/// The memory service's default address.
const MEMORY: &str = "http://127.0.0.1:7404";
/// Longer than the slowest reply on a busy laptop; an agent that is silent for longer hangs.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);
/// An agent that restarts is back within seconds: its model is mapped, not copied.
const AGENT_PATIENCE: Duration = Duration::from_secs(15);
/// The agents batch what they are asked at once; more at a time only makes every task slower.
const MAX_RUNNING: usize = 32;
/// Each holds two subscriptions and a stream: 26 KiB.
const MAX_WATCHERS: usize = 2048;
/// What is queued beyond this would wait longer than a person does.
const MAX_TASKS: u64 = 1024;
/// A task that fails this often in a row takes its gateway down with it.
const MAX_ATTEMPTS: u32 = 5;
/// Most tasks end in less; the rest pass to another gateway. Well below the grace period.
const DRAIN: Duration = Duration::from_secs(10);
/// The largest bounds a client may ask for.
const MAX_LIMITS: Limits = Limits { max_steps: 100, max_reflections: 20, max_tokens: 1 << 20, max_time: Duration::from_secs(60 * 60) };

/// The settings of `[gateway]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Where the three agents are.
    pub agents: AgentsConfig,
    /// How calls are shared among the replicas of an agent, and of memory.
    pub replicas: ReplicasConfig,
    /// Where the memory service is, like `agents.plan`; empty: finished tasks are not remembered.
    #[serde(deserialize_with = "replicas::addresses")]
    pub memory: String,
    /// What is recalled of a task's conversation.
    pub recall: RecallConfig,
    /// How tools are chosen from a large library.
    pub tool_choice: ToolChoiceConfig,
    /// Whose tasks come in here from callers without a token: 1 to 32 characters of `[a-z0-9-]`.
    pub tenant: String,
    /// Other tenants whose tasks this gateway runs. None, where callers have tokens: every tenant.
    pub run_tenants: Vec<String>,
    /// Who may call.
    pub access: AccessConfig,
    /// What one tenant may have.
    pub quota: QuotaConfig,
    /// Which actions wait for a person's approval.
    pub approval: ApprovalConfig,
    /// Tasks that this gateway runs at a time.
    pub max_running: usize,
    /// Clients that may watch tasks here at a time; more are refused with a retry delay.
    pub max_watchers: usize,
    /// Tasks that may be queued or running, over all gateways; more are refused with a retry delay.
    pub max_tasks: u64,
    /// Tasks that may be open, over all gateways: queued, running or held back; new ones are refused
    /// with a retry delay. 0: eight times `max_tasks`.
    pub max_open: u64,
    /// How often a task is taken up without getting any further before it ends as failed.
    pub max_attempts: u32,
    /// How long running tasks may go on after SIGTERM; then another gateway gets them.
    #[serde(with = "autoact_config::duration")]
    pub drain: Duration,
    /// The bounds of a task that asks for none.
    pub limits: LimitsConfig,
    /// The largest bounds a task may ask for.
    pub max_limits: LimitsConfig,
    /// The bus, beyond its address.
    pub bus: BusSettings,
}

/// The agents' addresses: each is one, several with commas between them, or a list. A host that is
/// a name may have many addresses, and each of them is a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// Plan-Agent.
    #[serde(deserialize_with = "replicas::addresses")]
    pub plan: String,
    /// Tool-Agent.
    #[serde(deserialize_with = "replicas::addresses")]
    pub tool: String,
    /// Reflect-Agent.
    #[serde(deserialize_with = "replicas::addresses")]
    pub reflect: String,
    /// How long one call may take, within the task's own time.
    #[serde(with = "autoact_config::duration")]
    pub timeout: Duration,
    /// How long an agent may be away before the task waits in the queue instead of here.
    #[serde(with = "autoact_config::duration")]
    pub patience: Duration,
}

/// Bounds of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Planning loops.
    pub max_steps: u32,
    /// Verdicts "wrong".
    pub max_reflections: u32,
    /// Completion tokens over all agents.
    pub max_tokens: u32,
    /// From the moment the task is first taken up.
    #[serde(with = "autoact_config::duration")]
    pub max_time: Duration,
}

/// The bus, beyond its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusSettings {
    /// A NATS credentials file; the same as `nats.credentials_file`.
    pub credentials: Option<PathBuf>,
    /// How long one attempt to connect at start may take; attempts go on for `start_limit`.
    #[serde(with = "autoact_config::duration")]
    pub connect: Duration,
    /// How long one operation may go on trying, a restart of the server included.
    #[serde(with = "autoact_config::duration")]
    pub patience: Duration,
    /// Copies of every message, in a NATS cluster. Like the next two, it holds when the streams are
    /// made.
    pub replicas: usize,
    /// Most bytes of trajectories to keep; the tasks that ended first go before it is reached.
    pub max_bytes: i64,
    /// Most bytes of artifacts to keep for each tenant, reserved when the first one comes; a full
    /// store makes tasks wait.
    pub max_artifact_bytes: i64,
    /// How long the trajectories of ended tasks are kept, and how long a task may be held back.
    #[serde(with = "autoact_config::duration")]
    pub max_age: Duration,
    /// How long after the death of a gateway its tasks pass to another.
    #[serde(with = "autoact_config::duration")]
    pub lease: Duration,
    /// Most tasks that run at a time over all gateways.
    pub max_leases: u32,
    /// The HTTP monitoring of the NATS servers, comma separated: it says whether they write to their
    /// disks before they acknowledge.
    pub monitoring: String,
    /// Start although they do not, or although that is unknown: what was acknowledged may be lost.
    pub allow_unsynced: bool,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            agents: AgentsConfig::default(),
            replicas: ReplicasConfig::default(),
            memory: MEMORY.to_owned(),
            recall: RecallConfig::default(),
            tool_choice: ToolChoiceConfig::default(),
            tenant: Tenant::default().to_string(),
            run_tenants: Vec::new(),
            access: AccessConfig::default(),
            quota: QuotaConfig::default(),
            approval: ApprovalConfig::default(),
            max_running: MAX_RUNNING,
            max_watchers: MAX_WATCHERS,
            max_tasks: MAX_TASKS,
            max_open: 0,
            max_attempts: MAX_ATTEMPTS,
            drain: DRAIN,
            limits: Limits::default().into(),
            max_limits: MAX_LIMITS.into(),
            bus: BusSettings::default(),
        }
    }
}

impl Default for AgentsConfig {
    fn default() -> Self {
        AgentsConfig {
            plan: PLAN_AGENT.to_owned(),
            tool: TOOL_AGENT.to_owned(),
            reflect: REFLECT_AGENT.to_owned(),
            timeout: AGENT_TIMEOUT,
            patience: AGENT_PATIENCE,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Limits::default().into()
    }
}

impl Default for BusSettings {
    fn default() -> Self {
        let BusConfig { nats: _, name: _, connect_limit, patience, replicas, max_bytes, max_artifact_bytes, max_age, lease, max_leases } =
            BusConfig::new("");
        BusSettings {
            credentials: None,
            connect: connect_limit,
            patience,
            replicas,
            max_bytes,
            max_artifact_bytes,
            max_age,
            lease,
            max_leases,
            monitoring: String::new(),
            allow_unsynced: false,
        }
    }
}

impl From<Limits> for LimitsConfig {
    fn from(limits: Limits) -> Self {
        let Limits { max_steps, max_reflections, max_tokens, max_time } = limits;
        LimitsConfig { max_steps, max_reflections, max_tokens, max_time }
    }
}

impl From<LimitsConfig> for Limits {
    fn from(limits: LimitsConfig) -> Self {
        let LimitsConfig { max_steps, max_reflections, max_tokens, max_time } = limits;
        Limits { max_steps, max_reflections, max_tokens, max_time }
    }
}

impl BusSettings {
    /// How the bus is reached: as `nats` says, unless there is a credentials file here.
    pub fn nats(&self, nats: &NatsConfig) -> NatsConfig {
        let credentials_file = self.credentials.clone().or_else(|| nats.credentials_file.clone());
        NatsConfig { credentials_file, ..nats.clone() }
    }

    /// What a connection of the process `name` to the servers at `url` needs.
    pub fn config(&self, url: &str, name: &str) -> BusConfig {
        let BusSettings {
            credentials: _,
            connect,
            patience,
            replicas,
            max_bytes,
            max_artifact_bytes,
            max_age,
            lease,
            max_leases,
            monitoring: _,
            allow_unsynced: _,
        } = self.clone();
        let nats = self.nats(&NatsConfig::at(url));
        BusConfig {
            nats,
            name: name.to_owned(),
            connect_limit: connect,
            patience,
            replicas,
            max_bytes,
            max_artifact_bytes,
            max_age,
            lease,
            max_leases,
        }
    }
}

impl Section for GatewayConfig {
    const NAME: &'static str = "gateway";

    fn common() -> Common {
        Common::on_ports(GRPC_PORT, METRICS_PORT)
    }

    fn validate(&self, common: &Common, check: &mut Check<'_>) {
        let duration = autoact_config::duration::format;
        let addresses = [("agents.plan", &self.agents.plan), ("agents.tool", &self.agents.tool), ("agents.reflect", &self.agents.reflect)];
        let memory = (!self.memory.is_empty()).then_some(("memory", &self.memory));
        for (key, address) in addresses.into_iter().chain(memory) {
            let valid = autoact_wire::client::is_address(address);
            check.require(valid, key, "an address such as `http://127.0.0.1:7401`, or several with commas between them", address);
        }
        for (key, time) in
            [("agents.timeout", self.agents.timeout), ("agents.patience", self.agents.patience), ("bus.patience", self.bus.patience)]
        {
            check.require(!time.is_zero(), key, "above 0", duration(time));
        }
        self.replicas.check(check);
        self.recall.check(check);
        self.tool_choice.check(check);
        self.quota.check(check);
        self.approval.check(check);
        self.access.check(check);
        // whoever reaches the port could do everything: on this machine alone that is no surprise
        let decided = common.listen.ip().is_loopback() || self.access.mode != AccessMode::Auto || self.access.is_set_up();
        let expected =
            "`open` (anybody may do everything), or `access.tokens` or `access.jwt.jwks` be set, where `listen` is no loopback address";
        check.require(decided, "access.mode", expected, "auto");
        check.require((1..=10_000).contains(&self.max_running), "max_running", "1 to 10000", self.max_running);
        for (key, tenant) in std::iter::once(("tenant", &self.tenant)).chain(self.run_tenants.iter().map(|tenant| ("run_tenants", tenant)))
        {
            check.require(tenant.parse::<Tenant>().is_ok(), key, "1 to 32 characters of a-z, 0-9 and `-`", tenant);
        }
        check.require(self.max_watchers > 0, "max_watchers", "at least 1", self.max_watchers);
        check.require(self.max_tasks > 0, "max_tasks", "at least 1", self.max_tasks);
        let open = self.max_open == 0 || self.max_open >= self.max_tasks;
        check.require(open, "max_open", &format!("0, or at least `max_tasks` ({})", self.max_tasks), self.max_open);
        check.require(self.max_attempts > 0, "max_attempts", "at least 1", self.max_attempts);
        let grace = duration(common.grace_period);
        check.require(self.drain < common.grace_period, "drain", &format!("below `grace_period` ({grace})"), duration(self.drain));
        for (key, limits, most) in [("limits", self.limits, Some(self.max_limits)), ("max_limits", self.max_limits, None)] {
            let numbers = [limits.max_steps, limits.max_reflections, limits.max_tokens];
            let positive = numbers.iter().all(|number| *number > 0) && !limits.max_time.is_zero();
            check.require(positive, key, "all above 0", format_args!("{limits:?}"));
            let within = most.is_none_or(|most| {
                limits.max_steps <= most.max_steps
                    && limits.max_reflections <= most.max_reflections
                    && limits.max_tokens <= most.max_tokens
                    && limits.max_time <= most.max_time
            });
            check.require(within, key, "within `max_limits`", format_args!("{limits:?}"));
        }
        check.require((1..=5).contains(&self.bus.replicas), "bus.replicas", "1 to 5", self.bus.replicas);
        check.require(self.bus.max_bytes > 0, "bus.max_bytes", "above 0", self.bus.max_bytes);
        check.require(self.bus.max_artifact_bytes > 0, "bus.max_artifact_bytes", "above 0", self.bus.max_artifact_bytes);
        check.require(self.bus.lease >= Duration::from_secs(1), "bus.lease", "at least 1s", duration(self.bus.lease));
        check.require(self.bus.max_leases > 0, "bus.max_leases", "at least 1", self.bus.max_leases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(autoact_config::load::<GatewayConfig>(&autoact_config::Sources::default()).unwrap().service, GatewayConfig::default());
    }

    #[test]
    fn a_door_to_the_network_says_who_may_come_in() {
        let with = |settings: &[(&str, &str)]| {
            let flags = settings.iter().map(|(key, value)| ("set".to_owned(), (*key).to_owned(), (*value).to_owned())).collect();
            autoact_config::load::<GatewayConfig>(&autoact_config::Sources { flags, ..Default::default() })
        };
        let listen = ("listen", "0.0.0.0:7400");
        let jwt = [("access.jwt.jwks", "keys.json"), ("access.jwt.issuer", "i"), ("access.jwt.audience", "a")];
        // what is encrypted is another question
        let plain = ("tls.insecure", "true");
        let told = with(&[listen, plain]).unwrap_err().to_string();
        assert!(told.contains("`open`") && told.contains("access.tokens") && told.contains("access.jwt.jwks"), "{told}");
        assert!(with(&[listen, plain, ("access.mode", "open")]).is_ok());
        assert!(with(&[listen, plain, ("access.tokens", "tokens.toml")]).unwrap().service.access.is_required());
        assert!(with(&[listen, plain, jwt[0], jwt[1], jwt[2]]).unwrap().service.access.is_required());
        assert!(with(&[listen, plain, jwt[0]]).is_err(), "whose, and for whom");
        assert!(with(&[("access.mode", "required")]).is_err(), "by what");
        assert!(!with(&[]).unwrap().service.access.is_required());
        let quota = with(&[("quota.tasks", "7"), ("quota.tenants.ops.tasks", "9")]).unwrap().service.quota;
        assert_eq!((quota.tasks, quota.tenants["ops"].tasks), (7, Some(9)));
    }

    #[test]
    fn mistakes_are_reported_together() {
        let flags = [("agents.plan", ""), ("max_running", "0"), ("drain", "1h"), ("limits.max_steps", "1000"), ("bus.replicas", "9")];
        let flags = flags.iter().map(|(key, value)| ("set".to_owned(), (*key).to_owned(), (*value).to_owned())).collect();
        let errors = autoact_config::load::<GatewayConfig>(&autoact_config::Sources { flags, ..Default::default() }).unwrap_err();
        assert_eq!(errors.mistakes.len(), 5, "{errors}");
    }
}
