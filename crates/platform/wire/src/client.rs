//! The only constructors of clients: limits, keep-alive and deadlines are set here and nowhere
//! else.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
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

/// A client's channel that sends a token with every call, if it has one.
pub type Authorized = InterceptedService<Channel, Bearer>;

/// Who a client is: a token that every call carries as `authorization: Bearer …`, and for admins
/// the tenant that it acts for.
#[derive(Debug, Clone, Default)]
pub struct Bearer {
    token: Option<MetadataValue<Ascii>>,
    tenant: Option<MetadataValue<Ascii>>,
}

/// A token or a tenant that cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {what} cannot be sent: it is empty, or has characters other than those of plain text")]
pub struct BadBearer {
    what: &'static str,
}

impl Bearer {
    /// Sends this token.
    ///
    /// # Errors
    /// A header cannot carry it. The error does not show it.
    pub fn new(token: &str) -> Result<Bearer, BadBearer> {
        let bad = BadBearer { what: "token" };
        let plain = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok().filter(|_| plain).ok_or(bad)?;
        value.set_sensitive(true);
        Ok(Bearer { token: Some(value), tenant: None })
    }

    /// Acts for this tenant, which an admin may.
    ///
    /// # Errors
    /// A header cannot carry it.
    pub fn acting_for(mut self, tenant: &str) -> Result<Bearer, BadBearer> {
        self.tenant = Some(tenant.parse().map_err(|_| BadBearer { what: "tenant" })?);
        Ok(self)
    }

    /// Whether there is a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, tonic::Status> {
        let metadata = request.metadata_mut();
        if let Some(token) = &self.token {
            metadata.insert("authorization", token.clone());
        }
        if let Some(tenant) = &self.tenant {
            metadata.insert("autoact-tenant", tenant.clone());
        }
        Ok(request)
    }
}
