//! The settings of `access`.

use std::path::PathBuf;
use std::time::Duration;

use autoact_config::Check;
use http::Uri;
use serde::{Deserialize, Serialize};

/// How far the clocks of issuers and services may differ.
const SKEW: Duration = Duration::from_secs(60);
/// The most that is allowed: an hour would keep what has expired alive.
const LONGEST_SKEW: Duration = Duration::from_secs(10 * 60);
/// How old the issuer's keys become.
const REFRESH: Duration = Duration::from_secs(5 * 60);
/// How often an unknown key makes the keys be read again.
const COOLDOWN: Duration = Duration::from_secs(10);

/// Whether a door asks for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMode {
    /// If tokens or JWTs are set up; otherwise as the service says.
    #[default]
    Auto,
    /// No: who has no token may call as well.
    Open,
    /// Yes.
    Required,
}

/// The settings of `access`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessConfig {
    /// `auto`, `open` or `required`.
    pub mode: AccessMode,
    /// The file of tokens; it is read again when it changes.
    pub tokens: Option<PathBuf>,
    /// JWTs of an issuer.
    pub jwt: JwtConfig,
}

/// JWTs of an issuer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// The issuer's public keys: a file, or an `https://` address; empty: no JWTs.
    pub jwks: String,
    /// The `iss` that a JWT has to have.
    pub issuer: String,
    /// The `aud` that a JWT has to have, or to have among others.
    pub audience: String,
    /// The claim that names the tenant.
    pub tenant_claim: String,
    /// The claim that names the roles: a list, or words. Names that are no roles are passed over.
    pub roles_claim: String,
    /// How far clocks may differ.
    #[serde(with = "autoact_config::duration")]
    pub skew: Duration,
    /// How old the keys become before they are read again.
    #[serde(with = "autoact_config::duration")]
    pub refresh: Duration,
    /// The least time between two readings because a JWT names an unknown key.
    #[serde(with = "autoact_config::duration")]
    pub cooldown: Duration,
    /// A PEM file of authorities to trust for `jwks`, beside the system's.
    pub ca_file: Option<PathBuf>,
}

impl Default for JwtConfig {
    fn default() -> Self {
        JwtConfig {
            jwks: String::new(),
            issuer: String::new(),
            audience: String::new(),
            tenant_claim: "tenant".to_owned(),
            roles_claim: "roles".to_owned(),
            skew: SKEW,
            refresh: REFRESH,
            cooldown: COOLDOWN,
            ca_file: None,
        }
    }
}

impl AccessConfig {
    /// Whether callers can prove who they are.
    pub fn is_set_up(&self) -> bool {
        self.tokens.is_some() || !self.jwt.jwks.is_empty()
    }

    /// Whether callers have to prove who they are.
    pub fn is_required(&self) -> bool {
        match self.mode {
            AccessMode::Required => true,
            AccessMode::Open => false,
            AccessMode::Auto => self.is_set_up(),
        }
    }

    /// Says what is wrong with the settings.
    pub fn check(&self, check: &mut Check<'_>) {
        let duration = autoact_config::duration::format;
        let provable = self.mode != AccessMode::Required || self.is_set_up();
        check.require(provable, "access.mode", "`open` where neither `access.tokens` nor `access.jwt.jwks` is set", "required");
        let jwt = &self.jwt;
        if jwt.jwks.is_empty() {
            return;
        }
        let keys = "a file, an `https://` address, or an `http://` address of this machine";
        check.require(is_trustworthy(&jwt.jwks), "access.jwt.jwks", keys, &jwt.jwks);
        for (key, value) in [
            ("access.jwt.issuer", &jwt.issuer),
            ("access.jwt.audience", &jwt.audience),
            ("access.jwt.tenant_claim", &jwt.tenant_claim),
            ("access.jwt.roles_claim", &jwt.roles_claim),
        ] {
            check.require(!value.is_empty(), key, "set where `access.jwt.jwks` is", value);
        }
        check.require(jwt.skew <= LONGEST_SKEW, "access.jwt.skew", "at most 10m", duration(jwt.skew));
        check.require(!jwt.refresh.is_zero(), "access.jwt.refresh", "above 0", duration(jwt.refresh));
        check.require(!jwt.cooldown.is_zero(), "access.jwt.cooldown", "above 0", duration(jwt.cooldown));
    }
}

/// Keys that came over plain text from elsewhere would be anybody's.
fn is_trustworthy(jwks: &str) -> bool {
    if !jwks.contains("://") {
        return true;
    }
    let Ok(uri) = jwks.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_where_they_can_be_trusted() {
        for good in ["keys.json", "/etc/autoact/keys.json", "https://id.example/keys", "http://127.0.0.1:1/keys", "http://[::1]:1/"] {
            assert!(is_trustworthy(good), "{good}");
        }
        for bad in ["http://id.example/keys", "ftp://127.0.0.1/keys", "https://", "http://127.0.0.1.example/"] {
            assert!(!is_trustworthy(bad), "{bad}");
        }
    }
}
