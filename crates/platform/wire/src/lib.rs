//! The contracts of autoact: generated types, clients and servers of `proto/autoact/v1`, the conversions between them and the domain
//! ([`convert`], [`event`], [`store`]), how an error travels over gRPC ([`status`]) and how a client is built ([`client`]).

pub mod client;
pub mod convert;
pub mod event;
pub mod status;
pub mod store;

/// Generated from `proto/autoact/v1`; the comments there are the documentation.
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("autoact.v1");
}

/// Generated from `proto/autoact/store/v2`: the stored form of events. [`store`] reads and writes it.
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
pub mod store_v2 {
    tonic::include_proto!("autoact.store.v2");
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
