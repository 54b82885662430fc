//! How calls are shared among the replicas of a service.

use std::fmt;
use std::time::Duration;

use autoact_config::Check;
use autoact_replicas::{Options, set};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// How calls are shared among replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplicasConfig {
    /// Failures in a row after which a replica is left alone.
    pub failures: u32,
    /// Calls that may be repeated on another replica at once, as a share of all.
    pub retry_share: f64,
    /// How long a connection is used, half of it at least.
    #[serde(with = "autoact_config::duration")]
    pub connection_age: Duration,
    /// How often names are looked up, half of it at least.
    #[serde(with = "autoact_config::duration")]
    pub resolve: Duration,
}

impl Default for ReplicasConfig {
    fn default() -> Self {
        let Options { set: set::Options { failures, retry_share, connection_age }, resolve } = Options::default();
        ReplicasConfig { failures, retry_share, connection_age, resolve }
    }
}

impl ReplicasConfig {
    /// What a pool is made with.
    pub(crate) fn options(&self) -> Options {
        let ReplicasConfig { failures, retry_share, connection_age, resolve } = *self;
        Options { set: set::Options { failures, retry_share, connection_age }, resolve }
    }

    pub(super) fn check(&self, check: &mut Check<'_>) {
        let duration = autoact_config::duration::format;
        check.require(self.failures > 0, "replicas.failures", "at least 1", self.failures);
        check.require((0.0..=1.0).contains(&self.retry_share), "replicas.retry_share", "0 to 1", self.retry_share);
        for (key, time) in [("replicas.connection_age", self.connection_age), ("replicas.resolve", self.resolve)] {
            check.require(time >= Duration::from_secs(1), key, "at least 1s", duration(time));
        }
    }
}

/// Reads one address, several with commas between them, or a list of them, as the text with commas.
pub(super) fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Addresses;
    impl<'de> Visitor<'de> for Addresses {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an address such as `http://127.0.0.1:7401`, or a list of them")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<String, A::Error> {
            let mut all = Vec::new();
            while let Some(address) = sequence.next_element::<String>()? {
                all.push(address);
            }
            Ok(all.join(","))
        }
    }
    deserializer.deserialize_any(Addresses)
}
