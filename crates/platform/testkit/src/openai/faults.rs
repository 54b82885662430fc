//! What goes wrong with servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::response::Response;
use axum::serve::Listener;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use tokio::net::{TcpListener, TcpStream};

/// One thing that goes wrong, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The next connection is closed before it says anything.
    Refuse,
    /// A status instead of a completion.
    Status {
        /// The status.
        status: u16,
        /// `Retry-After`.
        retry_after: Option<String>,
        /// The body.
        body: String,
    },
    /// The stream is cut off after so many pieces of text.
    CutAfter(usize),
    /// The stream ends properly after so many pieces, but without its end.
    EndAfter(usize),
    /// An error in the stream after so many pieces.
    ErrorAfter(usize),
    /// Something that is no JSON in the stream after so many pieces.
    GarbageAfter(usize),
    /// Nothing comes any more after so many pieces.
    SilenceAfter(usize),
}

impl Fault {
    /// A status with a message in JSON.
    pub fn status(status: u16, message: &str) -> Fault {
        let body = serde_json::json!({ "error": { "message": message, "code": status } }).to_string();
        Fault::Status { status, retry_after: None, body }
    }

    /// Too many requests.
    pub fn busy(retry_after: Option<&str>) -> Fault {
        Fault::Status { status: 429, retry_after: retry_after.map(str::to_owned), body: "{}".to_owned() }
    }

    /// The pieces of text that come before it.
    pub(super) fn after(&self) -> Option<usize> {
        match self {
            Fault::CutAfter(pieces)
            | Fault::EndAfter(pieces)
            | Fault::ErrorAfter(pieces)
            | Fault::GarbageAfter(pieces)
            | Fault::SilenceAfter(pieces) => Some(*pieces),
            Fault::Refuse | Fault::Status { .. } => None,
        }
    }

    pub(super) fn response(&self) -> Option<Response> {
        let Fault::Status { status, retry_after, body } = self else { return None };
        let mut response = Response::new(body.clone().into());
        *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(value) = retry_after.as_ref().and_then(|text| HeaderValue::from_str(text).ok()) {
            response.headers_mut().insert(RETRY_AFTER, value);
        }
        Some(response)
    }
}

/// Drops as many new connections as it is told to.
pub(super) struct Refusing {
    pub(super) listener: TcpListener,
    pub(super) refusals: Arc<AtomicUsize>,
}

impl Listener for Refusing {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let accepted = Listener::accept(&mut self.listener).await;
            let refuse = self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if refuse.is_err() {
                return accepted;
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
