//! Making connections: a connector for the channels of `tonic`.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::Uri;
use tower::Service;

use crate::io::Io;
use crate::tls::Tls;

/// The port of an address that names none.
const HTTPS_PORT: u16 = 443;

/// Connects with TLS: shows our certificate, and wants one for the host that was asked for.
#[derive(Debug, Clone)]
pub struct Connect {
    tls: Tls,
    to: Option<SocketAddr>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// The address names no host that a certificate could be for.
    #[error("`{0}` names no host")]
    NoHost(Uri),
    /// Nobody listens there, or nobody can be reached.
    #[error("cannot connect: {0}")]
    Tcp(#[source] io::Error),
    /// One side does not accept the other's certificate, or it is no TLS.
    #[error("the TLS handshake failed: {0}")]
    Handshake(#[source] io::Error),
}

impl Connect {
    /// To the host that an address names.
    pub fn new(tls: Tls) -> Connect {
        Connect { tls, to: None }
    }

    /// To `to`, one of the addresses of a name: the certificate still has to be for the name.
    #[must_use]
    pub fn to(mut self, to: SocketAddr) -> Connect {
        self.to = Some(to);
        self
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<Io>, ConnectFailure> {
        let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']').to_owned());
        let Some(host) = host else { return Err(ConnectFailure::NoHost(uri)) };
        let Ok(name) = ServerName::try_from(host.clone()) else { return Err(ConnectFailure::NoHost(uri)) };
        let stream = match self.to {
            Some(to) => TcpStream::connect(to).await,
            None => TcpStream::connect((host, uri.port_u16().unwrap_or(HTTPS_PORT))).await,
        };
        let stream = stream.map_err(ConnectFailure::Tcp)?;
        stream.set_nodelay(true).map_err(ConnectFailure::Tcp)?;
        let stream = TlsConnector::from(self.tls.client()).connect(name, stream).await.map_err(ConnectFailure::Handshake)?;
        Ok(TokioIo::new(Io::Tls(Box::new(stream.into()))))
    }
}

impl Service<Uri> for Connect {
    type Response = TokioIo<Io>;
    type Error = ConnectFailure;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Io>, ConnectFailure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectFailure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
