//! Tokens that an operator gives out. A file has the SHA-256 of each, never the token itself.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use autoact_trajectory::Tenant;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::caller::{Principal, Role};
use crate::error::{AccessError, Problem};
use crate::proof::Admitted;

/// What tokens begin with, so that one that leaked is found by those who search for them.
const PREFIX: &str = "autoact_";
/// Bits that nobody can guess.
const TOKEN_BYTES: usize = 32;
/// The largest file: some ten thousand tokens.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The longest name.
const MAX_NAME_BYTES: usize = 128;

/// A file of tokens that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the tokens in `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It says something else than tokens.
    #[error("the tokens in `{}` are not valid: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A token as the file knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who has it.
    pub principal: Principal,
    /// Of the token.
    pub sha256: [u8; 32],
    /// From when on it is no longer valid.
    pub expires: Option<SystemTime>,
}

/// What a file has for a token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    tenant: String,
    roles: BTreeSet<Role>,
    sha256: String,
    #[serde(default)]
    expires: Option<Expiry>,
}

/// A time as TOML has them, or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Expiry {
    Text(String),
    Time(toml::value::Datetime),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Written>,
}

/// The tokens of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens {
    entries: Vec<Entry>,
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not there, or not valid: then none of it counts.
    pub fn read(path: &Path) -> Result<Tokens, TokenFileError> {
        let mut text = String::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
        read.map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        let invalid = |reason| TokenFileError::Invalid { path: path.to_owned(), reason };
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(invalid(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        Tokens::parse(&text).map_err(invalid)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Tokens, String> {
        // not the line itself, as TOML's own errors have it: it may hold what should be secret
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
            format!("line {line}: {}", error.message())
        })?;
        let mut entries: Vec<Entry> = Vec::new();
        let (mut names, mut digests) = (BTreeSet::new(), BTreeSet::new());
        for written in file.token {
            let entry = entry(written)?;
            let name = &entry.principal.name;
            if !names.insert(name.clone()) || !digests.insert(entry.sha256) {
                return Err(format!("`{name}` is there twice, or has another's token"));
            }
            entries.push(entry);
        }
        Ok(Tokens { entries })
    }

    /// The tokens, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tenants that have tokens.
    pub fn tenants(&self) -> BTreeSet<Tenant> {
        self.entries.iter().map(|entry| entry.principal.tenant.clone()).collect()
    }

    /// Whose a token is. How long it takes does not depend on which token is like it.
    ///
    /// # Errors
    /// It is nobody's, or has expired.
    pub fn find(&self, token: &str, now: SystemTime) -> Result<Principal, AccessError> {
        Ok(self.admit(token, now)?.principal)
    }

    pub(crate) fn admit(&self, token: &str, now: SystemTime) -> Result<Admitted, AccessError> {
        let digest = sha256(token);
        let mut found = None;
        for entry in &self.entries {
            if bool::from(entry.sha256.ct_eq(&digest)) {
                found = Some(entry);
            }
        }
        let entry = found.ok_or(AccessError::Invalid(Problem::Unknown))?;
        match entry.expires {
            Some(expires) if expires <= now => Err(AccessError::Expired),
            until => Ok(Admitted { principal: entry.principal.clone(), until }),
        }
    }
}

fn entry(written: Written) -> Result<Entry, String> {
    let Written { name, tenant, roles, sha256, expires } = written;
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(format!("`name` has to have 1 to {MAX_NAME_BYTES} bytes and no control characters"));
    }
    let wrong = |what: &str| format!("`{name}`: {what}");
    if roles.is_empty() {
        return Err(wrong("it has no roles; expected some of `ask`, `operate` and `admin`"));
    }
    let tenant: Tenant = tenant.parse().map_err(|error| wrong(&format!("{error}")))?;
    let sha256 = hex(&sha256).ok_or_else(|| wrong("`sha256` has to have 64 hexadecimal digits"))?;
    let expires = match expires {
        None => None,
        Some(expires) => {
            let text = match expires {
                Expiry::Text(text) => text,
                Expiry::Time(time) => time.to_string(),
            };
            let time = text.parse::<prost_types::Timestamp>().ok().and_then(|time| SystemTime::try_from(time).ok());
            Some(time.ok_or_else(|| wrong("`expires` has to be a time such as `2027-01-31T12:00:00Z`"))?)
        }
    };
    Ok(Entry { principal: Principal { name, tenant, roles }, sha256, expires })
}

/// The SHA-256 of a token.
fn sha256(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The token: it is nowhere else.
    pub token: String,
    /// What the file has for it: an entry in TOML.
    pub entry: String,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl NewToken {
    /// Makes a token for a user.
    ///
    /// # Errors
    /// The user cannot be one (a reason for people), or the system has no random numbers.
    pub fn make(principal: &Principal, expires: Option<SystemTime>) -> Result<NewToken, String> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no random numbers".to_owned())?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let mut table = toml::Table::new();
        table.insert("name".to_owned(), principal.name.clone().into());
        table.insert("tenant".to_owned(), principal.tenant.to_string().into());
        table.insert("roles".to_owned(), principal.roles.iter().map(ToString::to_string).collect::<Vec<_>>().into());
        let digest: String = sha256(&token).iter().map(|byte| format!("{byte:02x}")).collect();
        table.insert("sha256".to_owned(), digest.into());
        if let Some(expires) = expires {
            // whole seconds, rounded up: nobody needs more
            let mut time = prost_types::Timestamp::from(expires);
            (time.seconds, time.nanos) = (time.seconds + i64::from(time.nanos > 0), 0);
            table.insert("expires".to_owned(), time.to_string().into());
        }
        let entry = format!("[[token]]\n{table}");
        Tokens::parse(&entry)?;
        Ok(NewToken { token, entry })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    fn ann() -> Principal {
        Principal { name: "ann".into(), tenant: "ops".parse().unwrap(), roles: [Role::Ask].into() }
    }

    #[test]
    fn a_new_token_is_found_by_its_entry() {
        let now = SystemTime::now();
        let made = NewToken::make(&ann(), Some(now + Duration::from_secs(60))).unwrap();
        assert!(made.token.len() > 40 && !made.entry.contains(&made.token) && !format!("{made:?}").contains(&made.token));
        let tokens = Tokens::parse(&made.entry).unwrap();
        assert_eq!(tokens.find(&made.token, now).unwrap(), ann());
        assert_eq!(tokens.find(&made.token, now + Duration::from_secs(62)).unwrap_err(), AccessError::Expired);
        assert_eq!(tokens.find("autoact_x", now).unwrap_err(), AccessError::Invalid(Problem::Unknown));
        assert_eq!(tokens.find("", now).unwrap_err(), AccessError::Invalid(Problem::Unknown));
        assert_ne!(NewToken::make(&ann(), None).unwrap().token, made.token);
        assert_eq!(tokens.tenants().len(), 1);
    }

    #[test]
    fn a_file_that_is_not_valid_counts_for_nothing() {
        let good = format!("[[token]]\nname = 'a'\ntenant = 'ops'\nroles = ['ask']\nsha256 = '{}'\n", "0".repeat(64));
        assert_eq!(Tokens::parse(&good).unwrap().entries().len(), 1);
        assert!(Tokens::parse("").unwrap().entries().is_empty());
        let with = |from: &str, to: &str| good.replace(from, to);
        for bad in [
            with("'ops'", "'no tenant'"),
            with("['ask']", "['root']"),
            with("['ask']", "[]"),
            with("0'", "x'"),
            with("'a'", "''"),
            good.clone() + &good,
            good.clone() + "expires = 'tomorrow'\n",
            good.clone() + "token = 'the token itself'\n",
            "no toml".to_owned(),
        ] {
            let error = Tokens::parse(&bad).unwrap_err();
            assert!(!error.contains("the token itself"), "{error}");
        }
        for time in ["2020-01-31T12:00:00Z", "'2020-01-31T12:00:00Z'"] {
            assert!(Tokens::parse(&(good.clone() + &format!("expires = {time}\n"))).unwrap().entries()[0].expires.is_some());
        }
    }
}
