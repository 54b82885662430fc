//! Waiting for the network from a tool's own thread.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use autoact_http_tools::HttpFailure;
use autoact_tools::{ToolCall, ToolError};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How much longer than the call's time a thread waits for the runtime to say that it is up.
const GRACE: Duration = Duration::from_secs(1);

/// Runs `asking` on the runtime and waits for it, until the deadline of the call.
pub(crate) fn wait<T, F>(handle: &Handle, limit: Duration, asking: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ToolError>> + Send + 'static,
{
    let (done, result) = sync_channel(1);
    let deadline = Instant::now() + limit;
    let task = handle.spawn(async move {
        let late = |_| Err(HttpFailure::TimedOut { after: limit }.into());
        // nobody may wait any more
        let _ = done.send(tokio::time::timeout_at(deadline, asking).await.unwrap_or_else(late));
    });
    // a caller that gives up ends the request
    let _task = AbortOnDropHandle::new(task);
    match result.recv_timeout(limit + GRACE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(HttpFailure::TimedOut { after: limit }.into()),
        Err(RecvTimeoutError::Disconnected) => Err(ToolError::Internal("the request was given up".to_owned())),
    }
}

/// An argument that is a text; empty where the call leaves it out.
pub(crate) fn text<'a>(call: &ToolCall<'a>, name: &str) -> &'a str {
    let line = call.arguments.is_none().then_some(call.params);
    let argument = call.arguments.and_then(|arguments| arguments.get(name)?.as_str());
    argument.or(line).unwrap_or_default().trim()
}
