//! A network that can be cut, held up and slowed down: a TCP proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes that are passed on at once.
const CHUNK: usize = 16 * 1024;

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// Connections break, and no new one comes about.
    Cut,
    /// Connections stay, and nothing passes.
    Stalled,
    /// Every chunk comes so much later.
    Late(Duration),
}

/// Passes connections on to one of its targets: the first that accepts, each beginning with the
/// next one, as a Service of Kubernetes does. Dropping it breaks them all.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    state: watch::Sender<State>,
    /// Aborted when dropped.
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// A proxy on a free port. The targets need not be there yet.
    pub async fn start(targets: impl IntoIterator<Item = SocketAddr>) -> std::io::Result<Proxy> {
        let targets: Vec<SocketAddr> = targets.into_iter().collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (state, seen) = watch::channel(State::Whole);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, targets, seen));
        Ok(Proxy { addr, state, _accepting: accepting })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Breaks all connections, and every new one at once.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Holds back every byte in both directions, as a network does that loses all packets.
    pub fn stall(&self) {
        self.state.send_replace(State::Stalled);
    }

    /// Passes on every chunk of bytes so much later.
    pub fn delay(&self, by: Duration) {
        self.state.send_replace(State::Late(by));
    }

    /// As it was at first. What was held back arrives now.
    pub fn heal(&self) {
        self.state.send_replace(State::Whole);
    }
}

async fn accept(listener: TcpListener, targets: Vec<SocketAddr>, state: watch::Receiver<State>) {
    let mut connections = JoinSet::new();
    let mut first = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // a client that is gone again; a process without free sockets fails elsewhere too
                let Ok((client, _)) = accepted else { continue };
                if *state.borrow() == State::Cut {
                    continue;
                }
                first += 1;
                connections.spawn(pass(client, turned(&targets, first), state.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The targets, another one first.
fn turned(targets: &[SocketAddr], first: usize) -> Vec<SocketAddr> {
    let mut targets = targets.to_vec();
    if !targets.is_empty() {
        let by = first % targets.len();
        targets.rotate_left(by);
    }
    targets
}

/// Passes on one connection until either side ends it, or it is cut.
async fn pass(client: TcpStream, targets: Vec<SocketAddr>, mut state: watch::Receiver<State>) {
    // nobody is reached through a stalled network
    let stalled = state.wait_for(|state| *state != State::Stalled);
    if stalled.await.is_err() {
        return;
    }
    for target in targets {
        let Ok(server) = TcpStream::connect(target).await else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let (there, back) = (copy(from_client, to_server, state.clone()), copy(from_server, to_client, state.clone()));
        tokio::select! {
            _ = state.wait_for(|state| *state == State::Cut) => {}
            _ = async { tokio::join!(there, back) } => {}
        }
        return;
    }
}

/// Passes on one direction to its end. An error ends it like any other end.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = from.read(&mut chunk).await {
        let now = match state.wait_for(|state| *state != State::Stalled).await {
            Ok(state) => *state,
            Err(_) => return,
        };
        if let State::Late(by) = now {
            tokio::time::sleep(by).await;
        }
        if to.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::time::{Instant, timeout};

    use super::*;

    /// Longer than anything on this machine takes.
    const LIMIT: Duration = Duration::from_secs(20);
    /// Long enough to see that nothing comes.
    const SILENCE: Duration = Duration::from_millis(100);

    /// Says its name to every connection, and then back what it hears.
    async fn echo(name: u8) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    stream.write_all(&[name]).await?;
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        addr
    }

    async fn read(stream: &mut TcpStream) -> Option<u8> {
        timeout(LIMIT, stream.read_u8()).await.unwrap().ok()
    }

    #[tokio::test]
    async fn what_is_cut_breaks_and_heals_for_new_connections() {
        let proxy = Proxy::start([echo(b'a').await]).await.unwrap();
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'a'));
        stream.write_all(b"x").await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'x'));
        proxy.cut();
        assert_eq!(read(&mut stream).await, None);
        let mut refused = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(read(&mut refused).await, None);
        proxy.heal();
        let mut again = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(read(&mut again).await, Some(b'a'));
    }

    #[tokio::test]
    async fn what_is_stalled_arrives_once_it_is_whole_and_what_is_late_late() {
        let proxy = Proxy::start([echo(b'a').await]).await.unwrap();
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'a'));
        proxy.stall();
        stream.write_all(b"x").await.unwrap();
        assert!(timeout(SILENCE, stream.read_u8()).await.is_err());
        proxy.heal();
        assert_eq!(read(&mut stream).await, Some(b'x'));
        proxy.delay(SILENCE);
        let sent = Instant::now();
        stream.write_all(b"y").await.unwrap();
        assert_eq!(read(&mut stream).await, Some(b'y'));
        assert!(sent.elapsed() >= 2 * SILENCE);
    }

    #[tokio::test]
    async fn connections_take_turns_and_pass_over_a_target_that_is_away() {
        let away = crate::ports::free_port().unwrap();
        let proxy = Proxy::start([echo(b'a').await, echo(b'b').await, SocketAddr::from(([127, 0, 0, 1], away))]).await.unwrap();
        let mut seen = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
            seen.extend(read(&mut stream).await);
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.contains(&b'a') && seen.contains(&b'b'), "{seen:?}");
    }
}
