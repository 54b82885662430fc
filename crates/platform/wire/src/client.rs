//! The only constructors of clients: limits, keep-alive and deadlines are set here and nowhere
//! else.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

/// Largest message a client accepts or sends: a trajectory of the longest task fits many times
/// over.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How long a connection attempt may take: services are near each other.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// An address that is not a URI.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` is not a gRPC address; expected something like `http://127.0.0.1:7401`")]
pub struct AddressError {
    address: String,
    source: tonic::transport::Error,
}

/// Whether a text can be an address: `http://host:port`; the scheme may be left out.
pub fn is_address(text: &str) -> bool {
    let uri = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    uri.parse::<tonic::transport::Uri>().is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()))
}

/// A channel to `address` (`http://host:port`; the scheme may be left out) that connects on first
/// use and reconnects by itself.
pub fn connect_lazy(address: &str) -> Result<Channel, AddressError> {
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri)
        .map_err(|source| AddressError { address: address.to_owned(), source })?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10));
    Ok(endpoint.connect_lazy())
}

/// Sets the message limits every client uses on a generated client.
#[macro_export]
macro_rules! limited {
    ($client:expr) => {
        $client.max_decoding_message_size($crate::client::MAX_MESSAGE_BYTES).max_encoding_message_size($crate::client::MAX_MESSAGE_BYTES)
    };
}
