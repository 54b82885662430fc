//! Who a token stands for: the file of tokens first, then the issuer of JWTs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use autoact_base::FileWatch;
use autoact_trajectory::Tenant;
use tokio::sync::watch;

use crate::caller::Principal;
use crate::config::AccessConfig;
use crate::error::{AccessError, Problem};
use crate::jwt::{Jwt, is_jwt};
use crate::proof::{Admitted, Changes, Proof};
use crate::tokens::{TokenFileError, Tokens};

/// The longest token: HTTP allows 16 KiB for all headers together.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// Why access cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file of tokens (`access.tokens`).
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
    /// The keys of JWTs (`access.jwt.jwks`).
    #[error("cannot use the keys of JWTs at `{named}`: {reason}")]
    Keys {
        /// The file or address.
        named: String,
        /// What is wrong.
        reason: String,
    },
}

/// Knows whom tokens stand for.
pub struct Authority {
    path: Option<PathBuf>,
    /// The file as it was when it was read.
    watch: FileWatch,
    tokens: watch::Sender<Tokens>,
    jwt: Option<Jwt>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("tokens", &self.path).finish_non_exhaustive()
    }
}

impl Authority {
    /// Reads what the settings name. [`Authority::keep`] then follows changes.
    ///
    /// # Errors
    /// A file is not there or not valid, or an address cannot be one.
    pub async fn open(config: &AccessConfig) -> Result<Authority, OpenError> {
        let watch = FileWatch::new(config.tokens.clone());
        let tokens = match &config.tokens {
            Some(path) => Tokens::read(path)?,
            None => Tokens::default(),
        };
        let jwt = match config.jwt.jwks.as_str() {
            "" => None,
            _ => Some(Jwt::open(&config.jwt).await?),
        };
        Ok(Authority { path: config.tokens.clone(), watch, tokens: watch::Sender::new(tokens), jwt })
    }

    /// Follows changes of the files and of the issuer's keys. A task without end.
    pub async fn keep(&self) {
        let tokens = async {
            match &self.path {
                Some(path) => self.keep_tokens(path).await,
                None => std::future::pending().await,
            }
        };
        let keys = async {
            match &self.jwt {
                Some(jwt) => jwt.keys.keep().await,
                None => std::future::pending().await,
            }
        };
        tokio::join!(tokens, keys);
    }

    async fn keep_tokens(&self, path: &Path) {
        let mut watch = self.watch.clone();
        loop {
            // so long a token that was taken back still opens the door
            tokio::time::sleep(FileWatch::PERIOD).await;
            if !watch.look() {
                continue;
            }
            match Tokens::read(path) {
                Ok(tokens) => {
                    tracing::info!(tokens = tokens.entries().len(), path = %path.display(), "the tokens have changed");
                    self.tokens.send_replace(tokens);
                }
                Err(error) => {
                    let error = autoact_base::error::chain(&error);
                    tracing::warn!(error, "the tokens were not read again; those before stay");
                }
            }
        }
    }

    /// The tenants that have tokens, now and whenever the file changes.
    pub fn tenants(&self) -> (BTreeSet<Tenant>, impl Future<Output = ()> + use<>) {
        let mut changes = self.tokens.subscribe();
        let now = changes.borrow_and_update().tenants();
        let changed = async move {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        (now, changed)
    }

    /// Whom a token stands for.
    ///
    /// # Errors
    /// Nobody, not now, or not any more.
    pub async fn authenticate(&self, token: &str) -> Result<Principal, AccessError> {
        Ok(self.admit(token).await?.principal)
    }

    /// Whom a token stands for, in a form that tells when that ends.
    pub(crate) async fn prove(self: &Arc<Self>, token: &str) -> Result<Proof, AccessError> {
        // before it is looked at: what changes from now on is told
        let keys = self.jwt.as_ref().map(|jwt| jwt.keys.changes());
        let changes = Changes { tokens: self.tokens.subscribe(), keys };
        let admitted = self.admit(token).await?;
        Ok(Proof { authority: Arc::clone(self), token: token.into(), admitted, changes })
    }

    pub(crate) async fn admit(&self, token: &str) -> Result<Admitted, AccessError> {
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
            return Err(AccessError::Invalid(Problem::Malformed));
        }
        let found = self.tokens.borrow().admit(token, SystemTime::now());
        match (found, &self.jwt) {
            (Err(AccessError::Invalid(Problem::Unknown)), Some(jwt)) if is_jwt(token) => jwt.verify(token).await,
            (found, _) => found,
        }
    }
}
