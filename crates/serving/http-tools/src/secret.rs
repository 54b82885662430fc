//! Secrets by reference: where one is kept and where it goes in a request. The text itself is read
//! for each call and never shown.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::encode::encoded;
use crate::failure::HttpFailure;
use crate::operation::header_name;

/// The longest secret that is read from a file.
const LONGEST: u64 = 64 * 1024;
/// What stands for a secret in whatever is shown.
pub(crate) const HIDDEN: &str = "***";

/// Where a secret is kept. Its text is in no configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In a variable of the environment that the client was given.
    Env(String),
    /// In a file, read anew for each call; line breaks at its end do not belong to it.
    File(PathBuf),
}

/// A secret, and where it goes in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Where it is kept.
    pub secret: Secret,
    /// Where it goes.
    pub place: SecretPlace,
}

/// Where a secret goes in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// A header whose value is the secret.
    Header(String),
    /// A parameter of the query.
    Query(String),
    /// A cookie.
    Cookie(String),
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: Basic …`; the secret is `user:password`.
    Basic,
}

impl Secret {
    /// Reads the text. A failure names the variable or the file, without its directory.
    pub(crate) fn read(&self, variables: &BTreeMap<String, String>) -> Result<String, HttpFailure> {
        let text = match self {
            Secret::Env(name) => variables.get(name).cloned(),
            Secret::File(path) => {
                let mut text = String::new();
                let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
                read.ok().map(|_| text.trim_end_matches(['\r', '\n']).to_owned())
            }
        };
        text.filter(|text| !text.is_empty()).ok_or_else(|| HttpFailure::Secret { name: self.name() })
    }

    /// What it is called where people read it.
    pub(crate) fn name(&self) -> String {
        match self {
            Secret::Env(name) => format!("the variable `{name}`"),
            Secret::File(path) => format!("the file `{}`", path.file_name().unwrap_or_default().to_string_lossy()),
        }
    }
}

impl Credential {
    /// The header that the secret goes into; none if it goes elsewhere. What is in the header is
    /// hidden.
    pub(crate) fn header(&self, secret: &str, hidden: &mut Hidden) -> Result<Option<(HeaderName, HeaderValue)>, HttpFailure> {
        let unusable = || HttpFailure::Secret { name: format!("{} that a header can carry", self.secret.name()) };
        let (name, text) = match &self.place {
            SecretPlace::Header(name) => (header_name(name).ok_or_else(unusable)?, secret.to_owned()),
            SecretPlace::Bearer => (AUTHORIZATION, format!("Bearer {secret}")),
            SecretPlace::Basic => {
                let value = basic(secret);
                hidden.add(value.trim_start_matches("Basic "));
                (AUTHORIZATION, value)
            }
            SecretPlace::Query(_) | SecretPlace::Cookie(_) => return Ok(None),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok(Some((name, value)))
    }
}

/// The texts that must not be shown, in all the forms in which a server may return them.
#[derive(Default, Clone)]
pub struct Hidden {
    /// The longest first: one form may hold another.
    forms: Vec<String>,
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Hidden {
    /// Hides another secret.
    pub fn add(&mut self, secret: &str) {
        let json = Value::from(secret).to_string();
        let spaces = encoded(secret).replace("%20", "+");
        let parts = [encoded(secret), spaces, json[1..json.len() - 1].to_owned(), STANDARD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
        self.forms.extend(parts);
        self.forms.push(secret.to_owned());
        // the password of `user:password` is one of its own
        if let Some((_, password)) = secret.split_once(':') {
            self.forms.push(password.to_owned());
        }
        self.forms.retain(|form| !form.is_empty());
        self.forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.forms.dedup();
    }

    /// The text without secrets.
    pub fn clean(&self, text: String) -> String {
        let mut text = text;
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = text.replace(form.as_str(), HIDDEN);
            }
        }
        text
    }

    pub(crate) fn in_text(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form.as_str()))
    }

    /// The same for all texts of a JSON value: its form stays.
    pub fn clean_json(&self, value: Value) -> Value {
        if self.forms.is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.clean(text)),
            Value::Array(items) => items.into_iter().map(|item| self.clean_json(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(name, value)| (self.clean(name), self.clean_json(value))).collect())
            }
            // a key made of digits alone may come back as a number
            Value::Number(number) if self.in_text(&number.to_string()) => Value::from(HIDDEN),
            other => other,
        }
    }
}

/// `user:password` as the value of a header.
fn basic(pair: &str) -> String {
    format!("Basic {}", STANDARD.encode(pair))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_hidden_in_all_its_forms() {
        let mut hidden = Hidden::default();
        hidden.add("me:p w/\"1");
        for form in ["me:p w/\"1", "me%3Ap%20w%2F%221", "me%3Ap+w%2F%221", "me:p w/\\\"1", "p w/\"1", &STANDARD.encode("me:p w/\"1")] {
            assert_eq!(hidden.clean(format!("<{form}>")), "<***>", "{form}");
        }
        assert_eq!(hidden.clean_json(json!({"a": ["me:p w/\"1"]})), json!({"a": ["***"]}));
        assert_eq!(format!("{hidden:?}"), "***");
        let mut digits = Hidden::default();
        digits.add("123456");
        assert_eq!(digits.clean_json(json!([123456, 7])), json!(["***", 7]));
    }

    #[test]
    fn a_missing_secret_is_named_without_its_directory() {
        let none = BTreeMap::new();
        let failure = Secret::File("/run/secrets/key".into()).read(&none).unwrap_err();
        assert_eq!(failure, HttpFailure::Secret { name: "the file `key`".into() });
        assert!(matches!(Secret::Env("KEY".into()).read(&none), Err(HttpFailure::Secret { .. })));
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "abc\r\n").unwrap();
        assert_eq!(Secret::File(path).read(&BTreeMap::new()).unwrap(), "abc");
    }
}
