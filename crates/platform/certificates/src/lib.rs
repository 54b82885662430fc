//! A certificate authority for development: a directory with its certificate and key, and a
//! certificate and key for each service and for the operator.
//!
//! ```text
//! ca.pem  ca.key            the authority; its key is needed to make certificates, by no service
//! gateway.pem  gateway.key  … and so on: [`SERVICES`]
//! autoact.pem  autoact.key  the operator: the `autoact` command
//! ```
//!
//! Where an authority exists already (a cluster's, a company's), take its certificates instead.

mod authority;
mod directory;
mod error;
mod inspect;

pub use authority::{Authority, Issued, Lifetime, Subject};
pub use directory::{AUTHORITY, Options, ensure, files, init, renew, show};
pub use error::CertificateError;
pub use inspect::{Certificate, inspect};

/// The services that have a certificate: its first name is the service's.
pub const SERVICES: [&str; 5] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];
/// Who operates the group: the name in the `autoact` command's certificate.
pub const OPERATOR: &str = "autoact";
