//! Messages as lines on the standard streams of a program.

use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};

use autoact_http_tools::Hidden;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, Semaphore};

use crate::message::{Read, read};

/// Lines that are no messages: programs print a banner, not a book.
const STRAY_LINES: usize = 1000;
/// Answers to the server's own requests that wait for it to read them.
const UNREAD_ANSWERS: usize = 32;

/// Why a server's output is not read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A line is too long.
    TooLong,
    /// Too many lines are no messages.
    Stray,
    /// It ended.
    Closed,
}

/// Lines from and to a program.
pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line so far: `receive` may be dropped at any time and called again.
    line: Vec<u8>,
    limit: usize,
    stray: usize,
    waiting: Option<ServerJsonRpcMessage>,
    unread: Arc<Semaphore>,
    write: Arc<Mutex<Option<W>>>,
    hidden: Hidden,
    broken: Arc<OnceLock<Broken>>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    /// The reason why reading ended will be in `broken`.
    pub(crate) fn new(read: R, write: W, limit: usize, hidden: Hidden, broken: Arc<OnceLock<Broken>>) -> Lines<R, W> {
        Lines {
            read: BufReader::new(read),
            line: Vec::new(),
            limit,
            stray: 0,
            waiting: None,
            unread: Arc::new(Semaphore::new(UNREAD_ANSWERS)),
            write: Arc::new(Mutex::new(Some(write))),
            hidden,
            broken,
        }
    }

    /// Fills the line to its end. What was read until then stays when this is dropped.
    async fn fill(&mut self) -> Result<(), Broken> {
        loop {
            let available = self.read.fill_buf().await.map_err(|_| Broken::Closed)?;
            if available.is_empty() {
                return Err(Broken::Closed);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > self.limit + 1 {
                return Err(Broken::TooLong);
            }
            self.line.extend_from_slice(&available[..taken]);
            self.read.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    async fn next(&mut self) -> Result<ServerJsonRpcMessage, Broken> {
        loop {
            if matches!(self.waiting, Some(JsonRpcMessage::Request(_))) {
                // a server that asks and does not read the answers is not read either
                self.unread.acquire().await.map_err(|_| Broken::Closed)?.forget();
            }
            if let Some(message) = self.waiting.take() {
                return Ok(message);
            }
            self.fill().await?;
            let line = std::mem::take(&mut self.line);
            match read(line.trim_ascii(), &self.hidden) {
                Read::Message(message) => self.waiting = Some(*message),
                Read::Unknown | Read::NoJson => {
                    self.stray += 1;
                    if self.stray > STRAY_LINES {
                        return Err(Broken::Stray);
                    }
                }
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (write, unread) = (Arc::clone(&self.write), Arc::clone(&self.unread));
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let Some(stream) = write.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let written = async {
                stream.write_all(&line).await?;
                stream.flush().await
            };
            let written = written.await;
            if matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
                unread.add_permits(1);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(broken) => {
                let _ = self.broken.set(broken);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // the end of its input asks a server to end
        self.write.lock().await.take();
        Ok(())
    }
}
