//! Pools over real sockets. The replicas are servers in this process that only count how often they
//! are called; each has a runtime of its own, so that it can be stopped like a process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use autoact_replicas::set::{self, Id};
use autoact_replicas::{Options, Outcome, Pool, Resolver, SystemResolver};
use autoact_testkit::poll;
use autoact_wire::client::{AddressError, Connector, Target};
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);
/// What the calls of these tests ask for; a pool's own probes ask for nothing.
const CALL: &str = "call";

/// Connects without TLS, wherever it is.
fn plain(target: &Target, to: SocketAddr) -> Result<tonic::transport::Channel, AddressError> {
    Connector::default().plain_anywhere(true).connect_lazy_to(target, to)
}

#[derive(Default)]
struct Counts {
    calls: AtomicUsize,
    connections: AtomicUsize,
}

#[derive(Clone)]
struct Counting(Arc<Counts>);

#[async_trait]
impl Health for Counting {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if request.into_inner().service == CALL {
            self.0.calls.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving as i32 }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("nobody watches"))
    }
}

/// A replica that can be stopped and started again.
struct Replica {
    addr: SocketAddr,
    counts: Arc<Counts>,
    runtime: Option<Runtime>,
}

impl Replica {
    fn start() -> Replica {
        let mut replica = Replica { addr: "127.0.0.1:0".parse().unwrap(), counts: Arc::default(), runtime: None };
        replica.resume();
        replica
    }

    fn resume(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.addr).unwrap();
        self.addr = socket.local_addr().unwrap();
        let counts = self.counts.clone();
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(socket.listen(64).unwrap().into_std().unwrap()).unwrap()
        };
        let connections = counts.clone();
        let incoming = TcpListenerStream::new(listener).map(move |connection| {
            connections.connections.fetch_add(1, Ordering::SeqCst);
            connection
        });
        let server = tonic::transport::Server::builder().add_service(HealthServer::new(Counting(counts)));
        runtime.spawn(server.serve_with_incoming(incoming));
        self.runtime = Some(runtime);
    }

    /// Everything in it ends where it is, its connections too.
    fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop();
    }
}

fn options() -> Options {
    let set = set::Options { failures: 3, retry_share: 0.2, connection_age: Duration::from_secs(300) };
    Options { set, resolve: Duration::from_secs(1) }
}

fn pool(replicas: &[Replica]) -> Pool {
    let addresses: Vec<String> = replicas.iter().map(|replica| format!("http://{}", replica.addr)).collect();
    Pool::new("plan-agent", &addresses.join(","), &options(), Arc::new(SystemResolver), Box::new(plain)).unwrap()
}

/// One call, as the gateway makes it: repeated elsewhere at once if that may help. How often it was
/// made, and whether it was answered.
async fn call(pool: &Pool, key: u64) -> (usize, bool) {
    let mut tried: Vec<Id> = Vec::new();
    loop {
        let Ok(to) = pool.call(key, &tried).await else { return (tried.len(), false) };
        tried.push(to.id);
        let mut client = HealthClient::new(to.channel.clone());
        let answered = client.check(HealthCheckRequest { service: CALL.into() }).await.is_ok();
        to.ended(if answered { Outcome::Answered } else { Outcome::Failed });
        if answered || !pool.may_move(&tried) {
            return (tried.len(), answered);
        }
    }
}

async fn eventually(what: &str, check: impl AsyncFnMut() -> bool) {
    let mut check = check;
    poll::poll_until(LIMIT, what, async || check().await.then_some(())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_share_300_tasks_and_two_take_over_from_one() {
    let mut replicas: Vec<Replica> = (0..3).map(|_| Replica::start()).collect();
    let pool = pool(&replicas);
    for task in 0..300u64 {
        for _ in 0..3 {
            assert_eq!(call(&pool, task.wrapping_mul(0x9e37_79b9_7f4a_7c15)).await, (1, true));
        }
    }
    for replica in &replicas {
        let share = replica.calls();
        assert!((225..=378).contains(&share), "25 to 42% of 900: {share}");
        assert_eq!(replica.counts.connections.load(Ordering::SeqCst), 1);
    }

    replicas[1].stop();
    let (began, mut made) = (Instant::now(), 0);
    for task in 0..300u64 {
        let (times, answered) = call(&pool, task.wrapping_mul(0x9e37_79b9_7f4a_7c15)).await;
        assert!(answered, "no call is lost");
        assert!(task > 0 || began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        made += times;
    }
    assert!(made <= 360, "at most 20% more calls: {made} for 300");

    let before = replicas[1].calls();
    replicas[1].resume();
    let mut task = 1000u64;
    eventually("the replica that is back", async || {
        task += 1;
        assert!(call(&pool, autoact_base::random::mix(task)).await.1);
        replicas[1].calls() > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_all_are_down_calls_fail_at_once_and_work_again_when_one_is_back() {
    let mut replicas: Vec<Replica> = (0..2).map(|_| Replica::start()).collect();
    let pool = pool(&replicas);
    assert_eq!(call(&pool, 1).await, (1, true));
    replicas.iter_mut().for_each(Replica::stop);
    for _ in 0..10 {
        let (times, answered) = call(&pool, 1).await;
        assert!(!answered && times <= 2);
    }
    assert!(pool.views().iter().all(|view| view.state != autoact_replicas::breaker::State::Closed));
    replicas[0].resume();
    eventually("an answer", async || call(&pool, 1).await.1).await;
}

/// A name whose addresses a test decides.
#[derive(Default)]
struct Names(Mutex<HashMap<String, Vec<SocketAddr>>>);

impl Names {
    fn say(&self, host: &str, replicas: &[&Replica]) {
        let addresses = replicas.iter().map(|replica| replica.addr).collect();
        self.0.lock().unwrap().insert(host.to_owned(), addresses);
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str, _: u16) -> std::io::Result<Vec<SocketAddr>> {
        self.0.lock().unwrap().get(host).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_come_and_go_with_their_name() {
    let replicas: Vec<Replica> = (0..3).map(|_| Replica::start()).collect();
    let names = Arc::new(Names::default());
    let pool = Pool::new("plan-agent", "http://plan:7401", &options(), names.clone(), Box::new(plain)).unwrap();
    assert_eq!(call(&pool, 1).await, (0, false), "nobody knows the name");
    names.say("plan", &[&replicas[0]]);
    eventually("the first address", async || call(&pool, 1).await.1).await;
    names.say("plan", &[&replicas[0], &replicas[1]]);
    let mut task = 0u64;
    let mut next = || {
        task += 1;
        autoact_base::random::mix(task)
    };
    eventually("calls to the new replica", async || call(&pool, next()).await.1 && replicas[1].calls() > 0).await;

    // a resolver that fails takes nobody away
    names.0.lock().unwrap().clear();
    let before = (replicas[0].calls(), replicas[1].calls());
    names.say("other", &[]);
    for _ in 0..20 {
        assert!(call(&pool, next()).await.1);
    }
    assert!(replicas[0].calls() > before.0 && replicas[1].calls() > before.1);

    names.say("plan", &[&replicas[2]]);
    eventually("only the third to be there", async || pool.views().iter().map(|view| view.address.socket).eq([replicas[2].addr])).await;
    let before = (replicas[0].calls(), replicas[1].calls());
    for _ in 0..20 {
        assert_eq!(call(&pool, next()).await, (1, true));
    }
    assert_eq!((replicas[0].calls(), replicas[1].calls()), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_renewed_and_calls_on_the_old_ones_end() {
    let replica = Replica::start();
    let mut options = options();
    options.set.connection_age = Duration::from_millis(50);
    let pool = Pool::new("plan-agent", &replica.addr.to_string(), &options, Arc::new(SystemResolver), Box::new(plain)).unwrap();
    eventually("three connections", async || {
        assert_eq!(call(&pool, 1).await, (1, true));
        replica.counts.connections.load(Ordering::SeqCst) >= 3
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_systems_resolver_finds_this_machine() {
    let replica = Replica::start();
    let address = format!("http://localhost:{}", replica.addr.port());
    let pool = Pool::new("plan-agent", &address, &options(), Arc::new(SystemResolver), Box::new(plain)).unwrap();
    eventually("localhost", async || call(&pool, 1).await.1).await;
}
