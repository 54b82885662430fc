//! Hostile clients against the gateway as a process of its own, beside a real nats-server: what they
//! take is bounded, and honest clients are served all the same. `AUTOACT_TEST_LONG=1` makes them as
//! many as the milestone asks for; without it they are a tenth.

use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::common::scripted::{Group, Script};
use crate::common::{Client, LIMIT, task};
use autoact_testkit::NatsServer;
use autoact_wire::client::connect_lazy;
use autoact_wire::{status, v1};
use http_body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::{Code, Status};

/// What hostile clients may add to the resident memory of the process.
const MOST_GROWTH: u64 = 64 << 20;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The first bytes of a HEADERS frame of 256 bytes, which never come.
const HEADERS: &[u8] = &[0, 1, 0, 1, 0, 0, 0, 0, 1, 0x82];

fn long() -> bool {
    std::env::var_os("AUTOACT_TEST_LONG").is_some_and(|value| value == "1")
}

/// A gateway as a process.
struct Process {
    child: Child,
    addr: SocketAddr,
    http: SocketAddr,
    _nats: NatsServer,
    group: Group,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    async fn start(settings: &[(&str, &str)]) -> Process {
        let nats = NatsServer::start().await.unwrap();
        let group = Group::start(Script::default()).await;
        let port = || autoact_testkit::ports::free_port().unwrap();
        let (addr, http) = (format!("127.0.0.1:{}", port()), format!("127.0.0.1:{}", port()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_gateway"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AUTOACT_")) {
            command.env_remove(name);
        }
        let (plan, tool, reflect) = (group.plan_address(), group.tool_address(), group.reflect_address());
        let given: [(&str, &str); 9] = [
            ("listen", addr.as_str()),
            ("metrics_listen", &http),
            ("nats.url", &nats.url()),
            ("agents.plan", &plan),
            ("agents.tool", &tool),
            ("agents.reflect", &reflect),
            ("memory", ""),
            ("bus.allow_unsynced", "true"),
            ("bus.max_bytes", "67108864"),
        ];
        for (key, value) in given.iter().chain(settings) {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let process = Process { child, addr: addr.parse().unwrap(), http: http.parse().unwrap(), _nats: nats, group };
        let deadline = Instant::now() + LIMIT;
        while !process.get("/readyz").await.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            assert!(Instant::now() < deadline, "the gateway did not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // what the first calls need is no growth
        for _ in 0..20 {
            process.honest().await;
        }
        process
    }

    fn client(&self) -> Client {
        autoact_wire::limited!(Client::new(connect_lazy(&self.addr.to_string()).unwrap()))
    }

    /// A client that comes now, on a connection of its own.
    async fn honest(&self) {
        let call = async { self.client().list_tasks(v1::ListTasksRequest::default()).await };
        tokio::time::timeout(LIMIT, call).await.expect("no answer").unwrap();
    }

    /// Bytes of memory that are resident.
    fn resident(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    fn bounded(&self, before: u64, what: &str) {
        let growth = self.resident().saturating_sub(before);
        println!("{what}: {} KiB more resident memory", growth >> 10);
        assert!(growth < MOST_GROWTH, "{what}: {growth} bytes more");
    }

    async fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.http).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        Some(text)
    }

    /// Time series of calls.
    async fn series(&self) -> usize {
        let metrics = self.get("/metrics").await.unwrap();
        metrics.lines().filter(|line| line.starts_with("autoact_grpc_seconds_count")).count()
    }

    /// Asks for a path with a body; the status that comes back.
    async fn raw(&self, channel: tonic::transport::Channel, path: &str, body: tonic::body::Body) -> Status {
        let request = http::Request::post(format!("http://{}{path}", self.addr)).header("content-type", "application/grpc");
        let answer = tower::ServiceExt::oneshot(channel, request.body(body).unwrap());
        let response = tokio::time::timeout(LIMIT, answer).await.expect("no answer").unwrap();
        Status::from_header_map(response.headers()).expect("no status")
    }
}

/// Connections that say this and then nothing.
async fn silent(to: SocketAddr, count: usize, says: &[u8]) -> Vec<TcpStream> {
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(to).await.unwrap();
        // it may be closed already: others came after it
        let _ = stream.write_all(says).await;
        open.push(stream);
    }
    open
}

/// A message of 1 GB, as long as anybody takes it.
struct Gigabyte {
    prefix: bool,
    left: usize,
}

impl http_body::Body for Gigabyte {
    type Data = bytes::Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<bytes::Bytes>, Status>>> {
        static PIECE: [u8; 64 * 1024] = [7; 64 * 1024];
        if std::mem::replace(&mut self.prefix, false) {
            let prefix = [&[0][..], &(1_u32 << 30).to_be_bytes()].concat();
            return Poll::Ready(Some(Ok(Frame::data(prefix.into()))));
        }
        let some = self.left.min(PIECE.len());
        self.left -= some;
        Poll::Ready((some > 0).then(|| Ok(Frame::data(bytes::Bytes::from_static(&PIECE[..some])))))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_and_slowness_take_little_and_keep_nobody_out() {
    let gateway = Process::start(&[]).await;
    let asked = if long() { 10_000 } else { 1_000 };
    // this process needs a descriptor for each as well
    let count = asked.min(descriptors().saturating_sub(200));
    println!("{count} of {asked} connections at a time");
    let before = gateway.resident();
    let says: [(&str, &[u8]); 3] = [
        ("silent sockets", &b""[..]),
        ("greetings", &[PREFACE, SETTINGS].concat()),
        ("slow-loris", &[PREFACE, SETTINGS, HEADERS].concat()),
    ];
    for (what, says) in says {
        let open = silent(gateway.addr, count, says).await;
        gateway.honest().await;
        gateway.bounded(before, &format!("{count} {what}"));
        drop(open);
    }
    let open = silent(gateway.http, count, b"GET /metrics HTTP/1.1\r\nHost:").await;
    assert!(gateway.get("/livez").await.unwrap().starts_with("HTTP/1.1 200"));
    gateway.bounded(before, &format!("{count} slow-loris at the HTTP port"));
    drop(open);
    gateway.honest().await;
}

/// Files that this process may have open: as many as it is allowed.
fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_is_refused_by_its_first_bytes() {
    let gateway = Process::start(&[]).await;
    let before = gateway.resident();
    for path in ["SubmitTask", "Ask", "GetTask"] {
        let body = tonic::body::Body::new(Gigabyte { prefix: true, left: 1 << 30 });
        let channel = connect_lazy(&gateway.addr.to_string()).unwrap();
        let refused = gateway.raw(channel, &format!("/autoact.v1.Gateway/{path}"), body).await;
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
        assert_eq!(status::reason(&refused).as_deref(), Some("REQUEST_TOO_LARGE"));
        assert_eq!(status::metadata(&refused)["value"], (1_u32 << 30).to_string());
    }
    gateway.bounded(before, "messages of 1 GB");
    gateway.honest().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_paths_leave_nothing_behind() {
    let gateway = Process::start(&[]).await;
    let count = if long() { 100_000 } else { 10_000 };
    let channel = connect_lazy(&gateway.addr.to_string()).unwrap();
    let ask = async |from: usize, to: usize| {
        let mut asked = Vec::new();
        for number in from..to {
            let path = format!("/autoact.v1.Gateway/MadeUp{number}");
            let (gateway, channel) = (&gateway, channel.clone());
            asked.push(async move { gateway.raw(channel, &path, tonic::body::Body::empty()).await.code() });
            if asked.len() == 100 {
                let codes = futures::future::join_all(asked.drain(..)).await;
                assert!(codes.into_iter().all(|code| code == Code::Unimplemented));
            }
        }
    };
    ask(0, 200).await;
    let (before, series) = (gateway.resident(), gateway.series().await);
    ask(200, count).await;
    assert_eq!(gateway.series().await, series, "paths became labels");
    let metrics = gateway.get("/metrics").await.unwrap();
    assert!(!metrics.contains("MadeUp") && metrics.contains("method=\"unknown\""));
    gateway.bounded(before, &format!("{count} made-up paths"));
    gateway.honest().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_beyond_the_bound_are_refused() {
    let (count, most) = if long() { (10_000, 2_048) } else { (1_000, 256) };
    let gateway = Process::start(&[("max_watchers", &most.to_string())]).await;
    // a task that goes on as long as we hold its group
    gateway.group.hold_after(0);
    let submitted = gateway.client().submit_task(task("q?")).await.unwrap().into_inner().task.unwrap();
    let before = gateway.resident();
    let (mut watching, mut refused) = (Vec::new(), 0);
    let mut client = gateway.client();
    for number in 0..count {
        // a connection takes 1,024 streams
        if number % 500 == 0 {
            client = gateway.client();
        }
        let request = v1::WatchTaskRequest { task_id: submitted.task_id.clone(), deltas: true, ..Default::default() };
        match client.watch_task(request).await {
            Ok(stream) => watching.push(stream),
            Err(error) => {
                assert_eq!(error.code(), Code::ResourceExhausted, "{error:?}");
                assert_eq!(status::reason(&error).as_deref(), Some("TOO_MANY_WATCHERS"));
                assert!(status::retry_after(&error).is_some());
                refused += 1;
            }
        }
    }
    println!("{} watch, {refused} were refused", watching.len());
    assert_eq!((watching.len(), refused), (most, count - most));
    gateway.bounded(before, &format!("{most} watchers, {refused} refused"));
    gateway.honest().await;
    // each that leaves makes room for another one
    watching.truncate(most - 1);
    let deadline = Instant::now() + LIMIT;
    let request = || v1::WatchTaskRequest { task_id: submitted.task_id.clone(), ..Default::default() };
    while gateway.client().watch_task(request()).await.is_err() {
        assert!(Instant::now() < deadline, "no place came free");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_is_dropped_and_goes_on_where_it_was() {
    let gateway = Process::start(&[("door.slow_reader", "300ms")]).await;
    let id = gateway.client().submit_task(task("q?")).await.unwrap().into_inner().task.unwrap().task_id;
    let all = crate::common::watch(&mut gateway.client(), &id, 0).await;
    // room for a few bytes: the rest stays with the gateway
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", gateway.addr)).unwrap();
    let channel = endpoint.initial_stream_window_size(64).connect().await.unwrap();
    let request = v1::WatchTaskRequest { task_id: id.clone(), ..Default::default() };
    let mut slow = Client::new(channel).watch_task(request).await.unwrap().into_inner();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut seen = Vec::new();
    let told = loop {
        match slow.message().await {
            Ok(Some(response)) => seen.push(response.event.unwrap()),
            Ok(None) => panic!("it ended without a word"),
            Err(status) => break status,
        }
    };
    assert_eq!((told.code(), status::reason(&told).as_deref()), (Code::ResourceExhausted, Some("SLOW_READER")), "{told:?}");
    assert!(status::retryable(&told));
    let after: u64 = status::metadata(&told)["after_sequence"].parse().unwrap();
    assert_eq!(seen.last().map_or(0, |event| event.sequence), after, "all that was taken was sent");
    assert!(seen.len() < all.len());
    seen.extend(crate::common::watch(&mut gateway.client(), &id, after).await);
    assert_eq!(seen, all, "nothing is missing, nothing comes twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_a_bound_are_refused_with_the_field_and_the_bound() {
    let gateway = Process::start(&[]).await;
    let labels = |count: usize, bytes: usize| (0..count).map(|n| (format!("l{n}"), "v".repeat(bytes))).collect();
    let limits = v1::Limits { max_steps: Some(101), ..Default::default() };
    let cases = [
        (v1::SubmitTaskRequest { labels: labels(33, 1), ..task("q?") }, "BAD_LABELS", "labels", "32"),
        (v1::SubmitTaskRequest { labels: labels(1, 257), ..task("q?") }, "BAD_LABELS", "labels", "256"),
        (v1::SubmitTaskRequest { labels: [("n".repeat(257), String::new())].into(), ..task("q?") }, "BAD_LABELS", "labels", "256"),
        (v1::SubmitTaskRequest { tools: vec!["Retrieve".into(); 65], ..task("q?") }, "TOO_MANY_TOOLS", "tools", "64"),
        (v1::SubmitTaskRequest { limits: Some(limits), ..task("q?") }, "LIMIT_TOO_HIGH", "limits.max_steps", "100"),
        (task(&"q".repeat(16 * 1024 + 1)), "QUESTION_TOO_LONG", "question", "16384"),
    ];
    for (request, reason, field, limit) in cases {
        let refused = gateway.client().submit_task(request).await.unwrap_err();
        assert_eq!((refused.code(), status::reason(&refused).as_deref()), (Code::InvalidArgument, Some(reason)), "{refused:?}");
        let metadata = status::metadata(&refused);
        assert_eq!((metadata["field"].as_str(), metadata["limit"].as_str()), (field, limit));
    }
    // each was counted
    let metrics = gateway.get("/metrics").await.unwrap();
    assert!(metrics.contains("autoact_errors_total{reason=\"BAD_LABELS\"} 3"), "{metrics}");
}
