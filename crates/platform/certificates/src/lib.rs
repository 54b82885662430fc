//! A certificate authority for development: a directory with its certificate and key, and a
//! certificate and key for each service, nats-server included, and for the operator.
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

/// What has a certificate: its first name is the service's. nats-server is among them.
pub const SERVICES: [&str; 6] = ["gateway", "plan-agent", "tool-agent", "reflect-agent", "memory", NATS];
/// The name in nats-server's certificate.
pub const NATS: &str = "nats";
/// Who operates the group: the name in the `autoact` command's certificate.
pub const OPERATOR: &str = "autoact";
