//! How to reach the bus and how much it may keep.

use std::time::Duration;

use autoact_config::NatsConfig;

/// What a connection to the bus needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusConfig {
    /// Where the servers are, and as whom to log in.
    pub nats: NatsConfig,
    /// The name that the server's monitoring shows for the connection.
    pub name: String,
    /// How long to go on trying at start: services of one deployment start in any order.
    pub connect_limit: Duration,
    /// How long one operation may go on trying, a restart of the server included.
    pub patience: Duration,
    /// Copies of every message, in a NATS cluster.
    pub replicas: usize,
    /// Most bytes of trajectories to keep; the tasks that ended first go before it is reached.
    pub max_bytes: i64,
    /// How long the trajectories of ended tasks are kept.
    pub max_age: Duration,
    /// Most bytes of artifacts to keep for each tenant; a full store refuses. They are kept a day
    /// longer than trajectories.
    pub max_artifact_bytes: i64,
    /// A lease that is not kept alive for this long passes on. Long enough for a gateway that is
    /// busy or cut off for a moment, short enough that the tasks of a dead one go on while their
    /// clients still wait.
    pub lease: Duration,
    /// Most leases that all gateways together may hold.
    pub max_leases: u32,
}

impl BusConfig {
    /// The defaults for servers at `url`, without a login.
    pub fn new(url: impl Into<String>) -> BusConfig {
        BusConfig::over(NatsConfig::at(url))
    }

    /// The defaults for servers that are reached so.
    pub fn over(nats: NatsConfig) -> BusConfig {
        BusConfig {
            nats,
            name: "autoact".to_owned(),
            connect_limit: Duration::from_secs(15),
            patience: Duration::from_secs(30),
            replicas: 1,
            // hundreds of thousands of tasks; reserved by the server, so it must fit on a small
            // disk
            max_bytes: 1 << 30,
            // reserved by the server when the first artifact comes
            max_artifact_bytes: 256 << 20,
            max_age: Duration::from_secs(30 * 24 * 60 * 60),
            lease: Duration::from_secs(30),
            max_leases: 1024,
        }
    }
}

/// The URL without what stands before an `@`: it may be a password.
pub(crate) fn redacted(url: &str) -> String {
    let one = |url: &str| match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        _ => url.to_owned(),
    };
    url.split(',').map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_show() {
        assert_eq!(redacted("nats://me:secret@bus:4222,nats://b:1"), "nats://…@bus:4222,nats://b:1");
    }
}
