//! A server: connected when it is needed, again after it ended, and checked when its tools may have
//! changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use autoact_http_tools::HttpClient;
use rmcp::model::{ClientRequest, ServerResult};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::failure::McpFailure;
use crate::handler::Handler;
use crate::import::{ImportedTool, McpImport, import};
use crate::list::List;
use crate::options::{McpOptionsError, McpServerOptions, McpTransport};
use crate::tool::McpTool;

/// How long a list is believed: a server without sessions can be replaced without a sign.
const LIST_AGE: Duration = Duration::from_secs(300);

/// A server of tools. Cheap to clone; its program or session ends with the last clone and the last
/// tool.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("name", &self.shared.options.name).finish_non_exhaustive()
    }
}

/// What all tools of a server share.
pub(crate) struct Shared {
    pub(crate) options: McpServerOptions,
    client: HttpClient,
    handler: Handler,
    pub(crate) places: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    backoff: Backoff,
    listed: Option<Listed>,
}

/// What the server listed last.
#[derive(Clone)]
struct Listed {
    digests: Arc<BTreeMap<String, String>>,
    /// The number of changes that it had told by then.
    changes: u64,
    at: Instant,
}

impl McpServer {
    /// A server that is not connected yet. Secrets, certificates and the runtime are the client's;
    /// the runtime must have threads of its own.
    ///
    /// # Errors
    /// The options make no sense.
    pub fn new(options: McpServerOptions, client: &HttpClient) -> Result<McpServer, McpOptionsError> {
        options.check()?;
        let places = Semaphore::new(options.limits.concurrency.min(Semaphore::MAX_PERMITS));
        let handler = Handler { changes: watch::Sender::new(0) };
        Ok(McpServer { shared: Arc::new(Shared { options, client: client.clone(), handler, places, state: Mutex::default() }) })
    }

    /// What it was made of.
    pub fn options(&self) -> &McpServerOptions {
        &self.shared.options
    }

    /// Connects, unless it is connected, and lists the tools.
    ///
    /// # Errors
    /// The server cannot be reached, or its list cannot be read. What is wrong with one tool is no
    /// error: it is among [`McpImport::skipped`].
    pub async fn import(&self) -> Result<McpImport, McpFailure> {
        let shared = Arc::clone(&self.shared);
        let task = self.shared.handle().spawn(async move {
            let deadline = Instant::now() + shared.options.limits.connect;
            let connection = shared.connection(deadline).await?;
            let list = shared.list(&connection, deadline).await?;
            Ok(import(&list, &shared.options, connection.about()))
        });
        task.await.unwrap_or_else(|error| Err(McpFailure::Internal(error.to_string())))
    }

    /// The tool of an imported definition. It is out of service while the server's definition is
    /// another one.
    pub fn tool(&self, imported: &ImportedTool) -> McpTool {
        McpTool::new(Arc::clone(&self.shared), imported)
    }

    /// Ends the program or the session in order, as far as no call is under way: a program sees the
    /// end of its input, then `SIGTERM`, then it is killed. A later call connects again. Dropping the
    /// last clone and the last tool kills at once.
    pub async fn close(&self) {
        let connection = self.shared.state.lock().await.connection.take();
        if let Some(connection) = connection.and_then(Arc::into_inner) {
            let closing = self.shared.handle().spawn(connection.close());
            let _ = closing.await;
        }
    }

    /// How often the server said that its tools changed, or a call found that. A change is a reason
    /// to import again; what was imported is checked by itself before the next call.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.handler.changes.subscribe()
    }
}

impl Shared {
    pub(crate) fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// The connection, which is opened if there is none.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, McpFailure> {
        let late = |_| McpFailure::TimedOut { after: self.options.limits.connect };
        let mut state = timeout_at(deadline, self.state.lock()).await.map_err(late)?;
        if let Some(connection) = &state.connection {
            if !connection.is_closed() {
                return Ok(Arc::clone(connection));
            }
            state.lose();
        }
        let wait = state.backoff.wait();
        if Instant::now() + wait >= deadline {
            return Err(McpFailure::NotConnected { server: self.options.name.clone(), again: wait });
        }
        tokio::time::sleep(wait).await;
        let deadline = deadline.min(Instant::now() + self.options.limits.connect);
        let opened = timeout_at(deadline, Connection::open(&self.options, &self.client, &self.handler)).await;
        match opened.map_err(late).and_then(|opened| opened) {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(failure) => {
                state.backoff.failed();
                Err(failure)
            }
        }
    }

    /// Asks for the list, and remembers its digests.
    async fn list(&self, connection: &Arc<Connection>, deadline: Instant) -> Result<List, McpFailure> {
        let changes = *self.handler.changes.borrow();
        let list = match List::ask(connection, deadline).await {
            Ok(list) => list,
            Err(failure) => {
                self.failed(connection, &failure).await;
                return Err(failure);
            }
        };
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.listed = Some(Listed { digests: Arc::new(list.digests()), changes, at: Instant::now() });
        }
        Ok(list)
    }

    /// Refuses a tool whose definition is not the one that was imported. The list is asked for after
    /// each connection, each change that the server tells, each failure of HTTP, and some time.
    pub(crate) async fn check(
        &self,
        connection: &Arc<Connection>,
        remote: &str,
        digest: &str,
        deadline: Instant,
    ) -> Result<(), McpFailure> {
        let changes = *self.handler.changes.borrow();
        let listed = self.state.lock().await.listed.clone();
        let digests = match listed {
            Some(Listed { digests, changes: known, at }) if known == changes && at.elapsed() < LIST_AGE => digests,
            _ => Arc::new(self.list(connection, deadline).await?.digests()),
        };
        match digests.get(remote).is_some_and(|found| found == digest) {
            true => Ok(()),
            false => {
                // who imported it can see that, as if the server had told it
                self.handler.changes.send_modify(|count| *count = count.wrapping_add(1));
                Err(McpFailure::Changed { server: self.options.name.clone(), tool: remote.to_owned() })
            }
        }
    }

    /// Asks for a call's result.
    pub(crate) async fn ask(
        &self,
        connection: &Arc<Connection>,
        request: ClientRequest,
        deadline: Instant,
    ) -> Result<ServerResult, McpFailure> {
        let answered = connection.request(request, deadline).await;
        match &answered {
            Ok(_) | Err(McpFailure::Refused { .. }) => self.state.lock().await.backoff.worked(),
            Err(failure) => self.failed(connection, failure).await,
        }
        answered
    }

    /// Gives the connection up where it is of no use any more.
    async fn failed(&self, connection: &Arc<Connection>, failure: &McpFailure) {
        let mut state = self.state.lock().await;
        if !state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            return;
        }
        match failure {
            McpFailure::Ended { .. } | McpFailure::MayHaveRun { .. } | McpFailure::TooLarge { .. } => state.lose(),
            // a server without sessions may be another one when it is back
            McpFailure::Http(_) => state.listed = None,
            _ => {}
        }
    }

    /// Gives up a program that does not even take a cancellation. A request by HTTP has a connection
    /// of its own, so a slow one says nothing about the others.
    pub(crate) async fn give_up(&self) {
        if !matches!(self.options.transport, McpTransport::Stdio(_)) {
            return;
        }
        // whoever connects has seen that it is gone
        if let Ok(mut state) = tokio::time::timeout(Duration::from_millis(100), self.state.lock()).await {
            state.lose();
        }
    }
}

impl State {
    fn lose(&mut self) {
        self.connection = None;
        self.listed = None;
        self.backoff.failed();
    }
}
