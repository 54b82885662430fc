//! The gateway as a service: what is started, and in which order it ends.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use autoact_access::{Anonymous, Authority, Caller, Guard, Principal};
use autoact_bus::{Bus, BusConfig, BusError, Encode, OpenTasks, check_durability};
use autoact_planning::{Memories, NoMemories};
use autoact_service::{Absence, Checks, Flag, Service, Setup, StartError};
use autoact_trajectory::Tenant;
use autoact_wire::store;
use ractor::Actor;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::catalog::Catalog;
use crate::agents::choice::{Chooser, Embeddings};
use crate::agents::documents::{Shelves, documents};
use crate::agents::memory::{Forgetter, Rememberer};
use crate::agents::recall::Conversations;
use crate::agents::remote::{self, Peer};
use crate::config::GatewayConfig;
use crate::doors::grpc;
use crate::run::RunContext;
use crate::run::dispatcher::Dispatcher;
use crate::run::sweep;
use crate::run::tenants::{Tenants, deliver_all};
use crate::run::work::{Work, listen};
use crate::tasks::Application;
use crate::tasks::approval::Approvals;
use crate::tasks::quota::{Quota, Quotas};

/// As many times as many tasks may be open as may be queued or running, where no setting says.
const OPEN_PER_TASK: u64 = 8;

/// The gateway.
#[derive(Debug)]
pub struct Gateway;

impl Service for Gateway {
    type Config = GatewayConfig;

    const ABOUT: &'static str = "Accepts tasks, runs the planning loop with the three agents, and streams what happens.";

    fn flags() -> Vec<Flag> {
        vec![
            Flag { name: "plan-agent", key: "agents.plan", value: "URL", help: "Where Plan-Agent is" },
            Flag { name: "tool-agent", key: "agents.tool", value: "URL", help: "Where Tool-Agent is" },
            Flag { name: "reflect-agent", key: "agents.reflect", value: "URL", help: "Where Reflect-Agent is" },
            Flag { name: "memory", key: "memory", value: "URL", help: "Where the memory service is; empty for none" },
            Flag { name: "tenant", key: "tenant", value: "NAME", help: "Whose tasks come in here from callers without a token" },
            Flag { name: "max-running", key: "max_running", value: "N", help: "Tasks this gateway runs at a time" },
        ]
    }

    async fn build(config: GatewayConfig, setup: &mut Setup) -> Result<(), StartError> {
        build(config, setup, store::encode).await
    }
}

/// Builds the gateway, which writes events as `encode` does. Another encoder than this release's is
/// for tests of mixed fleets.
///
/// # Errors
/// What the configuration names is not there, or is not right.
pub async fn build(config: GatewayConfig, setup: &mut Setup, encode: Encode) -> Result<(), StartError> {
    let writer = format!("gateway-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
    let connector = setup.connector();
    let memory = match config.memory.as_str() {
        "" => None,
        address => Some(Peer::new("memory", address, &config.replicas, &connector).map_err(StartError::new)?),
    };
    let documents = memory.as_ref().map(documents);
    let memory = memory.as_ref().map(remote::memory);
    let tenant: Tenant = config.tenant.parse().map_err(StartError::new)?;
    let mut first = vec![tenant.clone()];
    for other in &config.run_tenants {
        let other = other.parse().map_err(StartError::new)?;
        if !first.contains(&other) {
            first.push(other);
        }
    }
    let authority = open(&config, setup).await?;
    // a gateway that is told which tenants to run runs these alone
    let required = config.access.is_required();
    let tenants = Arc::new(Tenants::new(first.clone(), required && config.run_tenants.is_empty()));
    let nats = config.bus.nats(&setup.common().nats);
    let connection = BusConfig { nats, ..config.bus.config("", &writer) };
    let bus = setup.wait_for("NATS", || connect(connection.clone())).await?.writing(encode);
    if config.bus.allow_unsynced {
        tracing::warn!("`bus.allow_unsynced` is set: what NATS has acknowledged may be lost with its machine");
    } else {
        setup.wait_for("NATS monitoring", || durable(config.bus.monitoring.clone())).await?;
    }
    let memories: Arc<dyn Memories> = match &memory {
        Some(service) => Arc::new(Conversations { service: service.clone(), bus: bus.clone(), config: config.recall.clone() }),
        None => Arc::new(NoMemories),
    };
    let embeddings = documents.clone().map(|documents| documents as Arc<dyn Embeddings>);
    let clients = remote::clients(&connector, &config.agents, &config.replicas, bus.clone(), memories).map_err(StartError::new)?;
    let leases = bus.leases(&first).await.map_err(StartError::new)?.following(tenants.subscribe());
    let (draining, leaving) = (setup.draining(), CancellationToken::new());
    let context = Arc::new(RunContext {
        bus: bus.clone(),
        agents: clients.agents.clone(),
        memory: Rememberer::new(memory.as_ref().map(|_| bus.clone())),
        writer: writer.clone(),
        max_attempts: config.max_attempts,
        draining: draining.clone(),
    });
    let (running, settling) = (watch::Sender::new(0), TaskTracker::new());
    let dispatcher = Dispatcher { context, running: running.clone(), settling: settling.clone() };
    let (dispatcher, ended) = Dispatcher::spawn(None, dispatcher, ()).await.map_err(|error| StartError::new(error.to_string()))?;

    setup.tasks().spawn_critical("dispatcher", {
        let draining = draining.clone();
        async move {
            let _ = ended.await;
            if draining.is_cancelled() { Ok(()) } else { Err("it ended before the service") }
        }
    });

    let work = Work { dispatcher, bus: bus.clone(), running, settling, draining, leaving: leaving.clone(), drain: config.drain };
    let checked = bus.clone();
    setup.ready_while("bus", Checks::default(), move || answers(checked.clone()));
    setup.tasks().spawn("cancelled tasks", listen(work.bus.clone(), work.dispatcher.clone()));
    if let Some(service) = &memory {
        setup.tasks().spawn("outbox", deliver_all(bus.clone(), service.clone(), tenants.subscribe()));
    }
    setup.tasks().spawn("unqueued tasks", sweep::sweep(bus.clone()));
    setup.tasks().spawn("retention", sweep::retain(bus.clone()));
    setup.tasks().spawn("tenants", tenants.clone().find(bus.clone(), authority.clone()));
    let slots = Arc::new(Semaphore::new(config.max_running));
    setup.tasks().spawn_until_stopped("tasks", |stopping| work.run(leases, slots, stopping));

    let application = Arc::new(Application {
        bus,
        tenants,
        quotas: Quotas::new(&config.quota, shared(&config, required)),
        approvals: Approvals::new(&config.approval),
        memory: memory.clone().map(Forgetter::new),
        writer,
        catalog: Arc::new(Catalog::new(clients.library, Chooser::new(embeddings, &config.tool_choice))),
        shelves: documents.map(|documents| documents as Arc<dyn Shelves>),
        contexts: clients.agents.contexts,
        limits: config.limits.into(),
        max_limits: config.max_limits.into(),
        max_tasks: config.max_tasks,
        max_open: max_open(&config),
        open: OpenTasks::default(),
        entering: AtomicU64::new(0),
        max_watchers: config.max_watchers,
        watchers: Arc::new(Semaphore::new(config.max_watchers)),
        leaving,
    });
    setup.tasks().spawn("open tasks", sweep::open(application.clone()));
    let anonymous = match required {
        true => Anonymous::Refused,
        false => Anonymous::As(Caller::User(Principal::anonymous(tenant))),
    };
    setup.serve(Guard::new(grpc::service(application), authority, anonymous));
    Ok(())
}

/// Who knows whom tokens stand for; `None`: nobody is asked for one.
async fn open(config: &GatewayConfig, setup: &Setup) -> Result<Option<Arc<Authority>>, StartError> {
    if !config.access.is_set_up() {
        let tenant = &config.tenant;
        tracing::warn!(addr = %setup.addr(), tenant, "no access control: whoever reaches this port may do everything of this tenant");
        return Ok(None);
    }
    let authority = Arc::new(Authority::open(&config.access).await.map_err(StartError::new)?);
    let kept = authority.clone();
    setup.tasks().spawn("access", async move { kept.keep().await });
    Ok(Some(authority))
}

/// What one tenant may have where the settings name no bound. Where callers have tenants, none of
/// them can take all there is.
fn shared(config: &GatewayConfig, required: bool) -> Quota {
    let half = |most: u64| Some((most / 2).max(1)).filter(|_| required);
    let watchers = half(config.max_watchers as u64).and_then(|half| usize::try_from(half).ok());
    Quota { tasks_per_minute: None, tasks: half(config.max_tasks), open: half(max_open(config)), watchers }
}

/// How many tasks may be open.
fn max_open(config: &GatewayConfig) -> u64 {
    if config.max_open == 0 { config.max_tasks.saturating_mul(OPEN_PER_TASK) } else { config.max_open }
}

/// Connects. A server that is not there may come; anything else is somebody's mistake.
async fn connect(config: BusConfig) -> Result<Bus, Absence<BusError>> {
    Bus::connect(config).await.map_err(absence)
}

/// The servers write to their disks before they acknowledge.
async fn durable(monitoring: String) -> Result<(), Absence<BusError>> {
    check_durability(&monitoring).await.map_err(absence)
}

fn absence(error: BusError) -> Absence<BusError> {
    if error.retryable() { Absence::Missing(error) } else { Absence::Refused(error) }
}

/// JetStream answers, not only the server's socket, and has the streams that it had.
async fn answers(bus: Bus) -> Result<(), BusError> {
    bus.answers().await
}
