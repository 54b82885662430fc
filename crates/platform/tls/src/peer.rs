//! Who calls: the names in a certificate that was verified, and which of them a service expects.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tonic::transport::server::TcpConnectInfo;

use crate::seats::Calls;

/// The name in the certificate of people and jobs that operate the group.
pub const OPERATOR: &str = "autoact";

/// The names that callers of a service have unless `tls.peers` says otherwise: those that need it.
pub fn callers(service: &str) -> &'static [&'static str] {
    match service {
        "gateway" => &[OPERATOR],
        "memory" => &["gateway", "tool-agent", OPERATOR],
        // the agents, which call none of each other
        _ => &["gateway", OPERATOR],
    }
}

/// The other side of a connection: the DNS names of its certificate, which was verified. In the
/// extensions of every request that came with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    names: Arc<[String]>,
}

impl Peer {
    /// The names in a certificate.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Peer {
        let names = match webpki::EndEntityCert::try_from(certificate) {
            Ok(certificate) => certificate.valid_dns_names().map(str::to_owned).collect(),
            // it was verified, so it can be read; without names it may call nothing
            Err(_) => Vec::new(),
        };
        Peer { names: names.into() }
    }

    /// A peer with these names: for tests of what depends on them.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> Peer {
        Peer { names: names.into_iter().map(Into::into).collect::<Vec<_>>().into() }
    }

    /// The names, in the order of the certificate.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it is one of these.
    pub fn is_one_of(&self, allowed: &[impl AsRef<str>]) -> bool {
        self.names.iter().any(|name| allowed.iter().any(|allowed| allowed.as_ref() == name))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.first() {
            Some(name) => f.write_str(name),
            None => f.write_str("a certificate without names"),
        }
    }
}

/// What is known of a connection. In the extensions of every request.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Its two addresses.
    pub tcp: TcpConnectInfo,
    /// Who showed a certificate, if anybody did.
    pub peer: Option<Peer>,
    /// Where its calls are counted, if anybody accepted it.
    pub calls: Option<Calls>,
}
