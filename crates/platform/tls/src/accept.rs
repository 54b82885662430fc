//! Accepting connections. Each takes a place first. A handshake never keeps others waiting: each has
//! its own task, a limit of time, and a place among handshakes; when all those are taken, the oldest
//! goes. In plain text the handshake is the first byte: silence costs a socket and nothing more.

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

use crate::io::Io;
use crate::seated::Seated;
use crate::seats::{Seat, Seats};
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

/// The connections of a listener, for a gRPC server: what comes has made its handshake, and has a
/// place. A task of its own accepts until this is dropped.
#[derive(Debug)]
pub struct Doors {
    ready: mpsc::Receiver<Seated>,
}

impl Doors {
    /// Plain text on `listener`.
    pub fn plain(listener: TcpListener, bounds: Handshakes, seats: Seats) -> Doors {
        Doors::open(listener, None, bounds, seats)
    }

    /// TLS on `listener`.
    pub fn tls(listener: TcpListener, tls: Tls, bounds: Handshakes, seats: Seats) -> Doors {
        Doors::open(listener, Some(tls), bounds, seats)
    }

    fn open(listener: TcpListener, tls: Option<Tls>, bounds: Handshakes, seats: Seats) -> Doors {
        let (accepted, ready) = mpsc::channel(WAITING);
        tokio::spawn(accept(Listener::new(listener, seats), tls, bounds, accepted));
        Doors { ready }
    }
}

impl Stream for Doors {
    type Item = io::Result<Seated>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Seated>>> {
        self.get_mut().ready.poll_recv(cx).map(|next| next.map(Ok))
    }
}

/// A listener whose connections take places.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    seats: Seats,
    told: Tell,
}

impl Listener {
    /// The connections of `listener`, as many as `seats` has places.
    pub fn new(listener: TcpListener, seats: Seats) -> Listener {
        Listener { listener, seats, told: Tell::default() }
    }

    /// The next connection that gets a place. Those that get none are closed at once. An error, such
    /// as no descriptor left, is followed by a pause. May be dropped while it waits.
    pub async fn accept(&mut self) -> (TcpStream, Seat) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => match self.seats.take(from.ip()) {
                    Ok(seat) => return (stream, seat),
                    Err(refused) => {
                        if let Some(count) = self.told.tell() {
                            tracing::warn!(?refused, %from, count, "a connection was refused: there is no place left");
                        }
                    }
                },
                Err(error) => {
                    metrics::counter!("autoact_accept_errors_total").increment(1);
                    if let Some(count) = self.told.tell() {
                        tracing::warn!(%error, count, "cannot accept a connection");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn accept(mut listener: Listener, tls: Option<Tls>, bounds: Handshakes, ready: mpsc::Sender<Seated>) {
    let first_call = listener.seats.bounds().first_call;
    let encrypted = tls.is_some();
    let mut handshakes: JoinSet<io::Result<Seated>> = JoinSet::new();
    let mut places: VecDeque<AbortHandle> = VecDeque::new();
    let mut failures = Tell::default();
    loop {
        tokio::select! {
            // what has ended goes before anything new comes: a task keeps its memory until then
            biased;
            () = ready.closed() => return,
            Some(done) = handshakes.join_next() => match done {
                Ok(Ok(io)) => {
                    count(encrypted, "ok");
                    if ready.send(io).await.is_err() {
                        return;
                    }
                }
                Ok(Err(error)) => {
                    count(encrypted, if error.kind() == io::ErrorKind::TimedOut { "timed_out" } else { "failed" });
                    // in plain text it only said nothing
                    if encrypted && let Some(count) = failures.tell() {
                        tracing::warn!(%error, count, "a connection was refused: its TLS handshake failed");
                    }
                }
                // crowded out
                Err(_) => {}
            },
            (stream, seat) = listener.accept() => {
                places.retain(|place| !place.is_finished());
                if places.len() >= bounds.most && let Some(oldest) = places.pop_front() {
                    oldest.abort();
                    count(encrypted, "crowded_out");
                }
                places.push_back(handshakes.spawn(handshake(stream, seat, tls.clone(), bounds.limit, first_call)));
            },
        }
    }
}

async fn handshake(stream: TcpStream, seat: Seat, tls: Option<Tls>, limit: Duration, first_call: Duration) -> io::Result<Seated> {
    stream.set_nodelay(true)?;
    let (begun, close) = (Instant::now(), seat.close());
    let shaken = async {
        let Some(tls) = tls else {
            // looked at, and left there: that a socket is readable may be said too soon
            return match stream.peek(&mut [0]).await? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(Io::Plain(stream)),
            };
        };
        let Some(server) = tls.server() else { return Err(io::Error::other("there is no certificate to show")) };
        // on its own: in plain text a task need not have room for it
        Ok(Io::Tls(Box::new(Box::pin(TlsAcceptor::from(server).accept(stream)).await?.into())))
    };
    let io = tokio::select! {
        () = close.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "its place was needed")),
        done = tokio::time::timeout(limit, shaken) => match done {
            Ok(done) => done,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")),
        },
    }?;
    Ok(Seated::new(io, seat, begun + first_call))
}

fn count(encrypted: bool, outcome: &'static str) {
    match (encrypted, outcome) {
        (true, _) => metrics::counter!("autoact_tls_handshakes_total", "outcome" => outcome).increment(1),
        (false, "ok") => {}
        (false, _) => metrics::counter!("autoact_connections_refused_total", "port" => "grpc", "reason" => "silent").increment(1),
    }
}

/// What the log was not told since it last was. Whoever reaches the port can make connections fail,
/// so the log has one line for many.
#[derive(Debug, Default)]
struct Tell {
    told: Option<Instant>,
    untold: u64,
}

impl Tell {
    /// One more; how many there were, if it is time to tell.
    fn tell(&mut self) -> Option<u64> {
        self.untold += 1;
        if self.told.is_some_and(|told| told.elapsed() < TELL) {
            return None;
        }
        let count = self.untold;
        *self = Tell { told: Some(Instant::now()), untold: 0 };
        Some(count)
    }
}
