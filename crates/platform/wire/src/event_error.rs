//! Why a message is no event.

use autoact_trajectory::{Digest, InvalidSampling, InvalidTaskId, InvalidTenant};

use crate::ConversionError;

/// A tool as an event names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRef {
    /// Its name, for messages.
    pub name: String,
    /// SHA-256 of its stored specification.
    pub digest: Digest,
}

/// A message that is no event, or one with a field out of range.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Not protobuf of our schema.
    #[error("not an event of autoact")]
    Malformed(#[source] prost::DecodeError),
    /// A field is absent or out of range.
    #[error("the event is not valid")]
    Field(#[from] ConversionError),
    /// A task id that cannot be one.
    #[error("the event's task id is not valid")]
    TaskId(#[from] InvalidTaskId),
    /// A tenant that cannot be one.
    #[error("the event's tenant is not valid")]
    Tenant(#[from] InvalidTenant),
    /// The specifications of tools that it names are not at hand.
    #[error("the specifications of the tools `{}` are missing", names(.0))]
    MissingTools(Vec<ToolRef>),
    /// A sampling parameter out of range.
    #[error("the event's sampling is not valid")]
    Sampling(#[from] InvalidSampling),
}

fn names(tools: &[ToolRef]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.join("`, `")
}
