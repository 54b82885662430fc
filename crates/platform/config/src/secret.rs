//! A value that never shows up in logs or in `--print-config`.

use serde::{Deserialize, Serialize, Serializer};

/// What is shown instead of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// A password, token or key. `Debug` and serialisation show `[redacted]`; [`Secret::expose`] is the
/// only way to the text.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { REDACTED })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.0.is_empty() { "" } else { REDACTED })
    }
}

/// `text` with the user and password of every address in it replaced.
pub(crate) fn redact_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (scheme, tail) = rest.split_at(at + 3);
        out.push_str(scheme);
        let authority = tail.find(['/', ',', '?', ' ']).unwrap_or(tail.len());
        rest = match tail[..authority].rfind('@') {
            Some(user_end) => {
                out.push_str(REDACTED);
                &tail[user_end..]
            }
            None => tail,
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_redacted() {
        assert_eq!(redact_addresses("nats://me:pw@a:1,nats://b:2"), "nats://[redacted]@a:1,nats://b:2");
        assert_eq!(redact_addresses("http://a/x@y"), "http://a/x@y");
        assert_eq!(redact_addresses("plain"), "plain");
    }

    #[test]
    fn a_secret_does_not_show() {
        assert_eq!(format!("{:?}", Secret::new("s3")), REDACTED);
    }
}
