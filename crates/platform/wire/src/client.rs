//! The only constructors of clients: limits, keep-alive and deadlines are set here and nowhere
//! else.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use autoact_tls::{Connect, Tls};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint, Uri};

/// Largest message a client accepts or sends: a trajectory of the longest task fits many times
/// over.
pub const MAX_MESSAGE_BYTES: usize = crate::sizes::LARGE;

/// How long a connection attempt may take: services are near each other.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The port of an address that names none.
const PLAIN_PORT: u16 = 80;
/// The same with TLS.
const TLS_PORT: u16 = 443;

/// Why there can be no channel to an address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is no URI.
    #[error("`{address}` is not a gRPC address; expected something like `http://127.0.0.1:7401`")]
    NotAnAddress {
        /// The address.
        address: String,
        /// Why.
        source: Option<tonic::transport::Error>,
    },
    /// It asks for TLS, and this process has no certificate.
    #[error(
        "`{address}` asks for TLS, which is not configured here; fix: set `tls.ca`, `tls.cert` and `tls.key`, or name an `http://` address"
    )]
    NoTls {
        /// The address.
        address: String,
    },
    /// It asks for plain text over the network, which nobody has allowed.
    #[error(
        "`{address}` is on another machine, and asks for plain text; fix: name an `https://` address and set `tls.ca`, `tls.cert` and `tls.key`, or set `tls.insecure = true`"
    )]
    PlainText {
        /// The address.
        address: String,
    },
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
        uri.map(|uri| Target { address: address.to_owned(), uri })
            .ok_or_else(|| AddressError::NotAnAddress { address: address.to_owned(), source: None })
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

/// A channel to `address` (`http://host:port`; the scheme may be left out) that connects on first
/// use and reconnects by itself. Plain text, wherever it is: for tests, and for what has no
/// settings.
pub fn connect_lazy(address: &str) -> Result<Channel, AddressError> {
    Connector::default().plain_anywhere(true).connect_lazy(address)
}

/// Makes channels, as the settings of this process say: with its certificate to `https://`
/// addresses, without TLS to `http://` ones. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Connector {
    tls: Option<Tls>,
    /// Plain text to other machines, too.
    plain_anywhere: bool,
}

impl Connector {
    /// With this certificate, if there is one.
    pub fn new(tls: Option<Tls>) -> Connector {
        Connector { tls, plain_anywhere: false }
    }

    /// Allows plain text to other machines: what `tls.insecure` says.
    #[must_use]
    pub fn plain_anywhere(mut self, allowed: bool) -> Connector {
        self.plain_anywhere = allowed;
        self
    }

    /// Whether `https://` addresses can be called.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// `address` with its scheme: that of TLS, where it is left out and we have a certificate.
    pub fn with_scheme(&self, address: &str) -> String {
        match (address.contains("://"), &self.tls) {
            (true, _) => address.to_owned(),
            (false, Some(_)) => format!("https://{address}"),
            (false, None) => format!("http://{address}"),
        }
    }

    /// A channel to `address` (`https://host:port`) that connects on first use and reconnects by
    /// itself.
    ///
    /// # Errors
    /// It is no address, or not one that the settings allow.
    pub fn connect_lazy(&self, address: &str) -> Result<Channel, AddressError> {
        let (endpoint, tls) = self.endpoint(address)?;
        Ok(match tls {
            Some(connect) => endpoint.connect_with_connector_lazy(connect),
            None => endpoint.connect_lazy(),
        })
    }

    /// The same to `to`, one of the addresses that the host of `target` has: for those who choose
    /// among replicas. Requests name the host, and with TLS the certificate has to be for its name.
    ///
    /// # Errors
    /// As [`Connector::connect_lazy`].
    pub fn connect_lazy_to(&self, target: &Target, to: SocketAddr) -> Result<Channel, AddressError> {
        let (endpoint, tls) = self.endpoint(target.address())?;
        Ok(match tls {
            Some(connect) => endpoint.connect_with_connector_lazy(connect.to(to)),
            None => configured(&format!("http://{to}"), target.address())?.origin(target.uri.clone()).connect_lazy(),
        })
    }

    /// The endpoint of an address, and what connects to it if not the transport itself.
    fn endpoint(&self, address: &str) -> Result<(Endpoint, Option<Connect>), AddressError> {
        let uri = self.with_scheme(address);
        let endpoint = configured(&uri, address)?;
        let https = endpoint.uri().scheme_str() == Some("https");
        match &self.tls {
            Some(tls) if https => {
                // the transport refuses `https` from connectors other than its own where any crate
                // turns its TLS on; the connection is made by ours, and requests say `https`
                let origin = endpoint.uri().clone();
                let plain = configured(&uri.replacen("https", "http", 1), address)?;
                Ok((plain.origin(origin), Some(Connect::new(tls.clone()))))
            }
            None if https => Err(AddressError::NoTls { address: address.to_owned() }),
            _ if self.plain_anywhere || is_here(endpoint.uri()) => Ok((endpoint, None)),
            _ => Err(AddressError::PlainText { address: address.to_owned() }),
        }
    }
}

/// An endpoint with our limits. One with calls in flight is asked every few seconds whether it
/// lives: a service that hangs is noticed after 15 s.
fn configured(uri: &str, address: &str) -> Result<Endpoint, AddressError> {
    let endpoint = Endpoint::from_shared(uri.to_owned())
        .map_err(|source| AddressError::NotAnAddress { address: address.to_owned(), source: Some(source) })?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(5))
        .keep_alive_timeout(Duration::from_secs(10));
    Ok(endpoint)
}

/// Whether an address is on this machine, whatever the name service says.
fn is_here(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(connector: &Connector, address: &str) -> Result<bool, AddressError> {
        connector.endpoint(address).map(|(_, tls)| tls.is_some())
    }

    #[test]
    fn plain_text_stays_on_this_machine_unless_it_is_allowed() {
        let strict = Connector::default();
        for here in ["http://127.0.0.1:1", "localhost:1", "http://[::1]:1", "127.0.0.2:1"] {
            assert!(matches!(asked(&strict, here), Ok(false)), "{here}");
        }
        for elsewhere in ["http://10.0.0.1:1", "plan-agent:7401", "http://localhost.example.org:1"] {
            assert!(matches!(asked(&strict, elsewhere), Err(AddressError::PlainText { .. })), "{elsewhere}");
            assert!(matches!(asked(&strict.clone().plain_anywhere(true), elsewhere), Ok(false)), "{elsewhere}");
        }
        assert!(matches!(asked(&strict, "https://127.0.0.1:1"), Err(AddressError::NoTls { .. })));
        assert!(matches!(asked(&strict, "a b"), Err(AddressError::NotAnAddress { .. })));
    }
}
