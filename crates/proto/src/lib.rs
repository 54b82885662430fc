//! The contracts of autoact: generated types, clients and servers of `proto/autoact/v1`, and the only place that knows how an error
//! travels over gRPC ([`status`]) and how a client is built ([`client`]).

pub mod client;
pub mod status;

/// Generated from `proto/autoact/v1`; the comments there are the documentation.
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("autoact.v1");
}

/// The compiled descriptors, served by gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/autoact.v1.bin"));

/// A message that lacks a field its receiver needs, or holds a value outside its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// A required field is absent.
    #[error("missing field `{0}`")]
    MissingField(&'static str),
    /// A field's value is not one the receiver knows.
    #[error("field `{field}` has the unknown value `{value}`")]
    UnknownValue {
        /// The field's name in the proto file.
        field: &'static str,
        /// What came.
        value: String,
    },
}
