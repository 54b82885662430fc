//! The contracts of autoact: generated types, clients and servers of `proto/autoact`, the
//! conversions between them and the domain ([`convert`], [`event`], [`store`], [`receipt`], [`specs`]), how an
//! error travels over gRPC (`status`) and how a client is built (`client`).
//!
//! Without features the crate is messages and conversions, and no transport is compiled: enough for
//! stored events. The features `client` and `server` add the generated clients and servers; each
//! brings `status`, `client` and tonic (the feature `rpc`). `testing` adds a gateway for tests.

use autoact_trajectory::InvalidSchema;

mod alike;
#[cfg(feature = "rpc")]
pub mod client;
mod context;
mod control;
pub mod convert;
mod digest;
pub mod event;
mod event_error;
mod index_record;
pub mod receipt;
pub mod sizes;
pub mod specs;
#[cfg(feature = "rpc")]
pub mod status;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

/// Generated code names messages of other packages by relative paths, so the modules are nested as
/// the packages are.
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)] // generated
mod autoact {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/autoact.v1.rs"));
    }
    pub mod agents {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/autoact.agents.v1.rs"));
        }
    }
    pub mod memory {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/autoact.memory.v1.rs"));
        }
    }
    pub mod store {
        pub mod v2 {
            include!(concat!(env!("OUT_DIR"), "/autoact.store.v2.rs"));
        }
    }
}

/// The agents' contract, which only gateways call: `proto/autoact/agents/v1`.
pub use autoact::agents::v1 as agents_v1;
/// The memory service: `proto/autoact/memory/v1`.
pub use autoact::memory::v1 as memory_v1;
/// The stored form of events, `proto/autoact/store/v2`. [`store`] reads and writes it.
pub use autoact::store::v2 as store_v2;
/// The public API, `proto/autoact/v1`; the comments there are the documentation.
pub use autoact::v1;
pub use control::{next_attempt, next_attempt_to_proto};

/// The compiled descriptors, served by gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/autoact.bin"));

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
    /// A tool's parameters are described by something else than a schema.
    #[error("the schema of the tool `{tool}`: {source}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        source: InvalidSchema,
    },
    /// What judgements are worth makes no sense.
    #[error("the calibration: {0}")]
    Calibration(#[from] autoact_trajectory::InvalidCalibration),
    /// A field of the task's context is out of range.
    #[error(transparent)]
    Context(#[from] autoact_trajectory::InvalidContext),
}

impl ConversionError {
    /// The field at fault.
    pub fn field(&self) -> &'static str {
        match self {
            ConversionError::MissingField(field) | ConversionError::UnknownValue { field, .. } => field,
            ConversionError::Schema { .. } => "schema",
            ConversionError::Context(invalid) => invalid.field(),
            ConversionError::Calibration(_) => "calibration",
        }
    }
}
