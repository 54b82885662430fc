//! The events of one task, across gateways that stop and start.
//!
//! What has begun is resumed; what has not begun fails at once. A task has begun when a gateway may
//! have accepted it. Before the first event the same submission is sent again: the task's id makes
//! it the same task. After it the stream goes on behind the last sequence seen, so that no event
//! comes twice and none is left out.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::time::Duration;

use autoact_trajectory::TaskId;
use autoact_wire::client::Authorized;
use autoact_wire::status;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::{self, trajectory_event::Body};
use futures::{Stream, StreamExt as _};
use tokio::time::Instant;
use tonic::{Code, ConnectError, Status};

use crate::listener::{Listener, what_listens};

/// The first pause; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Short beside the time that a gateway takes to start.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A stream that was open for so long had a gateway behind it: what breaks it is a new failure.
const STEADY: Duration = Duration::from_secs(5);

/// What a task has to tell.
#[derive(Debug)]
pub enum Update {
    /// An event.
    Event {
        /// The event.
        event: Box<v1::TrajectoryEvent>,
        /// From the arrival of the request at the gateway until it passed the event on. Absent once
        /// a stream was resumed: the gateway then counts from another request.
        elapsed: Option<Duration>,
        /// Of that: until the task was stored and queued.
        accepted: Option<Duration>,
    },
    /// An agent's words while they are written, of [`Following::with_words`]. The event of the call
    /// has the whole reply.
    Words(v1::TaskDelta),
    /// The stream broke, or could not be resumed; [`Following::next`] tries again after a pause.
    Interrupted {
        /// What broke it.
        status: Status,
        /// The pause.
        pause: Duration,
    },
    /// The stream is there again.
    Resumed,
}

/// A message of a stream, whichever call it came from.
struct Message {
    event: Option<v1::TrajectoryEvent>,
    delta: Option<v1::TaskDelta>,
    elapsed: Option<prost_types::Duration>,
    accepted: Option<prost_types::Duration>,
}

type Messages = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// One task, followed to its end.
pub struct Following {
    client: GatewayClient<Authorized>,
    address: String,
    /// What submits the task; `None` for a task that is there already.
    submission: Option<v1::SubmitTaskRequest>,
    task_id: String,
    /// Of the last event seen.
    sequence: u64,
    /// How long to look for a gateway after a stream broke.
    patience: Duration,
    words: bool,
    stream: Option<(Messages, Instant)>,
    begun: bool,
    trouble: Option<Trouble>,
    interruptions: u32,
    resumed: u32,
    ended: bool,
}

/// A stream that broke and is not there again.
struct Trouble {
    since: Instant,
    attempts: u32,
    next: Instant,
}

impl Following {
    /// Submits a task and follows it. A task without an id is given one: see
    /// [`Following::task_id`]. `client` talks to the gateway at `address`.
    pub fn ask(client: GatewayClient<Authorized>, address: &str, mut task: v1::SubmitTaskRequest, patience: Duration) -> Following {
        if task.task_id.is_empty() {
            task.task_id = TaskId::generate().to_string();
        }
        let task_id = task.task_id.clone();
        Following { submission: Some(task), ..Following::watch(client, address, task_id, 0, patience) }
    }

    /// Follows a task that was submitted before, behind the event with this sequence.
    pub fn watch(client: GatewayClient<Authorized>, address: &str, task_id: String, after: u64, patience: Duration) -> Following {
        Following {
            client,
            address: address.to_owned(),
            submission: None,
            task_id,
            sequence: after,
            patience,
            words: false,
            stream: None,
            begun: false,
            trouble: None,
            interruptions: 0,
            resumed: 0,
            ended: false,
        }
    }

    /// Also the agents' words while they are written, if `words`.
    #[must_use]
    pub fn with_words(self, words: bool) -> Following {
        Following { words, ..self }
    }

    /// The task's id.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// The sequence of the last event seen; 0 before the first.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a gateway may have accepted the task.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// How often the stream was resumed.
    pub fn reconnects(&self) -> u32 {
        self.resumed
    }

    /// The next update; `None` after the task's last event.
    ///
    /// # Errors
    /// The gateway refuses the request, nothing has begun, or no gateway came back in time.
    pub async fn next(&mut self) -> Option<Result<Update, Status>> {
        while !self.ended {
            let (messages, _) = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    if let Some(trouble) = &self.trouble {
                        tokio::time::sleep_until(trouble.next).await;
                    }
                    match self.open().await {
                        Ok(messages) => {
                            let resumed = self.trouble.is_some();
                            self.begun = true;
                            self.stream = Some((messages, Instant::now()));
                            if resumed {
                                self.resumed += 1;
                                return Some(Ok(Update::Resumed));
                            }
                        }
                        Err(status) => return Some(self.broken(status).await),
                    }
                    continue;
                }
            };
            match messages.next().await {
                Some(Ok(message)) => {
                    if let Some(update) = self.update(message) {
                        return Some(Ok(update));
                    }
                }
                Some(Err(status)) => return Some(self.broken(status).await),
                None => return Some(self.broken(Status::unavailable("the stream ended before the task did")).await),
            }
        }
        None
    }

    /// The stream from where we are. Before the first event the submission is sent again.
    async fn open(&mut self) -> Result<Messages, Status> {
        if let Some(task) = self.submission.as_ref().filter(|_| self.sequence == 0) {
            let request = v1::AskRequest { task: Some(task.clone()), after_sequence: 0, deltas: self.words };
            let stream = self.client.ask(request).await?.into_inner();
            let message = |response: v1::AskResponse| {
                let v1::AskResponse { event, delta, elapsed, accepted } = response;
                Message { event, delta, elapsed, accepted }
            };
            return Ok(Box::pin(stream.map(move |item| item.map(message))));
        }
        let request = v1::WatchTaskRequest { task_id: self.task_id.clone(), after_sequence: self.sequence, deltas: self.words };
        let stream = self.client.watch_task(request).await?.into_inner();
        let message =
            |response: v1::WatchTaskResponse| Message { event: response.event, delta: response.delta, elapsed: None, accepted: None };
        Ok(Box::pin(stream.map(move |item| item.map(message))))
    }

    /// The update in a message; `None` for an empty one, and for an event seen before.
    fn update(&mut self, message: Message) -> Option<Update> {
        if let Some(delta) = message.delta {
            return Some(Update::Words(delta));
        }
        let event = message.event.filter(|event| event.sequence > self.sequence)?;
        self.sequence = event.sequence;
        self.ended = matches!(event.body, Some(Body::Finished(_)));
        self.trouble = None;
        let duration = |value: Option<prost_types::Duration>| value.and_then(|value| value.try_into().ok());
        let whole = self.interruptions == 0;
        Some(Update::Event {
            event: Box::new(event),
            elapsed: duration(message.elapsed).filter(|_| whole),
            accepted: duration(message.accepted).filter(|_| whole),
        })
    }

    /// What comes of a call that failed or a stream that broke: a pause, or the end.
    async fn broken(&mut self, status: Status) -> Result<Update, Status> {
        if let Some((_, opened)) = self.stream.take()
            && opened.elapsed() > STEADY
        {
            self.trouble = None;
        }
        // an answer all the same, but of something that is no gateway
        self.begun &= status.code() != Code::Unimplemented;
        self.begun = self.begun || (self.submission.is_some() && may_have_begun(&self.address, &status).await);
        let now = Instant::now();
        let (since, attempts) = self.trouble.as_ref().map_or((now, 0), |trouble| (trouble.since, trouble.attempts));
        let pause = self.pause(attempts).max(status::retry_after(&status).unwrap_or_default().min(LONGEST_PAUSE));
        let left = (since + self.patience).saturating_duration_since(now);
        if !self.begun || !may_pass(&status) || left.is_zero() {
            self.ended = true;
            return Err(status);
        }
        // one last attempt when the time is over
        let pause = pause.min(left);
        self.trouble = Some(Trouble { since, attempts: attempts.saturating_add(1), next: now + pause });
        self.interruptions = self.interruptions.saturating_add(1);
        Ok(Update::Interrupted { status, pause })
    }

    /// Twice as long as the one before, less up to a half: clients that lost the same gateway do
    /// not come back all at once.
    fn pause(&self, attempts: u32) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << attempts.min(16)).min(LONGEST_PAUSE);
        let mut hasher = DefaultHasher::new();
        (&self.task_id, attempts).hash(&mut hasher);
        let part = (hasher.finish() % 1024) as f64 / 1024.0;
        pause.mul_f64(1.0 - part / 2.0)
    }
}

/// Whether the gateway at `address` may have accepted a submission, although the call failed.
async fn may_have_begun(address: &str, status: &Status) -> bool {
    match status::reason(status).as_deref() {
        Some(reason) => reason == "NOT_QUEUED",
        None if is_refused(status) || !may_pass(status) => false,
        // the request was sent; to a gateway, unless something else listens there
        None => matches!(what_listens(address).await, Listener::Http2 | Listener::Nobody),
    }
}

/// Whether no connection was made: nothing was sent.
fn is_refused(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether the same call may succeed later. A service says so itself; a broken connection may come
/// back.
fn may_pass(status: &Status) -> bool {
    if status::reason(status).is_some() {
        return status::retryable(status);
    }
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::Aborted)
}
