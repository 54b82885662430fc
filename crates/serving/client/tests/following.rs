//! A task's events across gateways that stop and start. The gateway here is a server over the real
//! transport that does what a test tells it; `tests/tests/system/restarts.rs` has the real one.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use autoact_client::{Following, Update};
use autoact_wire::client::{Bearer, connect_lazy};
use autoact_wire::status::{ServiceError, to_status};
use autoact_wire::testing::{self, GatewayStub, Responses};
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, trajectory_event::Body};
use futures::{StreamExt as _, stream};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};

/// Longer than any pause here.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a gateway does with one call: events, and how the stream ends.
enum Reply {
    Refuse(Status),
    Events(Vec<u64>, End),
}

enum End {
    Status(Status),
    Cut,
}

/// What the calls were, and what is still to be done with further ones.
#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    calls: Vec<String>,
    /// The ids under which the task was submitted.
    ids: Vec<String>,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    fn of(replies: impl IntoIterator<Item = Reply>) -> Scripted {
        let script = Script { replies: replies.into_iter().collect(), ..Script::default() };
        Scripted(Arc::new(Mutex::new(script)))
    }

    fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().calls.clone()
    }

    fn reply(&self, call: String) -> Result<Vec<Result<v1::TrajectoryEvent, Status>>, Status> {
        let mut script = self.0.lock().unwrap();
        script.calls.push(call);
        match script.replies.pop_front().unwrap() {
            Reply::Refuse(status) => Err(status),
            Reply::Events(sequences, end) => {
                let events = sequences.into_iter().map(|sequence| Ok(event(sequence)));
                Ok(match end {
                    End::Status(status) => events.chain([Err(status)]).collect(),
                    End::Cut => events.collect(),
                })
            }
        }
    }

    /// Serves at `address`, or at a free port.
    fn serve(&self, address: Option<SocketAddr>) -> Server {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = std::net::TcpListener::bind(address.unwrap_or(any)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let runtime = Runtime::new().unwrap();
        let server = tonic::transport::Server::builder().add_service(testing::gateway(self.clone()));
        runtime.spawn(async move {
            let incoming = TcpListenerStream::new(TcpListener::from_std(listener).unwrap());
            server.serve_with_incoming(incoming).await.unwrap();
        });
        Server { address, runtime: Some(runtime) }
    }
}

/// A server with a runtime of its own: with it go its connections, as those of a process do.
struct Server {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Server {
    /// Ends it, and waits until it has ended.
    fn stop(mut self) {
        let runtime = self.runtime.take().unwrap();
        std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5))).join().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The event with this sequence; the fifth is the last.
fn event(sequence: u64) -> v1::TrajectoryEvent {
    let body = match sequence {
        1 => Body::Submitted(v1::Submitted::default()),
        5 => Body::Finished(v1::Finished { answer: "Paris".into(), ..v1::Finished::default() }),
        _ => Body::Thought(v1::Thought::default()),
    };
    v1::TrajectoryEvent { index: sequence, sequence, body: Some(body), ..v1::TrajectoryEvent::default() }
}

#[tonic::async_trait]
impl GatewayStub for Scripted {
    async fn ask(&self, request: Request<v1::AskRequest>) -> Result<Response<Responses<v1::AskResponse>>, Status> {
        let task = request.into_inner().task.unwrap();
        self.0.lock().unwrap().ids.push(task.task_id);
        let events = self.reply(format!("ask {}", task.question))?;
        let elapsed = Some(prost_types::Duration { seconds: 1, nanos: 0 });
        let response = move |event| v1::AskResponse { event: Some(event), elapsed, accepted: elapsed, delta: None };
        Ok(Response::new(Box::pin(stream::iter(events).map(move |item| item.map(response)))))
    }

    async fn watch_task(&self, request: Request<v1::WatchTaskRequest>) -> Result<Response<Responses<v1::WatchTaskResponse>>, Status> {
        let events = self.reply(format!("watch after {}", request.into_inner().after_sequence))?;
        let response = |event| v1::WatchTaskResponse { event: Some(event), delta: None };
        Ok(Response::new(Box::pin(stream::iter(events).map(move |item| item.map(response)))))
    }
}

/// What a gateway says that is going.
#[derive(Debug)]
struct Leaving;

impl std::fmt::Display for Leaving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this gateway is shutting down")
    }
}

impl std::error::Error for Leaving {}

impl ServiceError for Leaving {
    fn code(&self) -> Code {
        Code::Unavailable
    }
    fn reason(&self) -> &'static str {
        "SHUTTING_DOWN"
    }
    fn retry_after(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }
}

fn leaving() -> Status {
    to_status(&Leaving)
}

fn ask(address: SocketAddr, patience: Duration) -> Following {
    let address = format!("http://{address}");
    let task = v1::SubmitTaskRequest { question: "Loire".into(), ..v1::SubmitTaskRequest::default() };
    Following::ask(GatewayClient::with_interceptor(connect_lazy(&address).unwrap(), Bearer::default()), &address, task, patience)
}

/// The sequences of the events until the end, and how often the stream was interrupted.
async fn all(following: &mut Following) -> Result<(Vec<u64>, usize), Status> {
    let (mut sequences, mut interruptions) = (Vec::new(), 0);
    while let Some(update) = following.next().await {
        match update? {
            Update::Event { event, .. } => sequences.push(event.sequence),
            Update::Interrupted { .. } => interruptions += 1,
            Update::Words(_) | Update::Resumed => {}
        }
    }
    Ok((sequences, interruptions))
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_event_seen() {
    let gateway = Scripted::of([
        Reply::Events(vec![1, 2], End::Status(leaving())),
        // nothing new, and cut off without a word
        Reply::Events(vec![], End::Cut),
        // one that sends an event again does no harm
        Reply::Events(vec![2, 3], End::Status(Status::unknown("error reading a body from connection"))),
        Reply::Events(vec![4, 5], End::Cut),
    ]);
    let server = gateway.serve(None);
    let mut following = ask(server.address, PATIENCE);
    assert_eq!(all(&mut following).await.unwrap(), (vec![1, 2, 3, 4, 5], 3));
    assert_eq!(gateway.calls(), ["ask Loire", "watch after 2", "watch after 2", "watch after 3"]);
    assert_eq!((following.reconnects(), following.sequence()), (3, 5));
    assert!(following.next().await.is_none(), "it has ended");
}

#[tokio::test]
async fn before_the_first_event_the_same_task_is_submitted_again() {
    let gateway = Scripted::of([Reply::Events(vec![], End::Status(leaving())), Reply::Events(vec![1, 5], End::Cut)]);
    let server = gateway.serve(None);
    let mut following = ask(server.address, PATIENCE);
    assert_eq!(all(&mut following).await.unwrap().0, [1, 5]);
    let script = gateway.0.lock().unwrap();
    assert_eq!(script.calls, ["ask Loire", "ask Loire"]);
    assert_eq!((&script.ids[0], script.ids[0].as_str()), (&script.ids[1], following.task_id()));
    assert!(!following.task_id().is_empty());
}

#[tokio::test]
async fn a_gateway_that_comes_back_is_found() {
    let gateway = Scripted::of([Reply::Events(vec![1, 2], End::Status(leaving())), Reply::Events(vec![3, 5], End::Cut)]);
    let server = gateway.serve(None);
    let mut following = ask(server.address, PATIENCE);
    let mut sequences = Vec::new();
    let interrupted = loop {
        match following.next().await.unwrap().unwrap() {
            Update::Event { event, elapsed, .. } => {
                assert!(elapsed.is_some());
                sequences.push(event.sequence);
            }
            Update::Interrupted { status, .. } => break status,
            Update::Words(_) | Update::Resumed => panic!("nothing was interrupted"),
        }
    };
    assert_eq!(interrupted.code(), Code::Unavailable);
    let address = server.address;
    server.stop();
    // nobody is there: more interruptions, until somebody is
    assert!(matches!(following.next().await, Some(Ok(Update::Interrupted { .. }))));
    assert!(matches!(following.next().await, Some(Ok(Update::Interrupted { .. }))));
    let _server = gateway.serve(Some(address));
    let mut resumed = 0;
    while let Some(update) = following.next().await {
        match update.unwrap() {
            Update::Event { event, elapsed, accepted } => {
                assert_eq!((elapsed, accepted), (None, None), "it had several requests");
                sequences.push(event.sequence);
            }
            Update::Words(_) | Update::Interrupted { .. } => {}
            Update::Resumed => resumed += 1,
        }
    }
    assert_eq!((sequences, resumed, following.reconnects()), (vec![1, 2, 3, 5], 1, 1));
}

#[tokio::test]
async fn what_has_not_begun_fails_at_once() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut following = ask(nobody, PATIENCE);
    let status = all(&mut following).await.unwrap_err();
    assert_eq!((status.code(), following.has_begun()), (Code::Unavailable, false));

    // a gateway that says no, for now or for ever
    for refusal in [leaving(), Status::resource_exhausted("full"), Status::already_exists("another question")] {
        let (code, gateway) = (refusal.code(), Scripted::of([Reply::Refuse(refusal)]));
        let server = gateway.serve(None);
        assert_eq!(all(&mut ask(server.address, PATIENCE)).await.unwrap_err().code(), code);
        assert_eq!(gateway.calls().len(), 1);
    }
}

#[tokio::test]
async fn what_is_no_gateway_fails_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let mut following = ask(address, PATIENCE);
    assert!(all(&mut following).await.is_err());
    assert!(!following.has_begun());
}

#[tokio::test]
async fn a_stored_task_that_was_not_queued_is_submitted_again() {
    #[derive(Debug)]
    struct NotQueued;
    impl std::fmt::Display for NotQueued {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("stored, but not queued")
        }
    }
    impl std::error::Error for NotQueued {}
    impl ServiceError for NotQueued {
        fn code(&self) -> Code {
            Code::Unavailable
        }
        fn reason(&self) -> &'static str {
            "NOT_QUEUED"
        }
    }
    let gateway = Scripted::of([Reply::Refuse(to_status(&NotQueued)), Reply::Events(vec![1, 5], End::Cut)]);
    let server = gateway.serve(None);
    assert_eq!(all(&mut ask(server.address, PATIENCE)).await.unwrap(), (vec![1, 5], 1));
}

#[tokio::test]
async fn patience_ends() {
    let gateway = Scripted::of([Reply::Events(vec![1], End::Status(leaving()))]);
    let server = gateway.serve(None);
    let mut following = ask(server.address, Duration::from_millis(400));
    assert!(matches!(following.next().await, Some(Ok(Update::Event { .. }))));
    server.stop();
    let begun = tokio::time::Instant::now();
    assert_eq!(all(&mut following).await.unwrap_err().code(), Code::Unavailable);
    assert!(following.has_begun() && begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(following.next().await.is_none());

    // and with none, the first break is the end
    let gateway = Scripted::of([Reply::Events(vec![1], End::Status(leaving()))]);
    let server = gateway.serve(None);
    assert!(all(&mut ask(server.address, Duration::ZERO)).await.unwrap_err().message().contains("shutting down"));
}
