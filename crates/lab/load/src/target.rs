//! The target of a load: a gateway, over gRPC.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use autoact_client::{Following, Update};
use autoact_wire::client::{Authorized, Bearer, Connector};
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, trajectory_event::Body};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::error::{LoadError, code_name};
use crate::question::Question;
use crate::seen::{End, Seen};

/// Streams per connection. The services allow 1024, of which half is used.
const STREAMS_PER_CONNECTION: usize = 512;
/// Time limit of a gateway's first answer.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for cancelling one task, and for one query of the memory service.
const SIDE_LIMIT: Duration = Duration::from_secs(5);
/// Number of memories that a query asks for.
const RECALLED: u32 = 5;
/// The label of every task of a load, by which they can be found or left out.
const LABEL: (&str, &str) = ("source", "autoact load");

/// Something that answers questions.
pub trait Target: Send + Sync + 'static {
    /// Asks a question and waits for the end.
    fn ask(&self, question: &Question) -> impl Future<Output = Seen> + Send;

    /// Waits until dropped tasks are cleaned up.
    fn settle(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Options for a gateway under load.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The gateway's address.
    pub address: String,
    /// Makes the connections.
    pub connector: Connector,
    /// The memory service's address. If set, every task is followed by a query with its question.
    pub memory: Option<String>,
    /// The token that both ask for.
    pub bearer: Bearer,
    /// Maximum number of tasks in flight.
    pub in_flight: usize,
    /// Time limit of a task from sending; the group gets the same limit.
    pub timeout: Duration,
    /// Sampling temperature.
    pub temperature: f32,
    /// Sampling seed.
    pub seed: u64,
}

/// A gateway under load.
#[derive(Debug)]
pub struct Gateway {
    options: GatewayOptions,
    clients: Vec<GatewayClient<Authorized>>,
    memory: Option<MemoryClient<Authorized>>,
    next: AtomicUsize,
    /// Tasks being cancelled.
    settling: TaskTracker,
}

impl Gateway {
    /// Connects to a gateway and checks that it answers.
    ///
    /// # Errors
    /// The address is invalid, or no server answers there.
    pub async fn connect(options: GatewayOptions) -> Result<Gateway, LoadError> {
        let connections = options.in_flight / STREAMS_PER_CONNECTION + 1;
        let client = |_| {
            Ok(autoact_wire::limited!(GatewayClient::with_interceptor(
                options.connector.connect_lazy(&options.address)?,
                options.bearer.clone()
            )))
        };
        let clients = (0..connections).map(client).collect::<Result<Vec<_>, LoadError>>()?;
        let memory = match &options.memory {
            Some(address) => Some(autoact_wire::limited!(MemoryClient::with_interceptor(
                options.connector.connect_lazy(address)?,
                options.bearer.clone()
            ))),
            None => None,
        };
        for client in &clients {
            let mut request = tonic::Request::new(v1::ListTasksRequest { page_size: 1, ..v1::ListTasksRequest::default() });
            request.set_timeout(CHECK_LIMIT);
            if let Err(status) = client.clone().list_tasks(request).await {
                return Err(LoadError::Gateway { address: options.address, status: Box::new(status) });
            }
        }
        Ok(Gateway { options, clients, memory, next: AtomicUsize::new(0), settling: TaskTracker::new() })
    }

    fn request(&self, question: &Question) -> v1::SubmitTaskRequest {
        let GatewayOptions { timeout, temperature, seed, .. } = self.options;
        v1::SubmitTaskRequest {
            question: question.text.clone(),
            limits: Some(v1::Limits { max_time: timeout.try_into().ok(), ..v1::Limits::default() }),
            sampling: Some(v1::SamplingParams { temperature, seed, ..v1::SamplingParams::default() }),
            labels: [(LABEL.0.to_owned(), LABEL.1.to_owned())].into(),
            ..v1::SubmitTaskRequest::default()
        }
    }

    /// Queries the memory service and measures the duration.
    async fn recall(&self, query: &str) -> Option<Result<Duration, &'static str>> {
        let mut client = self.memory.clone()?;
        let query = memory_v1::RecallRequest {
            kind: memory_v1::MemoryKind::Task as i32,
            query: query.to_owned(),
            limit: RECALLED,
            ..memory_v1::RecallRequest::default()
        };
        let mut request = tonic::Request::new(query);
        request.set_timeout(SIDE_LIMIT);
        let begun = Instant::now();
        let recalled = client.recall(request).await;
        Some(recalled.map(|_| begun.elapsed()).map_err(|status| code_name(&status)))
    }
}

impl Target for Gateway {
    async fn ask(&self, question: &Question) -> Seen {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        let client = self.clients[at].clone();
        let sent = Instant::now();
        let seen =
            Seen { sent, done: sent, end: End::TimedOut, events: Vec::new(), elapsed: None, accepted: None, recall: None, reconnects: 0 };
        let GatewayOptions { address, timeout, .. } = &self.options;
        let following = Following::ask(client.clone(), address, self.request(question), *timeout);
        let mut open = Open { client, settling: self.settling.clone(), following, runs: true, seen };
        // an error means that the time limit was reached, which `seen` records
        let _ = tokio::time::timeout(*timeout, open.follow()).await;
        let mut seen = open.close();
        if seen.end.finished().is_some() {
            seen.recall = self.recall(&question.text).await;
        }
        seen
    }

    async fn settle(&self) {
        self.settling.close();
        // each of them has its own limit
        self.settling.wait().await;
        self.settling.reopen();
    }
}

/// A task in flight. Dropping it cancels the task, so that it no longer loads the group.
struct Open {
    client: GatewayClient<Authorized>,
    settling: TaskTracker,
    /// The task's stream, which continues if its gateway stops and another one takes over.
    following: Following,
    /// Whether the task may still be running.
    runs: bool,
    seen: Seen,
}

impl Open {
    async fn follow(&mut self) {
        self.seen.end = self.events().await;
        self.seen.done = Instant::now();
        self.runs = false;
    }

    async fn events(&mut self) -> End {
        while let Some(update) = self.following.next().await {
            let (event, elapsed, accepted) = match update {
                Ok(Update::Event { event, elapsed, accepted }) => (event, elapsed, accepted),
                Ok(Update::Words(_) | Update::Interrupted { .. } | Update::Resumed) => continue,
                Err(status) => return End::status(&status),
            };
            self.seen.elapsed = elapsed;
            self.seen.accepted = self.seen.accepted.or(accepted);
            let finished = match &event.body {
                Some(Body::Finished(finished)) => Some(finished.clone()),
                _ => None,
            };
            self.seen.events.push(*event);
            if let Some(finished) = finished {
                return End::Finished(finished);
            }
        }
        End::Cut
    }

    fn close(mut self) -> Seen {
        if self.seen.end == End::TimedOut {
            self.seen.done = Instant::now();
        }
        let (sent, done) = (self.seen.sent, self.seen.done);
        self.seen.reconnects = self.following.reconnects();
        let empty = Seen { sent, done, end: End::Cut, events: Vec::new(), elapsed: None, accepted: None, recall: None, reconnects: 0 };
        std::mem::replace(&mut self.seen, empty)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (true, Ok(runtime)) = (self.runs, tokio::runtime::Handle::try_current()) else { return };
        let (mut client, task_id) = (self.client.clone(), self.following.task_id().to_owned());
        self.settling.spawn_on(
            async move {
                let cancel = client.cancel_task(v1::CancelTaskRequest { task_id });
                // an error means that the task runs to its own bound
                let _ = tokio::time::timeout(SIDE_LIMIT, cancel).await;
            },
            &runtime,
        );
    }
}
