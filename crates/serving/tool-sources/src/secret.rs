//! Secrets as entries name them: by a variable of the environment or by a file.

use std::path::{Path, PathBuf};

use autoact_http_tools::{Credential, HttpClient, Secret, SecretPlace};
use serde::Deserialize;

/// `{ env = "NAME" }` or `{ file = "path" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSecret {
    env: Option<String>,
    file: Option<PathBuf>,
}

impl RawSecret {
    /// The secret, which has to be there: a program that starts without one fails later and elsewhere.
    pub(crate) fn secret(self, base: Option<&Path>, client: &HttpClient, mistakes: &mut Vec<String>) -> Option<Secret> {
        let secret = match (self.env, self.file) {
            (Some(name), None) => Secret::Env(name),
            (None, Some(path)) => Secret::File(base.map_or_else(|| path.clone(), |base| base.join(&path))),
            _ => {
                mistakes.push("a secret has either `env` (a variable's name) or `file` (a path)".to_owned());
                return None;
            }
        };
        match client.secret(&secret) {
            Ok(_) => Some(secret),
            Err(failure) => {
                mistakes.push(failure.to_string());
                None
            }
        }
    }
}

/// `{ env = "NAME", in = "bearer" }`: a secret and where it goes in a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCredential {
    env: Option<String>,
    file: Option<PathBuf>,
    r#in: String,
}

/// The credentials of an entry, each with its secret.
pub(crate) fn credentials(
    all: Vec<RawCredential>,
    base: Option<&Path>,
    client: &HttpClient,
    mistakes: &mut Vec<String>,
) -> Vec<Credential> {
    let mut credentials = Vec::new();
    for RawCredential { env, file, r#in } in all {
        let place = match r#in.split_once(':').map_or((r#in.as_str(), ""), |(place, name)| (place, name.trim())) {
            ("bearer", "") => SecretPlace::Bearer,
            ("basic", "") => SecretPlace::Basic,
            ("header", name) if !name.is_empty() => SecretPlace::Header(name.to_owned()),
            ("query", name) if !name.is_empty() => SecretPlace::Query(name.to_owned()),
            ("cookie", name) if !name.is_empty() => SecretPlace::Cookie(name.to_owned()),
            _ => {
                mistakes.push(format!(
                    "`in` of a credential is `{in}`; expected `bearer`, `basic`, `header:NAME`, `query:NAME` or `cookie:NAME`",
                    in = r#in
                ));
                continue;
            }
        };
        let secret = RawSecret { env, file }.secret(base, client, mistakes);
        credentials.extend(secret.map(|secret| Credential { secret, place }));
    }
    credentials
}
