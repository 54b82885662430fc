//! Whether what a server acknowledges is on its disk: as the server's own monitoring says.
//!
//! `/varz` has `jetstream.config.sync_always`, which is `true` with `sync_interval: always` and
//! absent otherwise (seen with nats-server 2.10.27). A client is not told over its own connection,
//! and the system account's answers need a login of their own.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::BusError;

/// A server that is there answers in milliseconds.
const LIMIT: Duration = Duration::from_secs(3);
/// Its answer has a few kilobytes.
const MAX_BYTES: u64 = 1 << 20;

/// Checks that each server says that it writes to the disk before it acknowledges. `monitoring`:
/// the servers' HTTP monitoring addresses, comma separated.
///
/// # Errors
/// [`BusError::Unsynced`] if one acknowledges before; [`BusError::UnknownDurability`] if there is no
/// address; [`BusError::Monitoring`] if one cannot be asked, which counts as unsafe too.
pub async fn check_durability(monitoring: &str) -> Result<(), BusError> {
    let addresses: Vec<&str> = monitoring.split(',').map(str::trim).filter(|address| !address.is_empty()).collect();
    if addresses.is_empty() {
        return Err(BusError::UnknownDurability);
    }
    for address in addresses {
        let failed = |source: async_nats::Error| BusError::Monitoring { url: address.to_owned(), source };
        let answer = tokio::time::timeout(LIMIT, varz(address)).await.map_err(|elapsed| failed(elapsed.into()))?.map_err(failed)?;
        let synced = answer["jetstream"]["config"]["sync_always"].as_bool().unwrap_or(false);
        if !synced {
            let server = answer["server_name"].as_str().unwrap_or(address).to_owned();
            return Err(BusError::Unsynced { server });
        }
    }
    Ok(())
}

/// The server's description of itself. HTTP/1.0: the answer ends with the connection, and has no
/// chunks.
async fn varz(address: &str) -> Result<serde_json::Value, async_nats::Error> {
    let host = address.strip_prefix("http://").ok_or("expected an address such as `http://127.0.0.1:8222`")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET /varz HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or("it does not speak HTTP")?;
    let (head, body) = answer.split_at(end + 4);
    let status = head.split(|byte| *byte == b' ').nth(1);
    if status != Some(b"200") {
        return Err("it did not answer with 200".into());
    }
    Ok(serde_json::from_slice(body)?)
}
