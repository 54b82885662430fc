//! Mutual TLS between the services, and the word for doing without.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What helps where TLS is neither configured nor refused.
const FIX: &str = "fix: set `tls.ca`, `tls.cert` and `tls.key` (`autoact certs init` makes them), or `tls.insecure = true` for plain text";

/// Whom this process trusts, who it is, and who may call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate authorities whose certificates are believed: a PEM file.
    pub ca: Option<PathBuf>,
    /// Our certificate, and those between it and the authority: a PEM file.
    pub cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file that nobody else can read.
    pub key: Option<PathBuf>,
    /// The names that callers' certificates may have. Without it: those that the service needs.
    pub peers: Option<Vec<String>>,
    /// Whether callers must show a certificate. A gateway whose clients show tokens sets `false`.
    pub client_certificates: bool,
    /// Plain text: whoever reaches the port may call, and whoever is between may read and change.
    /// With the three files, they are for connections that this process makes.
    pub insecure: bool,
}

impl Default for TlsConfig {
    fn default() -> TlsConfig {
        TlsConfig { ca: None, cert: None, key: None, peers: None, client_certificates: true, insecure: false }
    }
}

/// The three files of mutual TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whom to believe.
    pub ca: PathBuf,
    /// Who we are.
    pub cert: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
}

/// How a service listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Plain text.
    Plain,
    /// TLS.
    Tls,
}

impl TlsConfig {
    /// The three files, if TLS is configured.
    ///
    /// # Errors
    /// Some of them are set and others are not: names what is missing.
    pub fn files(&self) -> Result<Option<TlsFiles>, String> {
        // an empty variable is the way to unset one
        let given = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        match (given(&self.ca), given(&self.cert), given(&self.key)) {
            (None, None, None) => Ok(None),
            (Some(ca), Some(cert), Some(key)) => Ok(Some(TlsFiles { ca, cert, key })),
            (ca, cert, key) => {
                let all = [("tls.ca", ca), ("tls.cert", cert), ("tls.key", key)];
                let missing: Vec<_> = all.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| format!("`{name}`")).collect();
                Err(format!("TLS needs `tls.ca`, `tls.cert` and `tls.key` together; {} is not set; {FIX}", missing.join(" and ")))
            }
        }
    }

    /// How a service with these settings listens on `listen`. Without TLS, a loopback address is
    /// plain text: only this machine reaches it. Any other needs a decision.
    ///
    /// # Errors
    /// There is no decision, or it is incomplete: says what can be set.
    pub fn door(&self, listen: SocketAddr) -> Result<Door, String> {
        let files = self.files()?;
        match files {
            _ if self.insecure => Ok(Door::Plain),
            Some(_) => Ok(Door::Tls),
            None if listen.ip().is_loopback() => Ok(Door::Plain),
            None => Err(format!("other machines reach `{listen}`, and neither TLS nor plain text is configured; {FIX}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(tls: &TlsConfig, listen: &str) -> Result<Door, String> {
        tls.door(listen.parse().unwrap())
    }

    #[test]
    fn plain_text_beyond_this_machine_is_a_decision() {
        let nothing = TlsConfig::default();
        assert_eq!(door(&nothing, "127.0.0.1:0"), Ok(Door::Plain));
        assert_eq!(door(&nothing, "[::1]:0"), Ok(Door::Plain));
        for open in ["0.0.0.0:7400", "[::]:7400", "10.1.2.3:7400"] {
            let refusal = door(&nothing, open).unwrap_err();
            assert!(["tls.ca", "tls.cert", "tls.key", "tls.insecure = true", open].iter().all(|word| refusal.contains(word)), "{refusal}");
        }
        let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
        assert_eq!(door(&insecure, "0.0.0.0:7400"), Ok(Door::Plain));
    }

    #[test]
    fn the_three_files_come_together() {
        let all = TlsConfig { ca: Some("ca".into()), cert: Some("cert".into()), key: Some("key".into()), ..TlsConfig::default() };
        assert_eq!(door(&all, "127.0.0.1:0"), Ok(Door::Tls));
        assert_eq!(door(&all, "0.0.0.0:0"), Ok(Door::Tls));
        // the gateway of `autoact up`: it calls with TLS, and is called without
        assert_eq!(door(&TlsConfig { insecure: true, ..all.clone() }, "127.0.0.1:0"), Ok(Door::Plain));
        let some = TlsConfig { key: None, ..all.clone() };
        assert!(door(&some, "127.0.0.1:0").unwrap_err().contains("`tls.key` is not set"));
        let emptied = TlsConfig { key: Some(PathBuf::new()), ..all };
        assert!(emptied.files().is_err());
    }
}
