//! Which stream it is: one that was deleted and made anew under the same name is another one.

use async_nats::jetstream::stream::{Config, Info};
use uuid::Uuid;

/// The entry of a stream's metadata that tells it from every other of its name.
const IDENTITY: &str = "autoact.identity";

/// A configuration for a stream that nobody has made before.
///
/// In a cluster of nats-servers the time of creation does not tell it: where two processes ask for
/// the stream at once, it has another time after its servers were restarted than both were told
/// (seen with 2.10; its source keeps the first time since August 2026). So each request names an identity: one
/// of the two wins, and stays.
pub(super) fn identified(config: Config) -> Config {
    let mut config = config;
    config.metadata.insert(IDENTITY.to_owned(), Uuid::new_v4().to_string());
    config
}

/// What is equal for two looks at the same stream. Streams of releases before have no identity in
/// their metadata: for those it is the time of creation.
pub(crate) fn identity(info: &Info) -> String {
    info.config.metadata.get(IDENTITY).cloned().unwrap_or_else(|| info.created.to_string())
}
