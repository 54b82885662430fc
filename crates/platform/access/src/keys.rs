//! The issuer's public keys: read from a file or an address, and read again.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use autoact_base::FileWatch;
use autoact_http_client::{Client, ClientOptions, whole};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::authority::OpenError;
use crate::config::JwtConfig;

/// The largest set of keys: a hundred RSA keys with their certificates.
const MAX_BYTES: usize = 1024 * 1024;
/// The most keys of a set that are used.
const MAX_KEYS: usize = 128;
/// How long the issuer may take.
const LIMIT: Duration = Duration::from_secs(5);

/// A public key, and the one method that it is for.
pub(crate) struct Key {
    pub(crate) id: Option<String>,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: DecodingKey,
}

enum Source {
    /// As it was when it was first read.
    File(PathBuf, FileWatch),
    Url(Box<Client>),
}

/// The keys as they were read last.
pub(crate) struct Keys {
    source: Source,
    /// What people are told.
    named: String,
    refresh: Duration,
    cooldown: Duration,
    /// `None`: never read.
    current: RwLock<Option<Arc<Vec<Key>>>>,
    /// The SHA-256 of what they were read from.
    read_from: std::sync::Mutex<Option<[u8; 32]>>,
    /// How often that was something else than before.
    revision: watch::Sender<u64>,
    /// When they were asked for last. Held while they are read, so that one reads for all.
    asked: Mutex<Option<Instant>>,
}

impl Keys {
    /// Reads a file now, which has to be there. An issuer that is away is asked later.
    pub(crate) async fn open(config: &JwtConfig) -> Result<Keys, OpenError> {
        let source = if config.jwks.contains("://") {
            let url = config.jwks.clone();
            let options = ClientOptions { url, api_key: Default::default(), ca_file: config.ca_file.clone(), connect_timeout: LIMIT };
            let client = Client::new(&options);
            let client = client.map_err(|error| OpenError::Keys { named: config.jwks.clone(), reason: error.to_string() })?;
            Source::Url(Box::new(client))
        } else {
            let path = PathBuf::from(&config.jwks);
            // before it is read: a change in between is seen as one
            let watch = FileWatch::new([path.clone()]);
            Source::File(path, watch)
        };
        let keys = Keys {
            source,
            named: config.jwks.clone(),
            refresh: config.refresh,
            cooldown: config.cooldown,
            current: RwLock::default(),
            revision: watch::Sender::new(0),
            read_from: std::sync::Mutex::default(),
            asked: Mutex::default(),
        };
        match (keys.read().await, &keys.source) {
            (Err(reason), Source::File(..)) => Err(OpenError::Keys { named: keys.named, reason }),
            (Err(reason), Source::Url(_)) => {
                tracing::warn!(jwks = keys.named, reason, "the keys of JWTs cannot be read yet; trying again");
                Ok(keys)
            }
            (Ok(()), _) => Ok(keys),
        }
    }

    /// The keys; `None` if they could never be read.
    pub(crate) fn current(&self) -> Option<Arc<Vec<Key>>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells when they are others.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Reads them again because a JWT names one that is not there, unless that was done a moment
    /// ago: callers with invented keys must not make a service flood the issuer.
    pub(crate) async fn look_again(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < self.cooldown) {
            return;
        }
        *asked = Some(Instant::now());
        if let Err(reason) = self.read().await {
            tracing::warn!(jwks = self.named, reason, "the keys of JWTs were not read again; those before stay");
        }
    }

    /// Reads them again and again. A task without end.
    pub(crate) async fn keep(&self) {
        match &self.source {
            Source::File(_, watch) => {
                let mut watch = watch.clone();
                loop {
                    tokio::time::sleep(FileWatch::PERIOD).await;
                    if !watch.look() {
                        continue;
                    }
                    match self.read().await {
                        Ok(()) => tracing::info!(jwks = self.named, "the keys of JWTs have changed"),
                        Err(reason) => tracing::warn!(jwks = self.named, reason, "the keys of JWTs were not read; those before stay"),
                    }
                }
            }
            Source::Url(_) => loop {
                let pause = if self.current().is_some() { self.refresh } else { self.refresh.min(self.cooldown) };
                tokio::time::sleep(pause).await;
                let mut asked = self.asked.lock().await;
                *asked = Some(Instant::now());
                if let Err(reason) = self.read().await {
                    tracing::warn!(jwks = self.named, reason, "the keys of JWTs were not read; those before stay");
                }
            },
        }
    }

    async fn read(&self) -> Result<(), String> {
        let bytes = match &self.source {
            Source::File(path, _) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await.map_err(|error| error.to_string())?;
                read.map_err(|error| error.to_string())?
            }
            Source::Url(client) => match tokio::time::timeout(LIMIT, fetch(client)).await {
                Ok(fetched) => fetched?,
                Err(_) => return Err(format!("no answer within {LIMIT:?}")),
            },
        };
        if bytes.len() > MAX_BYTES {
            return Err(format!("it has more than {MAX_BYTES} bytes"));
        }
        let keys = parse(&bytes)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
        let digest = Some(Sha256::digest(&bytes).into());
        let before = std::mem::replace(&mut *self.read_from.lock().unwrap_or_else(PoisonError::into_inner), digest);
        if before != digest {
            self.revision.send_modify(|revision| *revision += 1);
        }
        Ok(())
    }
}

async fn fetch(client: &Client) -> Result<Vec<u8>, String> {
    let response = client.get(&client.url("")).await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("the issuer answers {}", response.status()));
    }
    Ok(whole(response.into_body(), MAX_BYTES).await.map_err(|error| error.to_string())?.to_vec())
}

/// The keys of a set that JWTs may be signed with. Others are passed over: secrets that are shared
/// (`oct`), keys for encryption, methods that are not accepted.
fn parse(bytes: &[u8]) -> Result<Vec<Key>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let set: Set = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON Web Key Set: {error}"))?;
    let keys: Vec<Key> = set.keys.into_iter().filter_map(|key| usable(serde_json::from_value(key).ok()?)).take(MAX_KEYS).collect();
    if keys.is_empty() { Err("it has no key for RS256, ES256 or EdDSA".to_owned()) } else { Ok(keys) }
}

fn usable(jwk: Jwk) -> Option<Key> {
    if jwk.common.public_key_use.as_ref().is_some_and(|what| *what != PublicKeyUse::Signature) {
        return None;
    }
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P256 => (Algorithm::ES256, KeyAlgorithm::ES256),
        AlgorithmParameters::OctetKeyPair(of) if of.curve == EllipticCurve::Ed25519 => (Algorithm::EdDSA, KeyAlgorithm::EdDSA),
        _ => return None,
    };
    if jwk.common.key_algorithm.is_some_and(|said| said != named) {
        return None;
    }
    Some(Key { id: jwk.common.key_id.clone(), algorithm, key: DecodingKey::from_jwk(&jwk).ok()? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shared_secrets_and_foreign_keys_are_passed_over() {
        let ed = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}"#;
        let keys = |text: &str| parse(text.as_bytes()).map(|keys| keys.len());
        assert_eq!(keys(&format!(r#"{{"keys":[{ed}]}}"#)), Ok(1));
        for other in [
            r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#.to_owned(),
            r#"{"kty":"new"}"#.to_owned(),
            "7".to_owned(),
            ed.replace("\"kid\"", "\"use\":\"enc\",\"kid\""),
            ed.replace("\"kid\"", "\"alg\":\"HS256\",\"kid\""),
            ed.replace("Ed25519", "P-256"),
        ] {
            assert_eq!(keys(&format!(r#"{{"keys":[{other},{ed}]}}"#)), Ok(1), "{other}");
            assert!(keys(&format!(r#"{{"keys":[{other}]}}"#)).is_err(), "{other}");
        }
        for bad in ["", "[]", "{}", r#"{"keys":{}}"#] {
            assert!(keys(bad).is_err(), "{bad}");
        }
    }
}
