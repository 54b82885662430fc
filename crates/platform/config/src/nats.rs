//! How to reach the bus: where it is, as whom to log in, and whom to trust.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::common::DEFAULT_NATS_URL;

/// How to reach the bus. Secrets are in files, which are read at each start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// One or more servers, comma separated; `nats://user:password@host:4222` and `tls://` work
    /// too.
    pub url: String,
    /// The private key of our NATS user: a file with its seed, as `autoact nats init` makes it.
    pub nkey_file: Option<PathBuf>,
    /// A NATS credentials file: a user's JWT and its key.
    pub credentials_file: Option<PathBuf>,
    /// The name of our NATS user, which logs in with a password.
    pub user: Option<String>,
    /// The file of that password.
    pub password_file: Option<PathBuf>,
    /// The certificate authorities whose servers are believed: a PEM file. With it TLS alone is
    /// spoken. Without it, `tls://` servers are believed as the system does.
    pub ca: Option<PathBuf>,
    /// The certificate that we show to the server: a PEM file.
    pub cert: Option<PathBuf>,
    /// The certificate's private key: a PEM file.
    pub key: Option<PathBuf>,
}

impl Default for NatsConfig {
    fn default() -> Self {
        NatsConfig {
            url: DEFAULT_NATS_URL.to_owned(),
            nkey_file: None,
            credentials_file: None,
            user: None,
            password_file: None,
            ca: None,
            cert: None,
            key: None,
        }
    }
}

/// As whom to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsLogin {
    /// As the address says: without a login, or with the user and password in it.
    Address,
    /// With the private key in this file.
    Nkey(PathBuf),
    /// With this credentials file.
    Credentials(PathBuf),
    /// With a name and the password in a file.
    Password {
        /// The user.
        user: String,
        /// The file.
        file: PathBuf,
    },
}

/// The files of TLS to the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsTls {
    /// Whom to believe.
    pub ca: PathBuf,
    /// Our certificate and its key, if the servers want one.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl NatsConfig {
    /// Servers at `url`, without a login.
    pub fn at(url: impl Into<String>) -> NatsConfig {
        NatsConfig { url: url.into(), ..NatsConfig::default() }
    }

    /// As whom to log in.
    ///
    /// # Errors
    /// Several ways are set, or half of one: says what to do.
    pub fn login(&self) -> Result<NatsLogin, String> {
        let user = self.user.clone().filter(|user| !user.is_empty());
        let (nkey, credentials, password) = (given(&self.nkey_file), given(&self.credentials_file), given(&self.password_file));
        match (nkey, credentials, user, password) {
            (None, None, None, None) => Ok(NatsLogin::Address),
            (Some(file), None, None, None) => Ok(NatsLogin::Nkey(file)),
            (None, Some(file), None, None) => Ok(NatsLogin::Credentials(file)),
            (None, None, Some(user), Some(file)) => Ok(NatsLogin::Password { user, file }),
            (None, None, _, _) => Err("`nats.user` and `nats.password_file` come together; fix: set both, or none".to_owned()),
            _ => Err(
                "there are several NATS logins; fix: set one of `nats.nkey_file`, `nats.credentials_file`, or `nats.user` with `nats.password_file`"
                    .to_owned(),
            ),
        }
    }

    /// The files of TLS, if they are set.
    ///
    /// # Errors
    /// Some of them are set and others are not: names what is missing.
    pub fn tls(&self) -> Result<Option<NatsTls>, String> {
        match (given(&self.ca), given(&self.cert), given(&self.key)) {
            (None, None, None) => Ok(None),
            (Some(ca), None, None) => Ok(Some(NatsTls { ca, own: None })),
            (Some(ca), Some(cert), Some(key)) => Ok(Some(NatsTls { ca, own: Some((cert, key)) })),
            _ => Err("`nats.cert` and `nats.key` come together, and with `nats.ca`; fix: set all three, or `nats.ca` alone".to_owned()),
        }
    }
}

/// A path that is set; an empty variable is the way to unset one.
fn given(path: &Option<PathBuf>) -> Option<PathBuf> {
    path.clone().filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_login() {
        let none = NatsConfig::at("nats://a:1");
        assert_eq!(none.login(), Ok(NatsLogin::Address));
        let nkey = NatsConfig { nkey_file: Some("nk".into()), ..none.clone() };
        assert_eq!(nkey.login(), Ok(NatsLogin::Nkey("nk".into())));
        let password = NatsConfig { user: Some("gateway".into()), password_file: Some("pw".into()), ..none.clone() };
        assert_eq!(password.login(), Ok(NatsLogin::Password { user: "gateway".into(), file: "pw".into() }));
        let half = NatsConfig { password_file: Some(PathBuf::new()), ..password };
        assert!(half.login().unwrap_err().contains("nats.password_file"));
        let both = NatsConfig { credentials_file: Some("creds".into()), ..nkey };
        assert!(both.login().unwrap_err().contains("several"));
        let emptied = NatsConfig { nkey_file: Some(PathBuf::new()), credentials_file: Some("creds".into()), ..none };
        assert_eq!(emptied.login(), Ok(NatsLogin::Credentials("creds".into())));
    }

    #[test]
    fn a_certificate_has_a_key_and_an_authority() {
        let plain = NatsConfig::default();
        assert_eq!(plain.tls(), Ok(None));
        let trusting = NatsConfig { ca: Some("ca".into()), ..plain };
        assert_eq!(trusting.tls(), Ok(Some(NatsTls { ca: "ca".into(), own: None })));
        let both = NatsConfig { cert: Some("cert".into()), key: Some("key".into()), ..trusting };
        assert_eq!(both.tls(), Ok(Some(NatsTls { ca: "ca".into(), own: Some(("cert".into(), "key".into())) })));
        assert!(NatsConfig { key: None, ..both.clone() }.tls().is_err());
        assert!(NatsConfig { ca: None, ..both }.tls().is_err());
    }
}
