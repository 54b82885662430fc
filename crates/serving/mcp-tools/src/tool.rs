//! A server's tool as a tool.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use autoact_tools::{Tool, ToolCall, ToolError, ToolOutput};
use autoact_trajectory::{Arguments, Effect, ToolSpec};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, RequestMetaObject, RequestParamsMeta as _};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::failure::{McpClass, McpFailure};
use crate::import::ImportedTool;
use crate::observe::observation;
use crate::options::McpTransport;
use crate::server::Shared;

/// The key in `_meta` under which a server finds the name of a call.
pub const IDEMPOTENCY_KEY: &str = "autoact/idempotency-key";
/// How long a server may take to be told that a call is cancelled.
const CANCELLING: Duration = Duration::from_millis(500);
/// How much longer than the call's time a thread waits for the runtime to say that it is up.
const GRACE: Duration = Duration::from_secs(2);

/// A tool of a server.
#[derive(Clone)]
pub struct McpTool {
    called: Arc<Called>,
}

struct Called {
    server: Arc<Shared>,
    spec: ToolSpec,
    remote: String,
    digest: String,
}

impl std::fmt::Debug for McpTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Called { server, spec, remote, .. } = &*self.called;
        f.debug_struct("McpTool").field("name", &spec.name).field("server", &server.options.name).field("remote", remote).finish()
    }
}

impl McpTool {
    pub(crate) fn new(server: Arc<Shared>, imported: &ImportedTool) -> McpTool {
        let ImportedTool { spec, remote, digest, .. } = imported.clone();
        McpTool { called: Arc::new(Called { server, spec, remote, digest }) }
    }

    /// What the server calls it.
    pub fn remote(&self) -> &str {
        &self.called.remote
    }

    /// The digest of its definition when it was imported.
    pub fn digest(&self) -> &str {
        &self.called.digest
    }

    /// Calls it, and returns the observation; arguments satisfy the schema.
    ///
    /// # Errors
    /// The server cannot be reached, refuses or fails, or the tool reports an error.
    pub fn call(&self, arguments: &Arguments) -> Result<String, McpFailure> {
        self.call_as(arguments, "")
    }

    /// The same call under a name of its own, which repetitions of it have too: the server gets it
    /// in the call's `_meta`, under [`IDEMPOTENCY_KEY`]. Empty: none.
    ///
    /// # Errors
    /// See [`call`](Self::call).
    pub fn call_as(&self, arguments: &Arguments, key: &str) -> Result<String, McpFailure> {
        let (called, asked) = (Arc::clone(&self.called), Asked { arguments: arguments.clone(), key: key.to_owned() });
        let limit = called.spec.timeout;
        let (done, result) = sync_channel(1);
        let deadline = Instant::now() + limit;
        let task = self.called.server.handle().spawn(async move {
            let answered = timeout_at(deadline + CANCELLING, called.call(asked, deadline)).await;
            let answered = match answered {
                Ok(Err(McpFailure::TimedOut { .. })) => Err(McpFailure::TimedOut { after: limit }),
                Ok(answered) => answered,
                Err(_) => {
                    called.server.give_up().await;
                    Err(McpFailure::TimedOut { after: limit })
                }
            };
            // nobody may wait any more
            let _ = done.send(answered);
        });
        // a caller that gives up ends the call
        let _task = AbortOnDropHandle::new(task);
        match result.recv_timeout(limit + GRACE) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(McpFailure::TimedOut { after: limit }),
            Err(RecvTimeoutError::Disconnected) => Err(McpFailure::Internal("the call was given up".to_owned())),
        }
    }
}

/// What a tool is called with.
struct Asked {
    arguments: Arguments,
    key: String,
}

impl Called {
    async fn call(&self, asked: Asked, deadline: Instant) -> Result<String, McpFailure> {
        let limits = self.server.options.limits;
        let half = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        let Ok(Ok(_place)) = timeout_at(half, self.server.places.acquire()).await else {
            return Err(McpFailure::Busy { limit: limits.concurrency });
        };
        match self.once(&asked, deadline).await {
            // the connection was gone before the call reached the server
            Err(McpFailure::Ended { .. }) => self.once(&asked, deadline).await,
            Err(failure) if failure.class() == McpClass::MayHaveRun && self.spec.effect != Effect::SideEffect => {
                self.once(&asked, deadline).await
            }
            other => other,
        }
    }

    async fn once(&self, asked: &Asked, deadline: Instant) -> Result<String, McpFailure> {
        let connection = self.server.connection(deadline).await?;
        let checked = self.server.check(&connection, &self.remote, &self.digest, deadline).await;
        checked.map_err(|failure| match failure {
            // it is the list that was under way
            McpFailure::MayHaveRun { server, reason } => McpFailure::Ended { server, reason },
            other => other,
        })?;
        let mut params = CallToolRequestParams::new(self.remote.clone()).with_arguments(asked.arguments.clone());
        if !asked.key.is_empty() {
            let mut meta = RequestMetaObject::new();
            meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), asked.key.clone().into());
            params.set_meta(meta);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let result = self.server.ask(&connection, request, deadline).await?;
        let result = serde_json::to_value(&result).map_err(|error| McpFailure::Internal(error.to_string()))?;
        let listed = result.get("content").map(Value::is_array);
        if !listed.unwrap_or_else(|| result.get("structuredContent").is_some()) {
            let kind = result.get("resultType").and_then(Value::as_str).unwrap_or("none");
            return Err(connection.protocol(&format!("its result has no list of content; its type is `{kind}`")));
        }
        observation(&result, self.spec.max_observation_bytes)
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.called.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let none = Arguments::new();
        match self.call_as(call.arguments.unwrap_or(&none), call.key) {
            Ok(text) => Ok(text.into()),
            // the model may correct itself
            Err(McpFailure::Refused { code, message }) if code == ErrorCode::INVALID_PARAMS.0 => {
                Err(ToolError::Params(format!("the server refused the arguments: {message}. Its usage is {}", self.spec().usage)))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn is_trusted(&self) -> bool {
        matches!(&self.called.server.options.transport, McpTransport::Stdio(program) if program.sandbox.is_none())
    }
}
