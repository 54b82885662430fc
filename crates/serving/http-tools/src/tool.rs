//! A request as a tool.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use autoact_tools::{Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Arguments, ToolSpec};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::client::HttpClient;
use crate::connect::Reach;
use crate::failure::HttpFailure;
use crate::hosts::HostRule;
use crate::observe::observation;
use crate::operation::{Operation, OperationError};
use crate::repair::{Refused, repair};
use crate::request::build;
use crate::send::{left, send};

/// How much longer than the call's time a thread waits for the runtime to say that it is up.
const GRACE: Duration = Duration::from_secs(1);

/// A request as a tool.
#[derive(Clone)]
pub struct HttpTool {
    shared: Arc<Shared>,
}

struct Shared {
    spec: ToolSpec,
    operation: Operation,
    hosts: Vec<HostRule>,
    places: Semaphore,
    client: HttpClient,
}

impl std::fmt::Debug for HttpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTool").field("name", &self.shared.spec.name).field("operation", &self.shared.operation).finish_non_exhaustive()
    }
}

impl HttpTool {
    /// A tool that makes this request. Its effect, its schema and its bound on observations are
    /// those of `spec`; its time limit is the shorter of both.
    ///
    /// # Errors
    /// The request cannot be built from arguments of the spec's schema.
    pub fn new(spec: ToolSpec, operation: Operation, client: HttpClient) -> Result<HttpTool, OperationError> {
        let schema = spec.schema.as_ref().ok_or(OperationError::Argument("schema".to_owned()))?;
        operation.check(schema)?;
        let hosts = match operation.hosts.is_empty() {
            true => HostRule::of(operation.url.origin()),
            false => operation.hosts.clone(),
        };
        let places = Semaphore::new(operation.limits.concurrency.min(Semaphore::MAX_PERMITS));
        Ok(HttpTool { shared: Arc::new(Shared { spec, operation, hosts, places, client }) })
    }

    /// The request that it makes.
    pub fn operation(&self) -> &Operation {
        &self.shared.operation
    }

    /// The URL that a call with these arguments asks first; secrets of the query are shown as
    /// `***`.
    ///
    /// # Errors
    /// The arguments cannot be part of a request, or a secret is missing.
    pub fn url(&self, arguments: &Arguments) -> Result<Url, HttpFailure> {
        let Shared { spec, operation, client, .. } = &*self.shared;
        let prepared = build(operation, spec.effect, arguments, "", &client.inner.variables)?;
        let shown = prepared.hidden.clean(prepared.url.to_string());
        Url::parse(&shown).map_err(|_| HttpFailure::Internal("the URL cannot be shown".to_owned()))
    }

    /// Makes the request, and returns the observation. `key` names the call
    /// ([`ToolCall::key`]); arguments satisfy the schema.
    ///
    /// # Errors
    /// The request must not be made, fails, or is answered with an error.
    pub fn call(&self, arguments: &Arguments, key: &str) -> Result<String, HttpFailure> {
        let shared = Arc::clone(&self.shared);
        let limit = shared.limit();
        let (arguments, key) = (arguments.clone(), key.to_owned());
        let (done, result) = sync_channel(1);
        let deadline = Instant::now() + limit;
        let task = self.shared.client.handle.spawn(async move {
            let answered = tokio::time::timeout_at(deadline, shared.call(&arguments, &key, deadline)).await;
            // nobody may wait any more
            let _ = done.send(answered.unwrap_or(Err(HttpFailure::TimedOut { after: limit })));
        });
        // a caller that gives up ends the request
        let _task = AbortOnDropHandle::new(task);
        match result.recv_timeout(limit + GRACE) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(HttpFailure::TimedOut { after: limit }),
            Err(RecvTimeoutError::Disconnected) => Err(HttpFailure::Internal("the request was given up".to_owned())),
        }
    }
}

impl Shared {
    fn limit(&self) -> Duration {
        self.spec.timeout.min(self.operation.limits.time)
    }

    async fn call(&self, arguments: &Arguments, key: &str, deadline: Instant) -> Result<String, HttpFailure> {
        let Shared { spec, operation, client, .. } = self;
        let busy = HttpFailure::Busy { limit: operation.limits.concurrency };
        let place = match tokio::time::timeout(left(deadline) / 2, self.places.acquire()).await {
            Ok(Ok(place)) => place,
            _ => return Err(busy),
        };
        let prepared = build(operation, spec.effect, arguments, key, &client.inner.variables)?;
        let reach = Reach { hosts: &self.hosts, allow_private: operation.allow_private };
        let answer = send(client, operation, spec.effect, reach, &prepared, deadline).await;
        drop(place);
        observation(&answer?, spec.max_observation_bytes, &prepared.hidden)
    }
}

impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.shared.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let none = Arguments::new();
        match self.call(call.arguments.unwrap_or(&none), call.key) {
            Ok(text) => Ok(text.into()),
            // the model may correct itself
            Err(HttpFailure::Status { status: status @ (400 | 422), body, .. }) => {
                Err(ToolError::Params(repair(self.spec(), Refused::Response { status, body: &body })))
            }
            Err(failure) => Err(failure.into()),
        }
    }
}
