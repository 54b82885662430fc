//! A connection to an address that was checked. A host is resolved once, every address is checked,
//! and one of them is connected to: no later answer of a name server matters.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use crate::address::refused;
use crate::client::HttpClient;
use crate::failure::{HttpFailure, Refusal};
use crate::hosts::HostRule;

/// Addresses of one host that are tried.
const TRIED: usize = 4;
/// The bytes of a response's status and headers.
const HEAD_BYTES: usize = 64 * 1024;
/// The number of a response's headers.
const HEADERS: usize = 100;

/// An open connection. Dropping it closes it.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Full<Bytes>>,
    _task: AbortOnDropHandle<()>,
}

/// What a request may reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) hosts: &'a [HostRule],
    pub(crate) allow_private: bool,
}

impl Reach<'_> {
    /// Whether private addresses are open for this URL: a rule has to name its host.
    fn opens_private(self, url: &Url) -> bool {
        self.allow_private && self.hosts.iter().any(|rule| rule.names() && rule.allows(url))
    }
}

/// A URL's host, as errors name it.
pub(crate) fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Whether requests to this URL may be made, as far as it says.
pub(crate) fn check(url: &Url, reach: Reach<'_>) -> Result<(), HttpFailure> {
    let no = |reason| Err(HttpFailure::Refused { host: host_of(url), reason });
    if !matches!(url.scheme(), "http" | "https") {
        return no(Refusal::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return no(Refusal::UserInfo);
    }
    if !reach.hosts.iter().any(|rule| rule.allows(url)) {
        return no(Refusal::Host);
    }
    Ok(())
}

/// Connects to the URL's host.
pub(crate) async fn connect(client: &HttpClient, url: &Url, reach: Reach<'_>) -> Result<Connection, HttpFailure> {
    check(url, reach)?;
    let addresses = addresses(client, url, reach).await?;
    let port = url.port_or_known_default().unwrap_or(443);
    let mut last = None;
    for address in addresses.into_iter().take(TRIED) {
        let opening = open(client, url, SocketAddr::new(address, port));
        match tokio::time::timeout(client.inner.connect_timeout, opening).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(reason)) => last = Some(reason),
            Err(_) => last = Some(format!("no connection within {}", autoact_base::duration::format(client.inner.connect_timeout))),
        }
    }
    Err(unreachable(url, last.unwrap_or_else(|| "it has no address".to_owned())))
}

/// The addresses of the URL's host. One that must not be reached refuses them all: a name that has
/// such an address beside others is not to be trusted.
async fn addresses(client: &HttpClient, url: &Url, reach: Reach<'_>) -> Result<Vec<IpAddr>, HttpFailure> {
    let addresses = match url.host() {
        Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
        Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
        Some(Host::Domain(name)) => {
            let resolving = tokio::time::timeout(client.inner.connect_timeout, client.inner.resolver.resolve(name));
            match resolving.await {
                Ok(found) => found.map_err(|error| unreachable(url, format!("its name has no address: {error}")))?,
                Err(_) => return Err(unreachable(url, "its name was not resolved in time".to_owned())),
            }
        }
        None => return Err(unreachable(url, "the URL has no host".to_owned())),
    };
    match addresses.iter().find_map(|address| refused(*address, reach.opens_private(url))) {
        Some(class) => Err(HttpFailure::Refused { host: host_of(url), reason: Refusal::Address(class) }),
        None => Ok(addresses),
    }
}

async fn open(client: &HttpClient, url: &Url, address: SocketAddr) -> Result<Connection, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    if url.scheme() == "http" {
        return shake_hands(client, TokioIo::new(stream)).await;
    }
    let tls = client.inner.tls.as_ref().ok_or("this system has no certificate authorities")?;
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(|error| error.to_string())?,
        Some(Host::Ipv4(ip)) => ServerName::from(IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => ServerName::from(IpAddr::V6(ip)),
        None => return Err("the URL has no host".to_owned()),
    };
    let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.map_err(|error| error.to_string())?;
    shake_hands(client, TokioIo::new(stream)).await
}

async fn shake_hands<S>(client: &HttpClient, stream: S) -> Result<Connection, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut builder = Builder::new();
    builder.max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let (sender, connection) = builder.handshake(stream).await.map_err(|error| error.to_string())?;
    let task = client.handle.spawn(async move {
        // its error is that of the request
        let _ = connection.await;
    });
    Ok(Connection { sender, _task: AbortOnDropHandle::new(task) })
}

pub(crate) fn unreachable(url: &Url, reason: String) -> HttpFailure {
    HttpFailure::Unreachable { host: host_of(url), reason }
}
