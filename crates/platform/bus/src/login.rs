//! Logging in. The files of a login are read at every connection, so that a key that was replaced
//! is used from the next one on.

use std::path::Path;
use std::sync::Arc;

use async_nats::{Auth, AuthError, ConnectOptions};
use autoact_config::NatsLogin;
use nkeys::KeyPair;

use crate::config::BusConfig;
use crate::error::BusError;
use crate::users::{KeyError, UserKey, inbox_prefix, read_key};

/// What is shown to the server.
enum Secret {
    /// A private key: what the server asks is signed with it.
    Key(UserKey),
    /// The same with what an operator says of the user.
    Credentials {
        jwt: String,
        pair: KeyPair,
    },
    Password {
        user: String,
        password: String,
    },
}

impl Secret {
    /// What the login's inboxes begin with; `None`: they are everybody's.
    fn inbox(&self) -> Option<String> {
        match self {
            Secret::Key(key) => Some(inbox_prefix(&key.inbox)),
            Secret::Credentials { .. } => None,
            Secret::Password { user, .. } => Some(inbox_prefix(user)),
        }
    }

    fn auth(self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let sign = |pair: &KeyPair| pair.sign(nonce).map_err(|error| AuthError::new(error.to_string()));
        let mut auth = Auth::new();
        match self {
            Secret::Key(UserKey { pair, .. }) => {
                auth.signature = Some(sign(&pair)?);
                auth.nkey = Some(pair.public_key());
            }
            Secret::Credentials { jwt, pair } => {
                auth.signature = Some(sign(&pair)?);
                auth.jwt = Some(jwt);
            }
            Secret::Password { user, password } => (auth.username, auth.password) = (Some(user), Some(password)),
        }
        Ok(auth)
    }
}

/// Options with the login, and with inboxes that are this user's alone.
///
/// # Errors
/// The settings contradict each other; [`BusError::Credentials`] if a file cannot be used now.
pub(crate) fn options(config: &BusConfig) -> Result<ConnectOptions, BusError> {
    let login = config.nats.login().map_err(BusError::Settings)?;
    let Some(first) = read(&login)? else { return Ok(ConnectOptions::new()) };
    let (login, inbox) = (Arc::new(login), first.inbox());
    let used = inbox.clone();
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let (login, used) = (Arc::clone(&login), used.clone());
        // a few bytes, once for each connection
        async move {
            let secret = read(&login).map_err(|error| AuthError::new(autoact_base::error::chain(&error)))?;
            let secret = secret.ok_or_else(|| AuthError::new("there is no login"))?;
            if secret.inbox() != used {
                tracing::error!("the NATS login is another user's, or its key was replaced without its inbox; restart this service");
            }
            secret.auth(&nonce)
        }
    });
    Ok(match inbox {
        Some(inbox) => options.custom_inbox_prefix(inbox),
        None => options,
    })
}

/// What the files of a login hold now; `None`: the address has the login, if there is one.
fn read(login: &NatsLogin) -> Result<Option<Secret>, BusError> {
    let unusable = |path: &Path, source: std::io::Error| BusError::Credentials { path: path.display().to_string(), source };
    Ok(match login {
        NatsLogin::Address => None,
        NatsLogin::Nkey(path) => {
            let failed = |error: KeyError| match error {
                KeyError::File { source, .. } => unusable(path, source),
                other => unusable(path, std::io::Error::new(std::io::ErrorKind::InvalidData, other)),
            };
            Some(Secret::Key(read_key(path).map_err(failed)?))
        }
        NatsLogin::Credentials(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| unusable(path, source))?;
            let none = || unusable(path, std::io::Error::new(std::io::ErrorKind::InvalidData, "it holds no NATS credentials"));
            Some(credentials(&text).ok_or_else(none)?)
        }
        NatsLogin::Password { user, file } => {
            let text = std::fs::read_to_string(file).map_err(|source| unusable(file, source))?;
            Some(Secret::Password { user: user.clone(), password: text.trim().to_owned() })
        }
    })
}

/// A credentials file: a JWT and a key, each between lines of dashes.
fn credentials(text: &str) -> Option<Secret> {
    let after = |title: &str| {
        let mut lines = text.lines().map(str::trim).skip_while(|line| !(line.starts_with("---") && line.contains(title)));
        lines.nth(1).filter(|line| !line.is_empty() && !line.starts_with('-')).map(str::to_owned)
    };
    let pair = KeyPair::from_seed(&after("BEGIN USER NKEY SEED")?).ok()?;
    Some(Secret::Credentials { jwt: after("BEGIN NATS USER JWT")?, pair })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credentials_file_has_a_jwt_and_a_key() {
        let pair = KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\n*** keep it ***\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let auth = credentials(&text).unwrap().auth(b"nonce").unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("a.b.c"));
        assert!(pair.verify(b"nonce", &auth.signature.unwrap()).is_ok());
        for bad in ["", "a.b.c", &text.replace(&seed, "SUx"), &text.replace("a.b.c\n", ""), &text.replace("JWT", "X")] {
            assert!(credentials(bad).is_none(), "{bad}");
        }
    }
}
