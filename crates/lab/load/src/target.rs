//! The target of a load: a gateway, over gRPC.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use autoact_client::{Following, Update};
use autoact_wire::client::connect_lazy;
use autoact_wire::memory_v1;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, trajectory_event::Body};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tonic::transport::Channel;

use crate::error::{LoadError, code_name};
use crate::question::Question;
use crate::seen::{End, Seen};

/// The services let a connection have 1024 streams; half of them keeps clear of that.
const STREAMS_PER_CONNECTION: usize = 512;
/// How long a gateway may take to say that it is there.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// How long one task is given up for, and how long one memory is waited for.
const SIDE_LIMIT: Duration = Duration::from_secs(5);
/// How many memories a recall asks for.
const RECALLED: u32 = 5;
/// The label of every task, to find them and to leave them out.
const LABEL: (&str, &str) = ("source", "autoact load");

/// Something that answers questions.
pub trait Target: Send + Sync + 'static {
    /// Asks, and waits for the end.
    fn ask(&self, question: &Question) -> impl Future<Output = Seen> + Send;

    /// Waits until dropped tasks are cleaned up.
    fn settle(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// How a gateway is asked.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Where the gateway listens.
    pub address: String,
    /// Where the memory service listens; every task then recalls something like its question, after its end.
    pub memory: Option<String>,
    /// How many tasks may be in flight.
    pub in_flight: usize,
    /// How long a task is waited for from its sending on; the group is given the same time.
    pub timeout: Duration,
    /// How the models decode.
    pub temperature: f32,
    /// And with which seed.
    pub seed: u64,
}

/// A gateway under load.
#[derive(Debug)]
pub struct Gateway {
    options: GatewayOptions,
    clients: Vec<GatewayClient<Channel>>,
    memory: Option<MemoryClient<Channel>>,
    next: AtomicUsize,
    /// Tasks being given up.
    settling: TaskTracker,
}

impl Gateway {
    /// A gateway that answered just now.
    ///
    /// # Errors
    /// The address is invalid, or no server answers there.
    pub async fn connect(options: GatewayOptions) -> Result<Gateway, LoadError> {
        let connections = options.in_flight / STREAMS_PER_CONNECTION + 1;
        let client = |_| Ok(autoact_wire::limited!(GatewayClient::new(connect_lazy(&options.address)?)));
        let clients = (0..connections).map(client).collect::<Result<Vec<_>, LoadError>>()?;
        let memory = match &options.memory {
            Some(address) => Some(autoact_wire::limited!(MemoryClient::new(connect_lazy(address)?))),
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

    /// How long a recall took.
    async fn recall(&self, query: &str) -> Option<Result<Duration, &'static str>> {
        let mut client = self.memory.clone()?;
        let query = memory_v1::RecallRequest {
            kind: memory_v1::MemoryKind::Task as i32,
            query: query.to_owned(),
            limit: RECALLED,
            approved_only: false,
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
        // an error means that the time is over, and `seen` says so
        let _ = tokio::time::timeout(*timeout, open.follow()).await;
        let mut seen = open.close();
        if seen.end.finished().is_some() {
            seen.recall = self.recall(&question.text).await;
        }
        seen
    }

    async fn settle(&self) {
        self.settling.close();
        // each has a limit of its own
        self.settling.wait().await;
        self.settling.reopen();
    }
}

/// A task in flight. Dropping it cancels the task, so that it does not load the group any longer.
struct Open {
    client: GatewayClient<Channel>,
    settling: TaskTracker,
    /// The task, also when its gateway stops and another one, or the same again, goes on with it.
    following: Following,
    /// Whether it may run.
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
                Ok(Update::Interrupted { .. } | Update::Resumed) => continue,
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
                // an error means that it runs to its own bound
                let _ = tokio::time::timeout(SIDE_LIMIT, cancel).await;
            },
            &runtime,
        );
    }
}
