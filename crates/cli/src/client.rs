//! Connections to the group, with errors that say what to do.

use autoact_proto::client::connect_lazy;
use autoact_proto::v1::gateway_client::GatewayClient;
use autoact_proto::v1::memory_client::MemoryClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

pub(crate) type Gateway = GatewayClient<Channel>;
pub(crate) type Memory = MemoryClient<Channel>;

/// A client of the gateway; connects on first use.
pub(crate) fn gateway(address: &str) -> anyhow::Result<Gateway> {
    Ok(autoact_proto::limited!(GatewayClient::new(connect_lazy(address)?)))
}

/// A client of the memory service.
pub(crate) fn memory(address: &str) -> anyhow::Result<Memory> {
    Ok(autoact_proto::limited!(MemoryClient::new(connect_lazy(address)?)))
}

/// Adds what a person can do about a status.
pub(crate) fn explain(status: Status, what: &str, address: &str) -> anyhow::Error {
    let advice = match status.code() {
        Code::Unavailable => {
            format!("the {what} at {address} cannot be reached; fix: start the group with `autoact up`, or name another address")
        }
        Code::ResourceExhausted => match autoact_proto::status::retry_after(&status) {
            Some(delay) => format!("the {what} is full; try again in {:.1} s", delay.as_secs_f64()),
            None => format!("the {what} is full; try again later"),
        },
        _ => format!("{} ({:?})", status.message(), status.code()),
    };
    anyhow::Error::new(status).context(advice)
}
