//! A connection, with TLS or without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use tonic::transport::server::Connected;

use crate::peer::{Connection, Peer};

/// A connection.
#[derive(Debug)]
pub enum Io {
    /// Plain text.
    Plain(TcpStream),
    /// TLS, after its handshake.
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! either {
    ($self:expr, $stream:ident => $does:expr) => {
        match $self.get_mut() {
            Io::Plain($stream) => {
                let $stream = Pin::new($stream);
                $does
            }
            Io::Tls($stream) => {
                let $stream = Pin::new(&mut **$stream);
                $does
            }
        }
    };
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}

impl Connected for Io {
    type ConnectInfo = Connection;

    fn connect_info(&self) -> Connection {
        match self {
            Io::Plain(stream) => Connection { tcp: stream.connect_info(), peer: None, calls: None },
            Io::Tls(stream) => {
                let (tcp, session) = stream.get_ref();
                let certificate = session.peer_certificates().and_then(<[_]>::first);
                Connection { tcp: tcp.connect_info(), peer: certificate.map(Peer::of), calls: None }
            }
        }
    }
}
