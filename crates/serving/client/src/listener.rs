//! What listens at an address: asked after a call failed without an answer from a service.
//!
//! The transport's errors say little ("frame with invalid size"), so this looks for itself: it
//! connects, sends what an HTTP/2 client sends first, and reads the first bytes of the reply.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::Uri;

/// For a connection, and for the first bytes of a reply.
const LIMIT: Duration = Duration::from_secs(2);

/// The connection preface of HTTP/2 and an empty `SETTINGS` frame.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A request that every server of HTTP/1 answers.
const HTTP1: &[u8] = b"HEAD / HTTP/1.1\r\nHost: autoact\r\nConnection: close\r\n\r\n";

/// What was found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// Not an address of the form `http://host:port`.
    NoAddress,
    /// The host's name has no address.
    UnknownHost(String),
    /// The host refused the connection: no process listens on the port.
    Nobody,
    /// No answer to the connection attempt.
    NoAnswer,
    /// The host cannot be reached; the system says why.
    Unreachable(String),
    /// A server of HTTP/1, such as a metrics port.
    Http1,
    /// A server that expects TLS.
    Tls,
    /// A nats-server.
    Nats,
    /// Something that speaks none of these protocols.
    Unknown,
    /// A server of HTTP/2, over which gRPC runs.
    Http2,
}

/// Looks at `address`. Takes a few seconds at most.
pub async fn what_listens(address: &str) -> Listener {
    let Some((host, port)) = host_and_port(address) else { return Listener::NoAddress };
    let first = match reply(&host, port, HTTP2).await {
        Ok(first) => first,
        Err(listener) => return listener,
    };
    match protocol(&first) {
        // servers of HTTP/1 may hang up on the preface of HTTP/2
        Listener::Unknown => match reply(&host, port, HTTP1).await {
            Ok(second) => protocol(&second),
            Err(_) => Listener::Unknown,
        },
        found => found,
    }
}

fn host_and_port(address: &str) -> Option<(String, u16)> {
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let uri: Uri = uri.parse().ok()?;
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), uri.port_u16().unwrap_or(default)))
}

/// The first bytes that come back for `greeting`; none when the other side hangs up or is silent.
async fn reply(host: &str, port: u16, greeting: &[u8]) -> Result<Vec<u8>, Listener> {
    let addresses: Vec<_> = match timeout(LIMIT, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => return Err(Listener::UnknownHost(error.to_string())),
        Err(_) => return Err(Listener::UnknownHost("the name service does not answer".to_owned())),
    };
    let mut stream = match timeout(LIMIT, TcpStream::connect(&*addresses)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => return Err(Listener::Nobody),
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => return Err(Listener::NoAnswer),
        Ok(Err(error)) => return Err(Listener::Unreachable(error.to_string())),
        Err(_) => return Err(Listener::NoAnswer),
    };
    let mut bytes = vec![0; 64];
    let talk = async {
        stream.write_all(greeting).await?;
        stream.read(&mut bytes).await
    };
    // a reset or silence is no reply: the bytes decide
    let length = timeout(LIMIT, talk).await.ok().and_then(Result::ok).unwrap_or_default();
    bytes.truncate(length);
    Ok(bytes)
}

/// The protocol that begins with these bytes.
fn protocol(bytes: &[u8]) -> Listener {
    /// Type and stream of the first frame: `SETTINGS` of the connection.
    fn is_settings(bytes: &[u8]) -> bool {
        bytes.len() >= 9 && bytes[3] == 4 && bytes[5..9] == [0; 4]
    }
    match bytes {
        _ if bytes.starts_with(b"HTTP/1") => Listener::Http1,
        _ if bytes.starts_with(b"INFO {") => Listener::Nats,
        // an alert or a handshake of TLS
        [0x15 | 0x16, 0x03, ..] => Listener::Tls,
        _ if is_settings(bytes) => Listener::Http2,
        _ => Listener::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that reads a greeting, says `reply` to the first connection and `then` to others.
    async fn server(reply: &'static [u8], then: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut words = [reply].into_iter().chain(std::iter::repeat(then));
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut greeting = [0; 64];
                let _ = stream.read(&mut greeting).await;
                let _ = stream.write_all(words.next().unwrap_or_default()).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn protocols_are_told_apart_by_their_first_bytes() {
        let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
        assert_eq!(what_listens(&server(settings, b"").await).await, Listener::Http2);
        assert_eq!(what_listens(&server(b"HTTP/1.1 400 Bad Request\r\n", b"").await).await, Listener::Http1);
        assert_eq!(what_listens(&server(b"", b"HTTP/1.1 404 Not Found\r\n").await).await, Listener::Http1);
        assert_eq!(what_listens(&server(b"\x15\x03\x01\0\x02\x02\x46", b"").await).await, Listener::Tls);
        assert_eq!(what_listens(&server(b"INFO {\"server_id\":\"N\"}\r\n", b"").await).await, Listener::Nats);
        assert_eq!(what_listens(&server(b"220 mail\r\n", b"220 mail\r\n").await).await, Listener::Unknown);
        assert_eq!(what_listens(&server(b"", b"").await).await, Listener::Unknown);
    }

    #[tokio::test]
    async fn nobody_and_nowhere_are_told_apart() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert_eq!(what_listens(&format!("http://{free}")).await, Listener::Nobody);
        // the scheme may be left out
        assert_eq!(what_listens(&free.to_string()).await, Listener::Nobody);
        assert!(matches!(what_listens("http://no-such-host.invalid:7400").await, Listener::UnknownHost(_)));
        for wrong in ["", "http://", "http://a b", "::::"] {
            assert_eq!(what_listens(wrong).await, Listener::NoAddress, "{wrong}");
        }
        assert_eq!(host_and_port("http://[::1]:7400"), Some(("::1".to_owned(), 7400)));
    }
}
