//! The limits of a service's doors: the gRPC port and the HTTP port. What each bounds, and what a
//! client sees of it, is in `docs/limits.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A gateway has one for each client; 9,000 silent ones then add 42 MiB of memory, not 92.
const MAX_CONNECTIONS: usize = 1024;
/// A handshake takes two round trips and two signatures: milliseconds.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// An honest handshake is over long before so many others come.
const MAX_HANDSHAKES: usize = 1024;
/// Whoever connects means to call. One that connects early and is closed connects again.
const FIRST_CALL: Duration = Duration::from_secs(30);
/// More than a gateway ever has on one connection.
const MAX_STREAMS: u32 = 1024;
/// Four times the clients that may watch a gateway.
const MAX_CALLS: usize = 8192;
/// A token, a trace and a deadline take 2 KiB.
const MAX_HEADER_BYTES: u32 = 16 * 1024;
/// The largest request in this time takes 2.3 Mbit/s.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// Sixteen of the largest requests at once.
const MAX_REQUEST_BYTES: usize = 256 << 20;
/// A client that takes nothing for this long has stopped, or is too slow to follow a task.
const SLOW_READER: Duration = Duration::from_secs(30);
/// How often a silent client is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long its answer may take.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Probes and scrapers: a few.
const MAX_HTTP_CONNECTIONS: usize = 256;
/// A probe takes milliseconds, and a large scrape less than a second.
const HTTP_TIME: Duration = Duration::from_secs(30);

/// The settings of `door`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoorConfig {
    /// Connections to the gRPC port.
    pub max_connections: usize,
    /// Those of one address; without it `max_connections`, since behind a proxy all have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections_per_address: Option<usize>,
    /// How long a TLS handshake may take, or in plain text the first byte.
    #[serde(with = "crate::duration")]
    pub handshake: Duration,
    /// Handshakes in progress; when another one comes, the oldest goes.
    pub max_handshakes: usize,
    /// How long a connection may be open without a call.
    #[serde(with = "crate::duration")]
    pub first_call: Duration,
    /// Calls at a time on one connection.
    pub max_streams: u32,
    /// Calls at a time of all connections.
    pub max_calls: usize,
    /// Bytes of a request's headers.
    pub max_header_bytes: u32,
    /// How long a request that is one message may take to arrive.
    #[serde(with = "crate::duration")]
    pub request_time: Duration,
    /// Bytes of all requests that are being received.
    pub max_request_bytes: usize,
    /// How long a client may take nothing of what is there for it.
    #[serde(with = "crate::duration")]
    pub slow_reader: Duration,
    /// How often a silent client is asked whether it is still there.
    #[serde(with = "crate::duration")]
    pub keepalive: Duration,
    /// How long its answer may take.
    #[serde(with = "crate::duration")]
    pub keepalive_timeout: Duration,
    /// Connections to the HTTP port; when another one comes, the oldest goes.
    pub max_http_connections: usize,
    /// How long one of them may last.
    #[serde(with = "crate::duration")]
    pub http_time: Duration,
}

impl Default for DoorConfig {
    fn default() -> DoorConfig {
        DoorConfig {
            max_connections: MAX_CONNECTIONS,
            max_connections_per_address: None,
            handshake: HANDSHAKE,
            max_handshakes: MAX_HANDSHAKES,
            first_call: FIRST_CALL,
            max_streams: MAX_STREAMS,
            max_calls: MAX_CALLS,
            max_header_bytes: MAX_HEADER_BYTES,
            request_time: REQUEST_TIME,
            max_request_bytes: MAX_REQUEST_BYTES,
            slow_reader: SLOW_READER,
            keepalive: KEEPALIVE,
            keepalive_timeout: KEEPALIVE_TIMEOUT,
            max_http_connections: MAX_HTTP_CONNECTIONS,
            http_time: HTTP_TIME,
        }
    }
}

impl DoorConfig {
    /// The first limit that lets nobody in, if there is one: its key. A limit of 0 is no way to say
    /// "without limit".
    pub fn shut(&self) -> Option<&'static str> {
        let DoorConfig {
            max_connections,
            max_connections_per_address,
            handshake,
            max_handshakes,
            first_call,
            max_streams,
            max_calls,
            max_header_bytes,
            request_time,
            max_request_bytes,
            slow_reader,
            keepalive,
            keepalive_timeout,
            max_http_connections,
            http_time,
        } = self;
        let zeros = [
            ("door.max_connections", *max_connections == 0),
            ("door.max_connections_per_address", *max_connections_per_address == Some(0)),
            ("door.handshake", handshake.is_zero()),
            ("door.max_handshakes", *max_handshakes == 0),
            ("door.first_call", first_call.is_zero()),
            ("door.max_streams", *max_streams == 0),
            ("door.max_calls", *max_calls == 0),
            ("door.max_header_bytes", *max_header_bytes == 0),
            ("door.request_time", request_time.is_zero()),
            ("door.max_request_bytes", *max_request_bytes == 0),
            ("door.slow_reader", slow_reader.is_zero()),
            ("door.keepalive", keepalive.is_zero()),
            ("door.keepalive_timeout", keepalive_timeout.is_zero()),
            ("door.max_http_connections", *max_http_connections == 0),
            ("door.http_time", http_time.is_zero()),
        ];
        zeros.into_iter().find_map(|(key, zero)| zero.then_some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_zero_is_named() {
        assert_eq!(DoorConfig::default().shut(), None);
        assert_eq!(DoorConfig { max_calls: 0, ..DoorConfig::default() }.shut(), Some("door.max_calls"));
        let address = DoorConfig { max_connections_per_address: Some(0), ..DoorConfig::default() };
        assert_eq!(address.shut(), Some("door.max_connections_per_address"));
    }
}
