//! Free ports.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which the system takes the ports of outgoing connections, so that none of
/// those is in the way.
const FIRST: u16 = 20_000;
/// How many blocks there are to try.
const BLOCKS: u16 = 60;
/// Ports of a block: more than the span of a group.
const BLOCK: u16 = 200;

/// A port that nothing listens on now.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Ports that nothing listens on now, all different.
pub fn distinct(count: usize) -> anyhow::Result<Vec<u16>> {
    // all held until the last one is chosen
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    Ok(held.iter().map(|listener| listener.local_addr().map(|addr| addr.port())).collect::<Result<_, _>>()?)
}

/// The first of a block of ports of which those at `offsets` are free now.
pub fn free_block(offsets: &[u16]) -> anyhow::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // tests run in processes of their own: begin somewhere else in each
    let start = (std::process::id() % u32::from(BLOCKS)) as u16;
    for _ in 0..BLOCKS {
        let index = (start + NEXT.fetch_add(1, Ordering::Relaxed)) % BLOCKS;
        let base = FIRST + index * BLOCK;
        if offsets.iter().all(|offset| TcpListener::bind(("127.0.0.1", base + offset)).is_ok()) {
            return Ok(base);
        }
    }
    anyhow::bail!("no block of free ports from {FIRST} on")
}
