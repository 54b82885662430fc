//! Accepting connections. A handshake never keeps others waiting: each has its own task, a limit of
//! time, and a place; when all places are taken, the oldest handshake goes.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_stream::Stream;
use tonic::transport::server::TcpIncoming;

use crate::io::Io;
use crate::tls::Tls;

/// How long a handshake may take: two round trips and two signatures take milliseconds.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Handshakes in progress at a time. An honest one is over long before so many others come.
const MOST_HANDSHAKES: usize = 1024;
/// Connections that wait for the server to take them.
const WAITING: usize = 64;
/// The pause after an error of accepting: there are no descriptors left, and that may pass.
const PAUSE: Duration = Duration::from_millis(100);
/// How often the log tells of handshakes that failed.
const TELL: Duration = Duration::from_secs(10);

/// The bounds of handshakes.
#[derive(Debug, Clone, Copy)]
pub struct Handshakes {
    /// How long one may take.
    pub limit: Duration,
    /// So many may be in progress; when another one comes, the oldest goes.
    pub most: usize,
}

impl Default for Handshakes {
    fn default() -> Handshakes {
        Handshakes { limit: HANDSHAKE_LIMIT, most: MOST_HANDSHAKES }
    }
}

/// The connections of a listener, for a gRPC server.
#[derive(Debug)]
pub enum Doors {
    /// Plain text.
    Plain(TcpIncoming),
    /// TLS: what comes has made its handshake.
    Tls(mpsc::Receiver<Io>),
}

impl Doors {
    /// Plain text on `listener`.
    pub fn plain(listener: TcpListener) -> Doors {
        Doors::Plain(TcpIncoming::from(listener).with_nodelay(Some(true)))
    }

    /// TLS on `listener`. A task of its own accepts until this is dropped.
    pub fn tls(listener: TcpListener, tls: Tls, bounds: Handshakes) -> Doors {
        let (ready, doors) = mpsc::channel(WAITING);
        tokio::spawn(accept(listener, tls, bounds, ready));
        Doors::Tls(doors)
    }
}

impl Stream for Doors {
    type Item = io::Result<Io>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Io>>> {
        match self.get_mut() {
            Doors::Plain(incoming) => Pin::new(incoming).poll_next(cx).map(|next| next.map(|stream| stream.map(Io::Plain))),
            Doors::Tls(doors) => doors.poll_recv(cx).map(|next| next.map(Ok)),
        }
    }
}

async fn accept(listener: TcpListener, tls: Tls, bounds: Handshakes, ready: mpsc::Sender<Io>) {
    let mut handshakes = JoinSet::new();
    let mut places: VecDeque<AbortHandle> = VecDeque::new();
    let mut failures = Failures::default();
    loop {
        tokio::select! {
            () = ready.closed() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    places.retain(|place| !place.is_finished());
                    if places.len() >= bounds.most && let Some(oldest) = places.pop_front() {
                        oldest.abort();
                        count("crowded_out");
                    }
                    places.push_back(handshakes.spawn(handshake(stream, tls.clone(), bounds.limit)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(done) = handshakes.join_next() => match done {
                Ok(Ok(io)) => {
                    count("ok");
                    if ready.send(io).await.is_err() {
                        return;
                    }
                }
                Ok(Err(error)) => failures.tell(&error),
                // crowded out
                Err(_) => {}
            },
        }
    }
}

async fn handshake(stream: TcpStream, tls: Tls, limit: Duration) -> io::Result<Io> {
    stream.set_nodelay(true)?;
    let Some(server) = tls.server() else { return Err(io::Error::other("there is no certificate to show")) };
    let handshake = TlsAcceptor::from(server).accept(stream);
    match tokio::time::timeout(limit, handshake).await {
        Ok(done) => Ok(Io::Tls(Box::new(done?.into()))),
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")),
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("autoact_tls_handshakes_total", "outcome" => outcome).increment(1);
}

/// Handshakes that failed since the log last told of one. Whoever reaches the port can make them
/// fail, so the log has one line for many.
#[derive(Debug, Default)]
struct Failures {
    told: Option<Instant>,
    untold: u64,
}

impl Failures {
    fn tell(&mut self, error: &io::Error) {
        count(if error.kind() == io::ErrorKind::TimedOut { "timed_out" } else { "failed" });
        self.untold += 1;
        if self.told.is_none_or(|told| told.elapsed() >= TELL) {
            tracing::warn!(%error, count = self.untold, "a connection was refused: its TLS handshake failed");
            *self = Failures { told: Some(Instant::now()), untold: 0 };
        }
    }
}
