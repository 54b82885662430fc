//! A process without a descriptor left: accepting pauses instead of spinning, and goes on as soon
//! as there is one. A file of its own: the limit is the whole process's.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::fs::File;
use std::time::Duration;

use autoact_tls::{Listener, SeatBounds, Seats};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};

/// Longer than the pauses of accepting, by far.
const WHILE: Duration = Duration::from_secs(2);

/// Ticks (hundredths of a second) of processor time that this process has used.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn without_descriptors_accepting_pauses_and_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    let bounds = SeatBounds { most: 64, per_address: None, first_call: Duration::from_secs(60) };
    let mut listener = Listener::new(listener, Seats::new("test", bounds));
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(TcpStream::connect(to).await.unwrap());
    }
    let before = ticks();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let lowered = Rlimit { current: Some(128), maximum };
    setrlimit(Resource::Nofile, lowered).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    assert!(tokio::time::timeout(WHILE, listener.accept()).await.is_err(), "there was a descriptor");
    drop(files);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let used = ticks() - before;
    assert!(used < 50, "{used} ticks of processor time: it spins");
    for _ in 0..4 {
        tokio::time::timeout(WHILE * 10, listener.accept()).await.expect("it does not go on");
    }
}
