//! The limits of a service's doors over real sockets: each is reached, and honest clients are
//! served all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err)] // tests

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use autoact_config::{Common, DoorConfig};
use autoact_service::{Running, Setup};
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::plan_agent_server::{PlanAgent, PlanAgentServer};
use autoact_wire::agents_v1::{Delta, PlanRequest, PlanResponse, plan_response};
use autoact_wire::client::connect_lazy;
use autoact_wire::{status, v1};
use http_body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// Much longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// A limit that a test waits for.
const SOON: Duration = Duration::from_millis(400);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const PLAN: &str = "/autoact.agents.v1.PlanAgent/Plan";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Streams words of this many bytes without end, and says when nobody wants them any more.
struct Endless {
    bytes: usize,
    ended: mpsc::UnboundedSender<()>,
}

#[tonic::async_trait]
impl PlanAgent for Endless {
    type PlanStream = ReceiverStream<Result<PlanResponse, Status>>;
    async fn plan(&self, _: Request<PlanRequest>) -> Result<Response<Self::PlanStream>, Status> {
        let (words, stream) = mpsc::channel(1);
        let (bytes, ended) = (self.bytes, self.ended.clone());
        tokio::spawn(async move {
            let word = || PlanResponse { event: Some(plan_response::Event::Delta(Delta { text: "w".repeat(bytes) })) };
            while words.send(Ok(word())).await.is_ok() {}
            let _ = ended.send(());
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

struct Started {
    running: Running,
    ended: mpsc::UnboundedReceiver<()>,
}

async fn start_with(door: DoorConfig, bytes: usize) -> Started {
    let common = Common { grace_period: Duration::from_secs(5), door, ..Common::on_ports(0, 0) };
    let mut setup = Setup::bind("plan-agent", common).await.unwrap();
    let (told, ended) = mpsc::unbounded_channel();
    setup.serve(autoact_wire::limited!(PlanAgentServer::new(Endless { bytes, ended: told })));
    Started { running: setup.finish().await.unwrap().start(), ended }
}

async fn start(door: DoorConfig) -> Started {
    start_with(door, 64 * 1024).await
}

impl Started {
    fn channel(&self) -> Channel {
        connect_lazy(&self.running.addr().to_string()).unwrap()
    }

    fn client(&self) -> PlanAgentClient<Channel> {
        autoact_wire::limited!(PlanAgentClient::new(self.channel()))
    }

    /// A call on a connection of its own.
    async fn check(&self) -> Result<(), Status> {
        self.check_on(self.channel(), "").await
    }

    async fn check_on(&self, channel: Channel, service: &str) -> Result<(), Status> {
        let call = HealthClient::new(channel).check(HealthCheckRequest { service: service.into() }).await;
        call.map(drop)
    }

    /// An open stream on a connection of its own.
    async fn plan(&self) -> Result<Streaming<PlanResponse>, Status> {
        let mut stream = self.client().plan(PlanRequest::default()).await?.into_inner();
        assert!(stream.next().await.unwrap().is_ok());
        Ok(stream)
    }
}

async fn connect(to: SocketAddr, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

/// What still comes, until the other side ends the connection.
async fn to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // a reset is an end as well
    let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut bytes)).await.expect("the connection stayed open");
    bytes
}

fn refused(status: &Status, code: Code, reason: &str) {
    assert_eq!((status.code(), status::reason(status).as_deref()), (code, Some(reason)), "{status:?}");
}

/// A body of these pieces, and then nothing: no end either.
struct Pieces(Vec<Vec<u8>>);

impl http_body::Body for Pieces {
    type Data = std::io::Cursor<Vec<u8>>;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        match self.0.pop() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(std::io::Cursor::new(piece))))),
            None => Poll::Pending,
        }
    }
}

impl Started {
    /// Sends bytes as a request's body, the last piece first; what comes back.
    async fn raw(&self, path: &str, pieces: Vec<Vec<u8>>) -> Status {
        use http_body_util::BodyExt as _;
        let request = http::Request::post(format!("http://{}{path}", self.running.addr())).header("content-type", "application/grpc");
        let request =
            request.body(tonic::body::Body::new(Pieces(pieces).map_frame(|frame| frame.map_data(|data| data.into_inner().into()))));
        let answer = tower::ServiceExt::oneshot(self.channel(), request.unwrap());
        let response = tokio::time::timeout(DEADLINE, answer).await.expect("no answer").unwrap();
        match Status::from_header_map(response.headers()) {
            Some(status) => status,
            None => {
                let body = response.into_body().collect().await.unwrap();
                Status::from_header_map(body.trailers().expect("no trailers")).expect("no status")
            }
        }
    }
}

fn prefix(bytes: u32) -> Vec<u8> {
    [&[0][..], &bytes.to_be_bytes()].concat()
}

#[tokio::test]
async fn a_connection_without_a_call_ends_and_one_with_a_call_stays() {
    let started = start(DoorConfig { handshake: SOON, first_call: SOON, ..DoorConfig::default() }).await;
    let kept = started.channel();
    started.check_on(kept.clone(), "").await.unwrap();
    let to = started.running.addr();
    // silence, half a greeting, a whole one, and one with a header that never ends
    let headers = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    let slow = [&b""[..], &PREFACE[..5], &[PREFACE, SETTINGS].concat(), &[PREFACE, SETTINGS, &headers].concat()];
    let begun = Instant::now();
    for first in slow {
        to_end(&mut connect(to, first).await).await;
    }
    assert!(begun.elapsed() >= SOON * 4, "each had its time");
    let mut open = started.plan().await.unwrap();
    tokio::time::sleep(SOON * 2).await;
    assert!(open.next().await.unwrap().is_ok(), "it has a call");
    started.check_on(kept, "").await.unwrap();
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn silent_connections_take_no_places_from_those_that_call() {
    let started = start(DoorConfig { max_connections: 4, ..DoorConfig::default() }).await;
    let mut open = started.plan().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(connect(started.running.addr(), &[PREFACE, SETTINGS].concat()).await);
        if silent.len() % 10 == 0 {
            started.check().await.unwrap();
        }
    }
    to_end(&mut silent[0]).await;
    assert!(open.next().await.unwrap().is_ok());
    // each of these has a call
    let others = (started.plan().await.unwrap(), started.plan().await.unwrap(), started.plan().await.unwrap());
    let full = started.check().await.unwrap_err();
    assert!(std::error::Error::source(&full).is_some(), "the transport failed: {full:?}");
    drop(others);
    let deadline = Instant::now() + DEADLINE;
    while started.check().await.is_err() {
        assert!(Instant::now() < deadline, "no place came free");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn one_address_has_its_bound() {
    let started = start(DoorConfig { max_connections_per_address: Some(1), ..DoorConfig::default() }).await;
    let channel = started.channel();
    started.check_on(channel.clone(), "").await.unwrap();
    let status = started.check().await.unwrap_err();
    assert!(std::error::Error::source(&status).is_some(), "{status:?}");
    started.check_on(channel, "").await.unwrap();
}

#[tokio::test]
async fn calls_have_a_bound_over_all_connections() {
    let started = start(DoorConfig { max_calls: 2, ..DoorConfig::default() }).await;
    let open = (started.plan().await.unwrap(), started.plan().await.unwrap());
    let status = started.check().await.unwrap_err();
    refused(&status, Code::ResourceExhausted, "TOO_MANY_CALLS");
    assert!(status::retry_after(&status).is_some());
    assert_eq!(status::metadata(&status)["limit"], "2");
    drop(open);
    let deadline = Instant::now() + DEADLINE;
    while started.check().await.is_err() {
        assert!(Instant::now() < deadline, "no call ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn messages_are_as_large_as_their_method_takes() {
    let started = start(DoorConfig { request_time: DEADLINE, ..DoorConfig::default() }).await;
    let status = started.check_on(started.channel(), &"s".repeat(70_000)).await.unwrap_err();
    refused(&status, Code::ResourceExhausted, "REQUEST_TOO_LARGE");
    assert!(!status::retryable(&status));
    assert_eq!(status::metadata(&status)["limit"], "65536");
    // the same to a method that takes a trajectory
    let trajectory = v1::Trajectory { question: "q".repeat(70_000), ..v1::Trajectory::default() };
    let request = PlanRequest { trajectory: Some(trajectory), ..PlanRequest::default() };
    assert!(started.client().plan(request).await.is_ok());
    // 1 GB is refused by its first five bytes: nobody waits for the rest
    refused(&started.raw(PLAN, vec![prefix(1 << 30)]).await, Code::ResourceExhausted, "REQUEST_TOO_LARGE");
    // and what follows the only message is not read
    let more = vec![vec![7; 1 << 20], prefix(0)];
    refused(&started.raw(CHECK, more).await, Code::InvalidArgument, "MESSAGE_AFTER_MESSAGE");
}

#[tokio::test]
async fn a_request_that_does_not_arrive_is_given_up() {
    let started = start(DoorConfig { request_time: SOON, ..DoorConfig::default() }).await;
    for pieces in [vec![], vec![vec![0, 0]], vec![vec![7; 3], prefix(9)]] {
        refused(&started.raw(CHECK, pieces).await, Code::DeadlineExceeded, "REQUEST_TOO_SLOW");
    }
    started.check().await.unwrap();
}

#[tokio::test]
async fn all_requests_together_have_a_bound() {
    let started = start(DoorConfig { max_request_bytes: 1 << 20, ..DoorConfig::default() }).await;
    let trajectory = v1::Trajectory { question: "q".repeat(2 << 20), ..v1::Trajectory::default() };
    let request = PlanRequest { trajectory: Some(trajectory), ..PlanRequest::default() };
    let status = started.client().plan(request).await.unwrap_err();
    refused(&status, Code::ResourceExhausted, "TOO_MANY_BYTES");
    // it was given back
    for _ in 0..20 {
        started.check_on(started.channel(), &"s".repeat(60_000)).await.unwrap_err();
    }
    started.check().await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped_and_told() {
    let mut started = start(DoorConfig { slow_reader: SOON, ..DoorConfig::default() }).await;
    let mut slow = started.plan().await.unwrap();
    let mut fast = started.plan().await.unwrap();
    let reading = tokio::spawn(async move {
        let begun = Instant::now();
        while begun.elapsed() < SOON * 4 {
            assert!(fast.next().await.unwrap().is_ok());
        }
        fast
    });
    tokio::time::timeout(DEADLINE, started.ended.recv()).await.expect("what stands behind it is dropped").unwrap();
    let status = loop {
        match slow.next().await.expect("it ended without a status") {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    refused(&status, Code::ResourceExhausted, "SLOW_READER");
    assert!(status::retryable(&status));
    drop(reading.await.unwrap());
}

#[tokio::test]
async fn headers_have_a_bound() {
    let started = start(DoorConfig::default()).await;
    let mut request = Request::new(HealthCheckRequest::default());
    request.metadata_mut().insert("x-large", "x".repeat(20_000).parse().unwrap());
    let status = HealthClient::new(started.channel()).check(request).await.unwrap_err();
    assert_ne!(status.code(), Code::Ok);
    started.check().await.unwrap();
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_their_connection() {
    let started = start(DoorConfig::default()).await;
    let mut flood = [PREFACE, SETTINGS].concat();
    for number in 0..10_000_u32 {
        let id = (2 * number + 1).to_be_bytes();
        // HEADERS with the method, the scheme and the path, then RST_STREAM
        flood.extend([&[0, 0, 3, 1, 4][..], &id, &[0x83, 0x86, 0x84], &[0, 0, 4, 3, 0], &id, &[0, 0, 0, 8]].concat());
    }
    let stream = TcpStream::connect(started.running.addr()).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    // it may be closed before all is written
    let writing = tokio::spawn(async move { drop(writes.write_all(&flood).await) });
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(DEADLINE, reads.read_to_end(&mut bytes)).await.expect("the connection stayed open");
    writing.await.unwrap();
    started.check().await.unwrap();
}

async fn get(to: SocketAddr, request: &str) -> String {
    let mut stream = connect(to, request.as_bytes()).await;
    String::from_utf8_lossy(&to_end(&mut stream).await).into_owned()
}

#[tokio::test]
async fn the_http_port_has_its_own_bounds() {
    let started = start(DoorConfig { max_http_connections: 8, http_time: SOON, ..DoorConfig::default() }).await;
    let to = started.running.metrics_addr();
    let live = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    assert!(get(to, live).await.starts_with("HTTP/1.1 200"), "it closes without being asked to");
    assert!(get(to, "POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n").await.starts_with("HTTP/1.1 413"));
    assert!(get(to, "GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.starts_with("HTTP/1.1 413"));
    assert!(get(to, &format!("GET /livez HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(10_000))).await.starts_with("HTTP/1.1 431"));
    assert!(get(to, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n").await.starts_with("HTTP/1.1 404"));
    for slow in ["", "GET /livez HTTP/1.1\r\nHost:"] {
        to_end(&mut connect(to, slow.as_bytes()).await).await;
    }
    let started = start(DoorConfig { max_http_connections: 8, ..DoorConfig::default() }).await;
    let to = started.running.metrics_addr();
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(connect(to, b"GET").await);
    }
    assert!(get(to, live).await.starts_with("HTTP/1.1 200"));
    to_end(&mut silent[0]).await;
}
