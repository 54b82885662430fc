//! How long a group's start is waited for: as long as a service reads weights, and then some.

use std::time::Duration;

use autoact_base::progress::Look;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// How often the services are asked how far they are.
const ASK_PERIOD: Duration = Duration::from_secs(1);
/// How long an answer may take: the services are on this machine.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// Work that takes less is not spoken of.
const SILENT: Duration = Duration::from_secs(2);
/// How often it is said how far they are.
const SAY_PERIOD: Duration = Duration::from_secs(5);
/// `/readyz` is a line.
const MOST_BYTES: u64 = 16 * 1024;

/// The limit of a start, and what was seen of the work that extends it.
pub(crate) struct Patience<'a> {
    limit: Duration,
    say: &'a dyn Fn(&str),
    /// Names and metrics ports of those that may read weights.
    readers: Vec<(String, u16)>,
    begun: Instant,
    /// When the start began, or last made progress.
    moved: Instant,
    asked: Instant,
    /// Bytes that all of them together had read.
    done: u64,
    said: Option<Instant>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(limit: Duration, readers: Vec<(String, u16)>, say: &'a dyn Fn(&str)) -> Patience<'a> {
        let now = Instant::now();
        Patience { limit, say, readers, begun: now, moved: now, asked: now, done: 0, said: None }
    }

    /// Whether the limit has passed since the start made progress.
    pub(crate) fn is_over(&self) -> bool {
        self.moved.elapsed() >= self.limit
    }

    /// Asks those that start how far they are, at most once a second, and says so every few
    /// seconds.
    pub(crate) async fn look(&mut self) {
        if self.asked.elapsed() < ASK_PERIOD {
            return;
        }
        let asked = self.readers.iter().map(|(name, port)| async move { Some((name.clone(), ask(*port).await?)) });
        let reading: Vec<(String, Look)> = futures::future::join_all(asked).await.into_iter().flatten().collect();
        self.asked = Instant::now();
        self.note(&reading);
    }

    /// Says every few seconds that `name` is waited for, with the last that it wrote to its log.
    pub(crate) fn waits(&mut self, name: &str, wrote: impl FnOnce() -> String) {
        let silent = self.said.unwrap_or(self.begun).elapsed();
        if silent >= SAY_PERIOD {
            (self.say)(&format!("{name} is not ready yet: {}", wrote()));
            self.said = Some(Instant::now());
        }
    }

    fn note(&mut self, reading: &[(impl AsRef<str>, Look)]) {
        let done = reading.iter().map(|(_, look)| look.done).sum();
        if done != self.done {
            (self.done, self.moved) = (done, Instant::now());
        }
        // the slowest decides when the group is up
        let Some((_, slowest)) = reading.iter().min_by_key(|(_, look)| look.done) else { return };
        if slowest.elapsed >= SILENT && self.said.is_none_or(|said| said.elapsed() >= SAY_PERIOD) {
            let names: Vec<&str> = reading.iter().map(|(name, _)| name.as_ref()).collect();
            (self.say)(&format!("reading weights: {slowest} ({})", names.join(", ")));
            self.said = Some(Instant::now());
        }
    }
}

/// How far the service with this metrics port is, if it says so.
async fn ask(port: u16) -> Option<Look> {
    let answer = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.take(MOST_BYTES).read_to_string(&mut text).await?;
        Ok::<String, std::io::Error>(text)
    };
    parse(&timeout(ANSWER_LIMIT, answer).await.ok()?.ok()?)
}

/// `… model (31 of 152 bytes in 2.5 s) …`
fn parse(answer: &str) -> Option<Look> {
    let (before, after) = answer.split_once(" bytes in ")?;
    let (before, total) = before.rsplit_once(" of ")?;
    let (_, done) = before.rsplit_once('(')?;
    let (seconds, _) = after.split_once(" s)")?;
    let elapsed = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    Some(Look { done: done.parse().ok()?, total: total.parse().ok()?, elapsed })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn look(done: u64, seconds: u64) -> Look {
        Look { done, total: 15_200_000_000, elapsed: Duration::from_secs(seconds) }
    }

    #[test]
    fn the_answer_of_readyz_is_understood() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 60\r\n\r\nnot ready, waiting for: bus, model (3100000000 of 15200000000 bytes in 2.0 s)\n";
        assert_eq!(parse(answer), Some(look(3_100_000_000, 2)));
        for other in ["", "HTTP/1.1 200 OK\r\n\r\nready\n", "waiting for: model\n", "(a of b bytes in c s)", "(1 of 2 bytes in -1 s)"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_takes_long_says_what_it_waits_for() {
        let said = RefCell::new(Vec::new());
        let say = |line: &str| said.borrow_mut().push(line.to_owned());
        let mut patience = Patience::new(Duration::from_secs(60), Vec::new(), &say);
        for _ in 0..12 {
            patience.waits("plan-agent", || "waiting for the model's server".to_owned());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(*said.borrow(), ["plan-agent is not ready yet: waiting for the model's server"; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_limit_and_is_said() {
        let said = RefCell::new(Vec::new());
        let say = |line: &str| said.borrow_mut().push(line.to_owned());
        let mut patience = Patience::new(Duration::from_secs(60), Vec::new(), &say);
        for at in 1..=200 {
            tokio::time::advance(Duration::from_secs(1)).await;
            patience.note(&[("plan-agent", look(at * 1000, at)), ("tool-agent", look(at * 76_000_000, at))]);
            assert!(!patience.is_over());
        }
        assert_eq!(said.borrow().len(), 40);
        assert_eq!(said.borrow()[0], "reading weights: 0.0 of 15.2 GB, 0.0 MB/s (plan-agent, tool-agent)");
        // they stand still
        let stuck = [("plan-agent", look(200_000, 201))];
        patience.note(&stuck);
        for at in 0..60 {
            assert!(!patience.is_over(), "{at}");
            tokio::time::advance(Duration::from_secs(1)).await;
            patience.note(&stuck);
        }
        assert!(patience.is_over());
    }
}
