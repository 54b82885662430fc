//! The life of a service over real gRPC on free ports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::time::{Duration, Instant};

use autoact_base::progress::Progress;
use autoact_config::{Common, Loaded, Section};
use autoact_service::{Absence, App, Checks, Latch, Running, Service, Setup, StartError};
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::plan_agent_server::{PlanAgent, PlanAgentServer};
use autoact_wire::agents_v1::{Delta, PlanRequest, PlanResponse, plan_response};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DemoConfig {}

impl Section for DemoConfig {
    const NAME: &'static str = "plan-agent";
    fn common() -> Common {
        let mut common = Common::on_ports(0, 0);
        common.grace_period = Duration::from_secs(5);
        common
    }
}

/// Streams what the test sends.
struct Demo {
    words: std::sync::Mutex<Option<mpsc::Receiver<Result<PlanResponse, Status>>>>,
}

#[tonic::async_trait]
impl PlanAgent for Demo {
    type PlanStream = ReceiverStream<Result<PlanResponse, Status>>;
    async fn plan(&self, _: Request<PlanRequest>) -> Result<Response<Self::PlanStream>, Status> {
        let words = self.words.lock().unwrap().take().ok_or_else(|| Status::unavailable("taken"))?;
        Ok(Response::new(ReceiverStream::new(words)))
    }
}

fn word(text: &str) -> Result<PlanResponse, Status> {
    Ok(PlanResponse { event: Some(plan_response::Event::Delta(Delta { text: text.into() })) })
}

struct Started {
    running: Running,
    words: mpsc::Sender<Result<PlanResponse, Status>>,
    latch: Option<Latch>,
    client: PlanAgentClient<tonic::transport::Channel>,
}

async fn start(common: Common) -> Started {
    let (words, receiver) = mpsc::channel(4);
    let mut setup = Setup::bind("plan-agent", common).await.unwrap();
    setup.serve(autoact_wire::limited!(PlanAgentServer::new(Demo { words: std::sync::Mutex::new(Some(receiver)) })));
    let latch = Some(setup.latch("model"));
    let running = setup.finish().await.unwrap().start();
    let client = PlanAgentClient::new(channel(running.addr()));
    Started { running, words, latch, client }
}

fn channel(addr: std::net::SocketAddr) -> tonic::transport::Channel {
    autoact_wire::client::connect_lazy(&addr.to_string()).unwrap()
}

async fn health(addr: std::net::SocketAddr, service: &str) -> ServingStatus {
    let mut client = HealthClient::new(channel(addr));
    client.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner().status()
}

async fn get(addr: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn health_and_readyz_follow_the_latches() {
    let mut started = start(DemoConfig::common()).await;
    let (grpc, metrics) = (started.running.addr(), started.running.metrics_addr());
    assert_eq!(health(grpc, "").await, ServingStatus::NotServing);
    assert_eq!(health(grpc, "autoact.agents.v1.PlanAgent").await, ServingStatus::NotServing);
    assert!(get(metrics, "/livez").await.starts_with("HTTP/1.1 200"));
    let waiting = get(metrics, "/readyz").await;
    assert!(waiting.starts_with("HTTP/1.1 503") && waiting.contains("waiting for: model"), "{waiting}");
    started.latch.take().unwrap().release();
    until("serving", async || health(grpc, "").await == ServingStatus::Serving).await;
    assert_eq!(health(grpc, "autoact.agents.v1.PlanAgent").await, ServingStatus::Serving);
    assert!(get(metrics, "/readyz").await.starts_with("HTTP/1.1 200"));
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn reflection_knows_the_contracts() {
    let started = start(DemoConfig::common()).await;
    let mut client = ServerReflectionClient::new(channel(started.running.addr()));
    let ask = ServerReflectionRequest { message_request: Some(MessageRequest::ListServices(String::new())), ..Default::default() };
    let mut replies = client.server_reflection_info(tokio_stream::iter([ask])).await.unwrap().into_inner();
    let reply = replies.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(services) = reply else { panic!("{reply:?}") };
    let names: Vec<String> = services.service.into_iter().map(|service| service.name).collect();
    for name in ["autoact.agents.v1.PlanAgent", "autoact.v1.Gateway", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|known| known == name), "{name} not in {names:?}");
    }
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_stream_in_flight_finishes_while_the_service_drains() {
    let mut started = start(DemoConfig::common()).await;
    started.words.send(word("one")).await.unwrap();
    let mut stream = started.client.plan(PlanRequest::default()).await.unwrap().into_inner();
    assert!(stream.next().await.unwrap().is_ok());
    let mut watch = HealthClient::new(channel(started.running.addr()));
    let mut watch = watch.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert!(watch.next().await.unwrap().is_ok());

    let (addr, metrics) = (started.running.addr(), started.running.metrics_addr());
    started.running.begin_shutdown();
    until("connections are refused", async || tokio::net::TcpStream::connect(addr).await.is_err()).await;
    assert!(get(metrics, "/readyz").await.contains("draining"));
    started.words.send(word("two")).await.unwrap();
    drop(started.words);
    assert!(stream.next().await.unwrap().is_ok());
    assert!(stream.next().await.is_none());
    // an endless health watch does not hold the service back
    let ended = tokio::time::timeout(Duration::from_secs(2), started.running.ended()).await;
    ended.expect("drained well before the grace period ends").unwrap();
    assert!(tokio::net::TcpStream::connect(metrics).await.is_err());
}

#[tokio::test]
async fn a_call_that_outlasts_the_grace_period_is_ended() {
    let mut started = start(Common { grace_period: Duration::from_millis(100), ..DemoConfig::common() }).await;
    started.words.send(word("one")).await.unwrap();
    let mut stream = started.client.plan(PlanRequest::default()).await.unwrap().into_inner();
    assert!(stream.next().await.unwrap().is_ok());
    let status = {
        started.running.begin_shutdown();
        stream.next().await.unwrap().unwrap_err()
    };
    assert_eq!(status.code(), Code::Unavailable);
    // the work behind the stream was dropped
    started.words.closed().await;
    started.running.ended().await.unwrap();
}

#[tokio::test]
async fn a_stream_ends_at_the_callers_deadline() {
    let mut started = start(DemoConfig::common()).await;
    // set by hand: `set_timeout` would also make the client's own channel count
    let mut request = Request::new(PlanRequest::default());
    request.metadata_mut().insert("grpc-timeout", "150m".parse().unwrap());
    started.words.send(word("one")).await.unwrap();
    let mut stream = started.client.plan(request).await.unwrap().into_inner();
    assert!(stream.next().await.unwrap().is_ok());
    assert_eq!(stream.next().await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    started.words.closed().await;
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_client_that_hangs_up_stops_the_work() {
    let mut started = start(DemoConfig::common()).await;
    started.words.send(word("one")).await.unwrap();
    let mut stream = started.client.plan(PlanRequest::default()).await.unwrap().into_inner();
    assert!(stream.next().await.unwrap().is_ok());
    drop(stream);
    tokio::time::timeout(Duration::from_secs(5), started.words.closed()).await.expect("the stream's source is dropped");
    started.running.stop().await.unwrap();
}

/// Asks for a path, whatever it is, as a gRPC client would; the status that comes back.
async fn ask(addr: std::net::SocketAddr, path: &str) -> String {
    let request = http::Request::post(format!("http://{addr}{path}")).header("content-type", "application/grpc");
    let request = request.body(tonic::body::Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(channel(addr), request).await.unwrap();
    response.headers().get("grpc-status").unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn clients_cannot_make_time_series() {
    let mut started = start(DemoConfig::common()).await;
    let (addr, metrics) = (started.running.addr(), started.running.metrics_addr());
    for made_up in 0..20 {
        for path in [
            format!("/made.up.Service{made_up}/Method"),
            format!("/autoact.agents.v1.PlanAgent/MadeUp{made_up}"),
            format!("/grpc.made.up{made_up}/Check"),
            format!("/made_up{made_up}"),
        ] {
            assert_eq!(ask(addr, &path).await, (Code::Unimplemented as i32).to_string(), "{path}");
        }
    }
    drop(started.words);
    let mut stream = started.client.plan(PlanRequest::default()).await.unwrap().into_inner();
    assert!(stream.next().await.is_none());
    let text = get(metrics, "/metrics").await;
    for made_up in ["made.up", "MadeUp", "made_up"] {
        assert!(!text.contains(made_up), "{text}");
    }
    let series = "autoact_grpc_seconds_count{service=\"unknown\",method=\"unknown\",code=\"Unimplemented\"}";
    assert!(text.lines().any(|line| line.starts_with(series)), "{text}");
    assert!(text.contains("autoact_grpc_seconds_count{service=\"autoact.agents.v1.PlanAgent\",method=\"Plan\",code=\"Ok\"}"), "{text}");
    // health is not counted
    assert_eq!(health(addr, "").await, ServingStatus::NotServing);
    assert!(!get(metrics, "/metrics").await.contains("grpc.health"));
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn what_takes_minutes_has_buckets() {
    let started = start(DemoConfig::common()).await;
    metrics::histogram!("life_test_seconds").record(200.0);
    metrics::histogram!("life_test_seconds").record(3000.0);
    let text = get(started.running.metrics_addr(), "/metrics").await;
    for (bound, count) in [("60", 0), ("120", 0), ("300", 1), ("1800", 1), ("3600", 2)] {
        let line = format!("life_test_seconds_bucket{{le=\"{bound}\"}} {count}");
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn readiness_follows_a_real_check() {
    let setup = Setup::bind("plan-agent", DemoConfig::common()).await.unwrap();
    let (works, checked) = tokio::sync::watch::channel(false);
    let checks = Checks { period: Duration::from_millis(5), limit: Duration::from_secs(5), failures: 2 };
    setup.ready_while("bus", checks, move || {
        let works = *checked.borrow();
        async move { if works { Ok(()) } else { Err("no stream") } }
    });
    let running = setup.finish().await.unwrap().start();
    let metrics = running.metrics_addr();
    assert!(get(metrics, "/readyz").await.contains("waiting for: bus"));
    works.send_replace(true);
    until("ready", async || get(metrics, "/readyz").await.starts_with("HTTP/1.1 200")).await;
    works.send_replace(false);
    until("not ready", async || get(metrics, "/readyz").await.contains("waiting for: bus")).await;
    running.stop().await.unwrap();
}

/// `Service::build` must be.
fn is_send<T: Send>(_: &T) {}

#[tokio::test]
async fn what_is_missing_at_the_start_is_waited_for() {
    let late = Common { start_limit: Duration::from_millis(300), ..DemoConfig::common() };
    let setup = Setup::bind("plan-agent", late).await.unwrap();
    let error = setup.wait_for("bus", || async { Err::<(), _>(Absence::Missing("connection refused")) }).await.unwrap_err().to_string();
    assert!(error.contains("connection refused; fix: ") && error.contains("waited 300ms"), "{error}");

    let setup = Setup::bind("plan-agent", DemoConfig::common()).await.unwrap();
    let (metrics, mut asked) = (setup.metrics_addr(), 0);
    let found = setup.wait_for("bus", || {
        asked += 1;
        let there = asked == 3;
        async move {
            // whoever looks meanwhile is told
            assert!(get(metrics, "/readyz").await.contains("waiting for: bus"));
            if there { Ok("bus") } else { Err(Absence::Missing("connection refused")) }
        }
    });
    is_send(&found);
    assert_eq!(found.await.unwrap(), "bus");
    assert!(get(metrics, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn readyz_tells_how_far_a_slow_start_is() {
    let late = Common { start_limit: Duration::from_millis(300), ..DemoConfig::common() };
    let setup = Setup::bind("plan-agent", late).await.unwrap();
    let (metrics, progress) = (setup.metrics_addr(), Progress::default());
    let work = async {
        progress.begin(152);
        // longer than the limit, with progress all the time
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(900) {
            progress.add(1);
            assert!(get(metrics, "/readyz").await.contains(" of 152 bytes in "));
            assert!(get(metrics, "/livez").await.starts_with("HTTP/1.1 200"));
        }
        "opened"
    };
    let opened = setup.while_it_goes_on("model", &progress, work);
    is_send(&opened);
    assert_eq!(opened.await.unwrap(), "opened");
    assert!(get(metrics, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_taken_port_is_one_clear_line() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let common = Common { listen: taken.local_addr().unwrap(), ..DemoConfig::common() };
    let error = Setup::bind("plan-agent", common).await.err().unwrap().to_string();
    assert!(error.contains("cannot listen on `127.0.0.1:") && error.contains("; fix: ") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_critical_task_ends_the_service_with_its_error() {
    let setup = Setup::bind("plan-agent", DemoConfig::common()).await.unwrap();
    setup.tasks().spawn_critical("bus", async { Err::<(), _>("lost for good") });
    let running = setup.finish().await.unwrap().start();
    let error = running.ended().await.unwrap_err().to_string();
    assert_eq!(error, "the task `bus` failed: lost for good");
}

struct Broken;

impl Service for Broken {
    type Config = DemoConfig;
    const ABOUT: &'static str = "Cannot start.";
    async fn build(_: DemoConfig, _: &mut Setup) -> Result<(), StartError> {
        Err(StartError::new("cannot open model `x`").fix("set `model`"))
    }
}

#[tokio::test]
async fn a_service_that_cannot_build_leaves_nothing_behind() {
    let error = App::build::<Broken>(Loaded::new(DemoConfig::common(), DemoConfig {})).await.err().unwrap();
    assert_eq!(error.to_string(), "cannot open model `x`; fix: set `model`");
}
