//! A set of replicas with its connections: what the core decides is done here.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use autoact_wire::client::{self, AddressError, Target};
use metrics::{Counter, Gauge};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::breaker::{Outcome, State};
use crate::resolve::{Known, Resolver, look_up};
use crate::set::{self, Address, Choice, Id, Set, View};

/// How long a call waits for the first addresses of a name.
const FIRST_LOOKUP: Duration = Duration::from_secs(6);
/// Lookups are at least this far apart, however many calls fail.
const LOOKUP_GAP: Duration = Duration::from_millis(500);
/// A new replica gets calls after this long, without its name being looked up all the time.
const RESOLVE: Duration = Duration::from_secs(5);
/// How long a probe may take.
const PROBE_LIMIT: Duration = Duration::from_secs(2);

/// How a pool behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the choice depends on.
    pub set: set::Options,
    /// How often names are looked up: half of it at least.
    pub resolve: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { set: set::Options::default(), resolve: RESOLVE }
    }
}

/// Makes a connection to one of the addresses of a target: `Connector::connect_lazy_to`, or one that
/// brings a certificate. It connects when it is used, and again when it broke.
pub type Connect = dyn Fn(&Target, SocketAddr) -> Result<Channel, AddressError> + Send + Sync;

/// No replica is known.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` has no address: {cause}; fix: name a host that can be resolved")]
pub struct Unresolved {
    host: String,
    cause: String,
}

/// The replicas of one service, each with a connection that is made when it is first used.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    /// What looks up and probes, from the first call on; it ends with the pool.
    background: OnceLock<JoinSet<()>>,
}

struct Shared {
    /// Whose replicas: a label.
    name: &'static str,
    targets: Vec<Target>,
    resolver: Arc<dyn Resolver>,
    connect: Box<Connect>,
    resolve: Duration,
    inner: Mutex<Inner>,
    /// Lookups that have ended.
    lookups: watch::Sender<u64>,
    look_up: Notify,
    probe: Notify,
}

struct Inner {
    set: Set,
    known: Known,
    connections: HashMap<Id, Connection>,
}

struct Connection {
    channel: Channel,
    calls: Counter,
    outstanding: Gauge,
}

/// A call that goes to one replica. It counts as outstanding until it is dropped.
#[derive(Debug)]
pub struct Call {
    /// The connection.
    pub channel: Channel,
    /// The replica.
    pub id: Id,
    /// Its address.
    pub socket: SocketAddr,
    shared: Arc<Shared>,
    has_ended: bool,
}

impl Pool {
    /// The replicas of the service `name` at `addresses`: one, or several with commas between them.
    /// Nothing is looked up nor connected before the first call.
    ///
    /// # Errors
    /// One of them is no address.
    pub fn new(
        name: &'static str,
        addresses: &str,
        options: &Options,
        resolver: Arc<dyn Resolver>,
        connect: Box<Connect>,
    ) -> Result<Pool, AddressError> {
        let targets = client::targets(addresses)?;
        let known = Known::new(&targets);
        let set = Set::new(options.set.clone(), random(), Instant::now().into_std());
        let inner = Mutex::new(Inner { set, known, connections: HashMap::new() });
        let (look_up, probe, resolve) = (Notify::new(), Notify::new(), options.resolve);
        let shared = Shared { name, targets, resolver, connect, resolve, inner, lookups: watch::Sender::new(0), look_up, probe };
        shared.update(&mut shared.lock())?;
        Ok(Pool { shared: Arc::new(shared), background: OnceLock::new() })
    }

    /// Chooses a replica for a call of `key`, none of `tried` if there are others. The first call
    /// waits until names are looked up.
    ///
    /// # Errors
    /// No name has an address.
    pub async fn call(&self, key: u64, tried: &[Id]) -> Result<Call, Unresolved> {
        self.background.get_or_init(|| Shared::run(&self.shared));
        let mut lookups = self.shared.lookups.subscribe();
        if let Some(call) = Shared::choose(&self.shared, key, tried) {
            return Ok(call);
        }
        self.shared.look_up.notify_one();
        // one that is on its way may end before the host was there
        let _ = tokio::time::timeout(FIRST_LOOKUP, lookups.changed()).await;
        Shared::choose(&self.shared, key, tried).ok_or_else(|| self.shared.unresolved())
    }

    /// Whether a call that failed on `tried` may be made on another replica at once.
    pub fn may_move(&self, tried: &[Id]) -> bool {
        let moves = self.shared.lock().set.may_move(tried);
        if moves {
            metrics::counter!("autoact_replica_moves_total", "agent" => self.shared.name).increment(1);
        }
        moves
    }

    /// Whether `tried` names every replica.
    pub fn all_tried(&self, tried: &[Id]) -> bool {
        self.shared.lock().set.all_tried(tried)
    }

    /// The replicas as they are now.
    pub fn views(&self) -> Vec<View> {
        self.shared.lock().set.views().collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // whoever panicked with it left a whole state: every change is one call
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(shared: &Arc<Shared>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if shared.targets.iter().any(|target| target.socket().is_none()) {
            tasks.spawn(look_up_for_ever(shared.clone()));
        }
        tasks.spawn(probe_for_ever(shared.clone()));
        tasks
    }

    fn choose(shared: &Arc<Shared>, key: u64, tried: &[Id]) -> Option<Call> {
        let mut inner = shared.lock();
        let Choice { id, address, renew, .. } = inner.set.choose(key, tried, Instant::now().into_std())?;
        let connection = inner.connections.get_mut(&id)?;
        if renew && let Ok(channel) = shared.connect(address) {
            // calls that run keep the old one until they end
            connection.channel = channel;
        }
        connection.calls.increment(1);
        connection.outstanding.increment(1.0);
        Some(Call { channel: connection.channel.clone(), id, socket: address.socket, shared: shared.clone(), has_ended: false })
    }

    /// A connection that is made when it is used.
    fn connect(&self, address: Address) -> Result<Channel, AddressError> {
        (self.connect)(&self.targets[address.target], address.socket)
    }

    /// Makes the set what is known.
    fn update(&self, inner: &mut Inner) -> Result<(), AddressError> {
        let changes = inner.set.update(&inner.known.addresses(), Instant::now().into_std());
        for view in &changes.removed {
            if let Some(connection) = inner.connections.remove(&view.id) {
                connection.outstanding.set(0.0);
            }
            tracing::info!(agent = self.name, replica = view.slot, address = %view.address.socket, "a replica is gone");
        }
        for view in &changes.added {
            let channel = self.connect(view.address)?;
            let labels = [("agent", self.name.to_owned()), ("replica", view.slot.to_string())];
            let calls = metrics::counter!("autoact_replica_calls_total", &labels);
            let outstanding = metrics::gauge!("autoact_replica_outstanding", &labels);
            inner.connections.insert(view.id, Connection { channel, calls, outstanding });
            tracing::info!(agent = self.name, replica = view.slot, address = %view.address.socket, "a replica is there");
        }
        if changes.left_out > 0 {
            tracing::warn!(agent = self.name, left_out = changes.left_out, most = set::MAX_REPLICAS, "more replicas than are called");
        }
        if !changes.added.is_empty() || !changes.removed.is_empty() {
            self.tell_states(inner);
        }
        Ok(())
    }

    fn tell_states(&self, inner: &Inner) {
        let (closed, open): (Vec<View>, Vec<View>) = inner.set.views().partition(|view| view.state == State::Closed);
        for (state, count) in [("closed", closed.len()), ("open", open.len())] {
            metrics::gauge!("autoact_replicas", "agent" => self.name, "state" => state).set(count as f64);
        }
    }

    fn changed(&self, inner: &Inner, view: View, why: &str) {
        let (replica, address) = (view.slot, view.address.socket);
        match view.state {
            State::Closed => tracing::info!(agent = self.name, replica, %address, why, "a replica is called again"),
            State::Open | State::HalfOpen => tracing::warn!(agent = self.name, replica, %address, why, "a replica is left alone"),
        }
        self.tell_states(inner);
    }

    fn ended(&self, id: Id, outcome: Option<Outcome>) {
        let mut inner = self.lock();
        if let Some(connection) = inner.connections.get(&id) {
            connection.outstanding.decrement(1.0);
        }
        let Some(outcome) = outcome else { return inner.set.dropped(id) };
        if let Some(view) = inner.set.ended(id, outcome, Instant::now().into_std()) {
            self.changed(&inner, view, "its calls");
            self.probe.notify_one();
        }
        if outcome != Outcome::Answered {
            self.look_up.notify_one();
        }
    }

    fn unresolved(&self) -> Unresolved {
        let inner = self.lock();
        let (target, cause) = inner.known.error().unwrap_or((0, "it was not looked up in time"));
        let host = self.targets.get(target).map(|target| target.host().to_owned()).unwrap_or_default();
        Unresolved { host, cause: cause.to_owned() }
    }
}

/// Looks names up, again after a while and after failures.
async fn look_up_for_ever(shared: Arc<Shared>) {
    loop {
        let names = shared.targets.iter().enumerate().filter(|(_, target)| target.socket().is_none());
        let resolver = shared.resolver.as_ref();
        let found = names.map(|(index, target)| async move { (index, look_up(resolver, target).await) });
        let found = futures::future::join_all(found).await;
        {
            let mut inner = shared.lock();
            for (target, found) in found {
                if let Some(error) = inner.known.learn(target, found) {
                    let host = shared.targets.get(target).map(Target::host).unwrap_or_default();
                    tracing::warn!(agent = shared.name, host, error, "a name was not resolved; its last addresses are used");
                }
            }
            if let Err(error) = shared.update(&mut inner) {
                tracing::error!(agent = shared.name, %error, "an address cannot be used");
            }
        }
        shared.lookups.send_modify(|lookups| *lookups += 1);
        tokio::time::sleep(LOOKUP_GAP).await;
        let pause = jitter(shared.resolve).saturating_sub(LOOKUP_GAP);
        let _ = tokio::time::timeout(pause, shared.look_up.notified()).await;
    }
}

/// Probes the replicas that are left alone, each when it is due.
async fn probe_for_ever(shared: Arc<Shared>) {
    let mut running = JoinSet::new();
    loop {
        let next = {
            let mut inner = shared.lock();
            for view in inner.set.probes(Instant::now().into_std()) {
                if let Some(connection) = inner.connections.get(&view.id) {
                    running.spawn(probe(shared.clone(), view.id, connection.channel.clone()));
                }
            }
            inner.set.next_probe()
        };
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.probe.notified() => {}
            () = due => {}
            Some(_) = running.join_next() => {}
        }
    }
}

async fn probe(shared: Arc<Shared>, id: Id, channel: Channel) {
    let mut client = HealthClient::new(channel);
    let check = client.check(HealthCheckRequest { service: String::new() });
    let answered = match tokio::time::timeout(PROBE_LIMIT, check).await {
        Ok(Ok(answer)) => answer.into_inner().status() == ServingStatus::Serving,
        Ok(Err(status)) => lives(&status),
        Err(_) => false,
    };
    let mut inner = shared.lock();
    if let Some(view) = inner.set.probed(id, answered, Instant::now().into_std()) {
        shared.changed(&inner, view, "a probe");
    }
}

/// Whether a refused health check was refused by a service that lives: one that has no health
/// service, for example.
fn lives(status: &Status) -> bool {
    // a status that was made on this side has the transport's error as its source
    let answered = std::error::Error::source(status).is_none();
    answered && !matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded)
}

impl Call {
    /// How the call ended.
    pub fn ended(mut self, outcome: Outcome) {
        self.has_ended = true;
        self.shared.ended(self.id, Some(outcome));
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.ended(self.id, None);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).field("targets", &self.targets).finish_non_exhaustive()
    }
}

/// Half of a time to all of it.
pub fn jitter(time: Duration) -> Duration {
    crate::breaker::jittered(time, &mut autoact_base::random::SplitMix64::new(random()))
}

/// A number that is another one at every call and in every process.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
