//! A connection with its place: it ends when it has to go, and when no call comes on it.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::server::Connected;

use crate::io::Io;
use crate::peer::Connection;
use crate::seats::Seat;

/// An accepted connection.
#[derive(Debug)]
pub struct Seated {
    io: Io,
    seat: Seat,
    /// Until this passes, there may be no call.
    first_call: Option<Pin<Box<Sleep>>>,
    close: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Seated {
    pub(crate) fn new(io: Io, seat: Seat, first_call: Instant) -> Seated {
        let close = Box::pin(seat.close().cancelled_owned());
        Seated { io, seat, first_call: Some(Box::pin(tokio::time::sleep_until(first_call))), close }
    }

    /// Why the connection ends, if it does. Whoever serves it always waits for something to read.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.close.as_mut().poll(cx).is_ready() {
            return Poll::Ready(io::Error::new(io::ErrorKind::ConnectionAborted, "its place was needed"));
        }
        if let Some(timer) = &mut self.first_call
            && timer.as_mut().poll(cx).is_ready()
        {
            self.first_call = None;
            if self.seat.give_up_if_silent() {
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "there was no call on the connection"));
            }
        }
        Poll::Pending
    }
}

impl AsyncRead for Seated {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(error) = this.poll_end(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, buf)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

impl Connected for Seated {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        Connection { calls: Some(self.seat.calls()), ..self.io.connect_info() }
    }
}
