//! The only constructors of clients: limits, keep-alive and deadlines are set here and nowhere
//! else.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint, Uri};

/// Largest message a client accepts or sends: a trajectory of the longest task fits many times
/// over.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How long a connection attempt may take: services are near each other.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The port of an address that names none.
const PLAIN_PORT: u16 = 80;
/// The same with TLS.
const TLS_PORT: u16 = 443;

/// An address that is not a URI.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` is not a gRPC address; expected something like `http://127.0.0.1:7401`")]
pub struct AddressError {
    address: String,
    source: Option<tonic::transport::Error>,
}

/// Where a service is, as a person names it: a host and a port. One host may have many addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    address: String,
    uri: Uri,
}

impl Target {
    /// `http://host:port`; the scheme may be left out.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(address: &str) -> Result<Target, AddressError> {
        let text = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let uri = text.parse::<Uri>().ok().filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        uri.map(|uri| Target { address: address.to_owned(), uri }).ok_or_else(|| AddressError { address: address.to_owned(), source: None })
    }

    /// What it was read from.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The host's name or number, an IPv6 number without its brackets.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port; that of the scheme if none is named.
    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.uri.scheme_str() == Some("https") { TLS_PORT } else { PLAIN_PORT })
    }

    /// The address itself, if the host is a number.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.host().parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port()))
    }
}

/// The services that a setting names: one address, or several with commas between them.
///
/// # Errors
/// One of them is no address, or there is none.
pub fn targets(addresses: &str) -> Result<Vec<Target>, AddressError> {
    addresses.split(',').map(|address| Target::parse(address.trim())).collect()
}

/// Whether a text can be an address, or several: `http://host:port`; the scheme may be left out.
pub fn is_address(text: &str) -> bool {
    targets(text).is_ok()
}

/// How `socket` is connected to, one of the addresses that the host of `target` has. Requests name
/// the host, and so does whatever proves who answers.
///
/// # Errors
/// The target is no address for a client.
fn endpoint(target: &Target, socket: SocketAddr) -> Result<Endpoint, AddressError> {
    let wrong = |source| AddressError { address: target.address.clone(), source };
    let scheme = target.uri.scheme_str().unwrap_or("http");
    let endpoint = Endpoint::from_shared(format!("{scheme}://{socket}")).map_err(|source| wrong(Some(source)))?;
    Ok(configured(endpoint).origin(target.uri.clone()))
}

/// A channel to `socket`, one of the addresses that the host of `target` has, that connects on first use and reconnects by itself.
///
/// # Errors
/// The target is no address for a client.
pub fn connect_lazy_to(target: &Target, socket: SocketAddr) -> Result<Channel, AddressError> {
    Ok(endpoint(target, socket)?.connect_lazy())
}

/// A channel to `address` (`http://host:port`; the scheme may be left out) that connects on first
/// use and reconnects by itself.
pub fn connect_lazy(address: &str) -> Result<Channel, AddressError> {
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri).map_err(|source| AddressError { address: address.to_owned(), source: Some(source) })?;
    Ok(configured(endpoint).connect_lazy())
}

/// What every connection has. One with calls in flight is asked every few seconds whether it lives:
/// a service that hangs is noticed after 15 s.
fn configured(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(10))
}

/// Sets the message limits every client uses on a generated client.
#[macro_export]
macro_rules! limited {
    ($client:expr) => {
        $client.max_decoding_message_size($crate::client::MAX_MESSAGE_BYTES).max_encoding_message_size($crate::client::MAX_MESSAGE_BYTES)
    };
}
