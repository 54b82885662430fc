//! The hosts that requests may go to.

use std::fmt;

use url::{Host, Url};

use crate::operation::OperationError;

/// A host that requests may go to: `api.example.com`, `*.example.com` (what is below, not
/// itself), `example.com:8443`, `192.0.2.1`, `[2001:db8::1]:80`. Without a port: 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// `None`: every host.
    host: Option<Host>,
    below: bool,
    port: Option<u16>,
}

impl HostRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// The text is no rule.
    pub fn parse(text: &str) -> Result<HostRule, OperationError> {
        let wrong = || OperationError::Host(text.to_owned());
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && (!host.contains(':') || host.ends_with(']')) => {
                (host, Some(port.parse().map_err(|_| wrong())?))
            }
            _ => (rest, None),
        };
        let host = Host::parse(host).map_err(|_| wrong())?;
        if below && !matches!(&host, Host::Domain(name) if name.contains('.')) {
            return Err(wrong());
        }
        Ok(HostRule { host: Some(host), below, port })
    }

    /// Every host, at one port or at 80 and 443. It opens no private address: whatever else is
    /// allowed, such a host has to be named by another rule.
    pub fn everywhere(port: Option<u16>) -> HostRule {
        HostRule { host: None, below: false, port }
    }

    /// Whether it names hosts; otherwise it is [`everywhere`](Self::everywhere).
    pub(crate) fn names(&self) -> bool {
        self.host.is_some()
    }

    /// The host of a URL, at its port and at that of https.
    pub fn of(url: &Url) -> Vec<HostRule> {
        let Some(host) = url.host() else { return Vec::new() };
        let rule = |port| HostRule { host: Some(host.to_owned()), below: false, port: Some(port) };
        let mut ports = vec![url.port_or_known_default().unwrap_or(443), 443];
        ports.dedup();
        ports.into_iter().map(rule).collect()
    }

    /// Whether requests to this URL may be made.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        let port = match self.port {
            Some(own) => port == Some(own),
            None => matches!(port, Some(80 | 443)),
        };
        let Some(own) = &self.host else { return port };
        let host = match (url.host(), own) {
            (Some(Host::Domain(name)), Host::Domain(own)) => {
                let (name, own) = (name.trim_end_matches('.'), own.trim_end_matches('.'));
                if self.below { name.strip_suffix(own).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')) } else { name == own }
            }
            (Some(Host::Ipv4(address)), Host::Ipv4(own)) => address == *own,
            (Some(Host::Ipv6(address)), Host::Ipv6(own)) => address == *own,
            _ => false,
        };
        host && port
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}{host}", if self.below { "*." } else { "" })?,
            None => f.write_str("*")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, url: &str) -> bool {
        HostRule::parse(rule).unwrap().allows(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_rule_is_a_host_and_its_ports() {
        assert!(allows("api.example.com", "https://API.example.com/x"));
        assert!(allows("api.example.com", "http://api.example.com./x"));
        assert!(!allows("api.example.com", "http://api.example.com:8080/x"));
        assert!(allows("api.example.com:8080", "http://api.example.com:8080/x"));
        assert!(!allows("example.com", "https://api.example.com/"));
        assert!(!allows("example.com", "https://example.com.evil.test/"));
        assert!(!allows("example.com", "https://notexample.com/"));
        assert!(allows("*.example.com", "https://a.b.example.com/"));
        assert!(!allows("*.example.com", "https://example.com/"));
        assert!(!allows("*.example.com", "https://evilexample.com/"));
        assert!(allows("127.0.0.1:80", "http://0x7f.1/"));
        assert!(allows("[::1]:81", "http://[::1]:81/"));
        for text in ["", "*.com", "a b", "a:b:c", "*.1.2.3.4", "example.com:99999", "http://x"] {
            assert!(HostRule::parse(text).is_err(), "{text}");
        }
    }
}
