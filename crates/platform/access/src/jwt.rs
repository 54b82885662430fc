//! JWTs: who signed it, for whom, for how long, and what it says of the caller.

use std::time::{Duration, SystemTime};

use autoact_trajectory::Tenant;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

use crate::authority::OpenError;
use crate::caller::Principal;
use crate::config::JwtConfig;
use crate::error::{AccessError, Problem};
use crate::keys::{Key, Keys};
use crate::proof::Admitted;
use crate::signatures;

/// The longest name that logs get.
const MAX_NAME: usize = 128;

type Claims = Map<String, Value>;

/// The JWTs of one issuer.
pub(crate) struct Jwt {
    config: JwtConfig,
    pub(crate) keys: Keys,
}

impl Jwt {
    pub(crate) async fn open(config: &JwtConfig) -> Result<Jwt, OpenError> {
        signatures::install();
        Ok(Jwt { config: config.clone(), keys: Keys::open(config).await? })
    }

    /// Whom a JWT is about.
    pub(crate) async fn verify(&self, token: &str) -> Result<Admitted, AccessError> {
        let (algorithm, id) = header(token)?;
        let fits = |key: &&Key| match &id {
            Some(id) => key.id.as_ref() == Some(id),
            None => key.algorithm == algorithm,
        };
        let mut keys = self.keys.current();
        if !keys.as_ref().is_some_and(|keys| keys.iter().any(|key| fits(&key))) {
            self.keys.look_again().await;
            keys = self.keys.current();
        }
        let keys = keys.ok_or(AccessError::NoKeys)?;
        let mut refused = AccessError::Invalid(Problem::Key);
        for key in keys.iter().filter(fits) {
            // the key says how it signs: what the token says of itself is only compared
            if key.algorithm != algorithm {
                refused = AccessError::Invalid(Problem::Algorithm);
                continue;
            }
            match self.claims(token, key) {
                Ok(claims) => return Ok(Admitted { principal: self.principal(&claims)?, until: self.until(&claims) }),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn claims(&self, token: &str, key: &Key) -> Result<Claims, AccessError> {
        let mut validation = Validation::new(key.algorithm);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&[&self.config.audience]);
        validation.validate_nbf = true;
        validation.leeway = self.config.skew.as_secs();
        let decoded = jsonwebtoken::decode::<Claims>(token, &key.key, &validation).map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => AccessError::Expired,
            ErrorKind::ImmatureSignature => AccessError::NotYet,
            ErrorKind::InvalidSignature => AccessError::Invalid(Problem::Signature),
            ErrorKind::InvalidIssuer => AccessError::Invalid(Problem::Issuer),
            ErrorKind::InvalidAudience => AccessError::Invalid(Problem::Audience),
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => AccessError::Invalid(Problem::Algorithm),
            ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => AccessError::Invalid(Problem::Issuer),
            ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => AccessError::Invalid(Problem::Audience),
            ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => AccessError::Invalid(Problem::Claims),
            _ => AccessError::Invalid(Problem::Malformed),
        })?;
        Ok(decoded.claims)
    }

    /// From when on it is no longer accepted. Times are compared in whole seconds.
    fn until(&self, claims: &Claims) -> Option<SystemTime> {
        let expires = Duration::try_from_secs_f64(claims.get("exp")?.as_f64()?).ok()?;
        let accepted = expires.checked_add(self.config.skew)?.checked_add(Duration::from_secs(1))?;
        SystemTime::UNIX_EPOCH.checked_add(accepted)
    }

    fn principal(&self, claims: &Claims) -> Result<Principal, AccessError> {
        let tenant = claim(claims, &self.config.tenant_claim).and_then(Value::as_str).and_then(|text| text.parse::<Tenant>().ok());
        let tenant = tenant.ok_or(AccessError::Invalid(Problem::Claims))?;
        let roles = match claim(claims, &self.config.roles_claim) {
            Some(Value::String(words)) => words.split([' ', ',']).map(str::to_owned).collect(),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let name = claims.get("sub").and_then(Value::as_str).unwrap_or("unnamed");
        Ok(Principal {
            name: name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect(),
            tenant,
            roles: roles.iter().filter_map(|role| role.parse().ok()).collect(),
        })
    }
}

/// Whether a text has the three parts of a JWT.
pub(crate) fn is_jwt(token: &str) -> bool {
    token.split('.').count() == 3
}

/// How a JWT says that it is signed, and with which key.
fn header(token: &str) -> Result<(Algorithm, Option<String>), AccessError> {
    let malformed = || AccessError::Invalid(Problem::Malformed);
    let part = token.split('.').next().ok_or_else(malformed)?;
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed())?;
    let header: Claims = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
    // extensions that have to be understood, and are not
    if header.contains_key("crit") {
        return Err(malformed());
    }
    let algorithm = match header.get("alg").and_then(Value::as_str) {
        Some("RS256") => Algorithm::RS256,
        Some("ES256") => Algorithm::ES256,
        Some("EdDSA") => Algorithm::EdDSA,
        _ => return Err(AccessError::Invalid(Problem::Algorithm)),
    };
    Ok((algorithm, header.get("kid").and_then(Value::as_str).map(str::to_owned)))
}

/// A claim by its name; a name with dots that no claim has is a path into objects
/// (`realm_access.roles`).
fn claim<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    rest.split('.').try_fold(claims.get(first)?, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        let claims = serde_json::json!({"https://a.b/tenant": "x", "realm": {"roles": ["ask"], "x": 1}, "t": "y"});
        let claims = claims.as_object().unwrap();
        assert_eq!(claim(claims, "https://a.b/tenant").unwrap(), "x");
        assert_eq!(claim(claims, "t").unwrap(), "y");
        assert_eq!(claim(claims, "realm.roles").unwrap(), &serde_json::json!(["ask"]));
        for none in ["u", "realm.other", "realm.x.y", "t.x", ""] {
            assert!(claim(claims, none).is_none(), "{none}");
        }
    }

    #[test]
    fn any_text_is_no_jwt_and_no_panic() {
        for text in ["", ".", "..", "a.b.c", "e30.e30.", "bnVsbA.e30.x", "é.é.é"] {
            assert!(header(text).is_err(), "{text}");
        }
    }
}
