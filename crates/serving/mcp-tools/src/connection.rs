//! One connection to a server, from the first message to the last.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use autoact_base::lines::one_line;
use autoact_http_tools::{Hidden, HttpClient, HttpFailure};
use autoact_trajectory::cut;
use rmcp::model::{ClientRequest, ErrorData, ProtocolVersion, ServerNotification, ServerResult, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RunningService, serve_client_with_lifecycle};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{DynamicTransportError, Transport};
use rmcp::{ClientLifecycleMode, Peer, RoleClient, ServiceError};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::failure::McpFailure;
use crate::handler::Handler;
use crate::http::Http;
use crate::lines::{Broken, Lines};
use crate::message::{BROKE_OFF, MALFORMED, TOO_LARGE};
use crate::options::{HttpOptions, McpServerOptions, McpTransport, StdioOptions};
use crate::process::{Pipes, Process};
use crate::stderr;

/// How long a server that is to end is waited for, twice.
const CLOSING: Duration = Duration::from_secs(1);
/// How long the end of a program that closed its output is waited for, to say how it ended.
const END: Duration = Duration::from_millis(500);
/// How long what a program wrote before its end may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// What a server says in an error.
const TOLD_BYTES: usize = 400;

/// A connection. Dropping it ends the server's program, or its session.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    program: Option<Program>,
    server: String,
    limit: usize,
    _listening: Option<AbortOnDropHandle<()>>,
}

/// What is known of a server that is a program.
struct Program {
    process: Process,
    broken: Arc<OnceLock<Broken>>,
    /// What it wrote last to its standard error; closed at the end of that.
    last: watch::Receiver<String>,
    _stderr: AbortOnDropHandle<()>,
}

impl Connection {
    /// Connects. Servers that know no handshake are asked in the way of the newest protocol.
    pub(crate) async fn open(options: &McpServerOptions, client: &HttpClient, handler: &Handler) -> Result<Connection, McpFailure> {
        let first = Connection::open_by(options, client, handler, ClientLifecycleMode::Initialize).await;
        match first {
            Err(McpFailure::Refused { .. } | McpFailure::Http(HttpFailure::Status { .. })) => {
                let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
                // the first refusal says more
                let mut connection = Connection::open_by(options, client, handler, newest).await.or(first)?;
                // this version tells changes to those alone who listen
                let listening = listen(connection.service.peer().clone(), handler.changes.clone());
                connection._listening = Some(AbortOnDropHandle::new(tokio::spawn(listening)));
                Ok(connection)
            }
            other => other,
        }
    }

    async fn open_by(
        options: &McpServerOptions,
        client: &HttpClient,
        handler: &Handler,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Connection, McpFailure> {
        let limit = options.limits.message_bytes;
        let (service, program) = match &options.transport {
            McpTransport::Stdio(stdio) => {
                let (lines, program) = start(options, stdio, client).await?;
                match serve(lines, handler, lifecycle).await {
                    Ok(service) => (service, Some(program)),
                    Err(error) => return Err(not_open(&options.name, limit, error, Some(&program)).await),
                }
            }
            McpTransport::Http(http) => match serve(transport(options, http, client)?, handler, lifecycle).await {
                Ok(service) => (service, None),
                Err(error) => return Err(not_open(&options.name, limit, error, None).await),
            },
        };
        Ok(Connection { service, program, server: options.name.clone(), limit, _listening: None })
    }

    /// Ends the session, or the program by the end of its input and then by `SIGTERM`.
    pub(crate) async fn close(mut self) {
        let _ = self.service.close_with_timeout(CLOSING).await;
        if let Some(program) = &self.program
            && program.process.end_within(CLOSING).await.is_none()
        {
            program.process.terminate();
            program.process.end_within(CLOSING).await;
        }
    }

    /// Whether nothing can be asked any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Name and version of the server, and the version of the protocol.
    pub(crate) fn about(&self) -> (String, String) {
        let told = |text: &str| cut(one_line(text), 100).0;
        self.service.peer().peer_info().map_or_else(Default::default, |info| {
            let server = info.server_info.as_ref();
            let name = server.map(|server| told(&format!("{} {}", server.name, server.version))).unwrap_or_default();
            (name, told(info.protocol_version.as_str()))
        })
    }

    /// Asks, and waits until `deadline`; then the server is told that nobody waits any more.
    pub(crate) async fn request(&self, request: ClientRequest, deadline: Instant) -> Result<ServerResult, McpFailure> {
        let left = deadline.saturating_duration_since(Instant::now());
        let sent = self.service.peer().send_cancellable_request(request, PeerRequestOptions::with_timeout(left)).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(_) => return Err(McpFailure::Ended { server: self.server.clone(), reason: self.reason().await }),
        };
        match handle.await_response().await {
            Ok(result) => Ok(result),
            Err(ServiceError::McpError(error)) => Err(self.refused(error)),
            Err(ServiceError::Timeout { timeout }) => Err(McpFailure::TimedOut { after: timeout }),
            Err(ServiceError::TransportSend(error)) => Err(match sending(&error) {
                Some(failure) => failure,
                // a line that was not written whole
                None if self.program.is_some() => self.lost().await,
                None => self.protocol(&error.error.to_string()),
            }),
            Err(ServiceError::TransportClosed | ServiceError::Cancelled { .. }) => Err(self.lost().await),
            Err(other) => Err(self.protocol(&other.to_string())),
        }
    }

    fn refused(&self, error: ErrorData) -> McpFailure {
        refused(&self.server, self.limit, &error)
    }

    pub(crate) fn protocol(&self, reason: &str) -> McpFailure {
        McpFailure::Protocol { server: self.server.clone(), reason: cut(one_line(reason), TOLD_BYTES).0 }
    }

    /// The connection broke while the server had the request.
    async fn lost(&self) -> McpFailure {
        match self.program.as_ref().and_then(|program| program.broken.get()) {
            Some(Broken::TooLong) => McpFailure::TooLarge { limit: self.limit },
            Some(Broken::Stray) => self.protocol("too many of its lines are no messages"),
            _ => McpFailure::MayHaveRun { server: self.server.clone(), reason: self.reason().await },
        }
    }

    async fn reason(&self) -> String {
        match &self.program {
            Some(program) => program.end().await,
            None => "the connection was closed".to_owned(),
        }
    }
}

impl Program {
    /// How it ended, with its last words.
    async fn end(&self) -> String {
        let end = self.process.end_within(END).await.unwrap_or_else(|| "it closed its output".to_owned());
        let mut last = self.last.clone();
        let _ = tokio::time::timeout(LAST_WORDS, async { while last.changed().await.is_ok() {} }).await;
        let line = last.borrow();
        if line.is_empty() { end } else { format!("{end}; it wrote: {}", *line) }
    }
}

async fn start(
    options: &McpServerOptions,
    stdio: &StdioOptions,
    client: &HttpClient,
) -> Result<(Lines<ChildStdout, ChildStdin>, Program), McpFailure> {
    let (mut hidden, mut secrets) = (Hidden::default(), BTreeMap::new());
    for (name, secret) in &stdio.secrets {
        let text = client.secret(secret)?;
        hidden.add(&text);
        secrets.insert(name.clone(), text);
    }
    let failed = |reason: String| McpFailure::Start { server: options.name.clone(), reason: cut(one_line(&reason), TOLD_BYTES).0 };
    let (process, pipes) = Process::start(&options.name, stdio.clone(), secrets).await.map_err(failed)?;
    let Pipes { stdin, stdout, stderr } = pipes;
    let unusable = |error: std::io::Error| failed(error.to_string());
    let stdin = ChildStdin::from_std(stdin).map_err(unusable)?;
    let stdout = ChildStdout::from_std(stdout).map_err(unusable)?;
    let stderr = ChildStderr::from_std(stderr).map_err(unusable)?;
    let (broken, (tell, last)) = (Arc::new(OnceLock::new()), watch::channel(String::new()));
    let logged = tokio::spawn(stderr::log(options.name.clone(), stderr, hidden.clone(), tell));
    let lines = Lines::new(stdout, stdin, options.limits.message_bytes, hidden, Arc::clone(&broken));
    Ok((lines, Program { process, broken, last, _stderr: AbortOnDropHandle::new(logged) }))
}

fn transport(
    options: &McpServerOptions,
    http: &HttpOptions,
    client: &HttpClient,
) -> Result<StreamableHttpClientTransport<Http>, McpFailure> {
    let endpoint = http.endpoint().map_err(|error| McpFailure::Internal(error.to_string()))?;
    let requests = Http { client: client.clone(), endpoint: Arc::new(endpoint), limit: options.limits.message_bytes };
    // a session that expired is opened again by the next call, which asks for the list as well
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str()).reinit_on_expired_session(false);
    Ok(StreamableHttpClientTransport::with_client(requests, config))
}

async fn serve<T: Transport<RoleClient> + 'static>(
    transport: T,
    handler: &Handler,
    lifecycle: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, Handler>, ClientInitializeError> {
    serve_client_with_lifecycle(handler.clone(), transport, lifecycle).await
}

/// Counts changes of the list of tools.
async fn listen(peer: Peer<RoleClient>, changes: watch::Sender<u64>) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    // a server that has no such news says so
    let Ok(mut subscription) = peer.listen(filter).await else { return };
    while let Ok(Some(ServerNotification::ToolListChangedNotification(_))) = subscription.next().await {
        changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Why there is no connection.
async fn not_open(server: &str, limit: usize, error: ClientInitializeError, program: Option<&Program>) -> McpFailure {
    let protocol = |reason: String| McpFailure::Protocol { server: server.to_owned(), reason: cut(one_line(&reason), TOLD_BYTES).0 };
    match error {
        ClientInitializeError::JsonRpcError(error) => return refused(server, limit, &error),
        ClientInitializeError::TransportError { ref error, .. } => {
            if let Some(failure) = sending(error) {
                return failure;
            }
        }
        ClientInitializeError::ConnectionClosed(_) => {}
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            return protocol("its first answer is none to the handshake".to_owned());
        }
        other => return protocol(other.to_string()),
    }
    match program {
        Some(program) if program.broken.get() == Some(&Broken::TooLong) => McpFailure::TooLarge { limit },
        Some(program) if program.broken.get() == Some(&Broken::Stray) => protocol("too many of its lines are no messages".to_owned()),
        Some(program) => McpFailure::Ended { server: server.to_owned(), reason: program.end().await },
        None => protocol("the connection was closed during the handshake".to_owned()),
    }
}

/// The failure of a request that could not be made, where it has a type.
fn sending(error: &DynamicTransportError) -> Option<McpFailure> {
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>()? {
        StreamableHttpError::Client(failure) => Some(failure.clone().into()),
        StreamableHttpError::SessionExpired => {
            Some(McpFailure::Ended { server: "http".to_owned(), reason: "its session has expired".to_owned() })
        }
        _ => None,
    }
}

fn refused(server: &str, limit: usize, error: &ErrorData) -> McpFailure {
    let server = server.to_owned();
    match error.message.as_ref() {
        MALFORMED => McpFailure::Protocol { server, reason: MALFORMED.to_owned() },
        TOO_LARGE => McpFailure::TooLarge { limit },
        BROKE_OFF => McpFailure::MayHaveRun { server, reason: BROKE_OFF.to_owned() },
        message => McpFailure::Refused { code: error.code.0, message: cut(one_line(message), TOLD_BYTES).0 },
    }
}
