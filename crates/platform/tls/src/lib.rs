//! Mutual TLS between the services.
//!
//! Each process has three PEM files: whom it believes, its certificate, and the certificate's key.
//! [`Tls`] holds them and reads them again when they change. [`Doors`] accepts connections on a
//! listener and [`Connect`] makes them; both show the certificate and want one from the other side.
//! Each accepted connection has one of the places that [`Seats`] gives.
//! A caller's names are in [`Peer`], which every request carries in its extensions.
//!
//! TLS 1.3 alone is spoken, and no session is resumed: each connection shows its certificates.

mod accept;
mod connect;
mod error;
mod files;
mod io;
mod peer;
mod seated;
mod seats;
mod tls;

pub use autoact_config::TlsFiles;

pub use accept::{Doors, Handshakes, Listener};
pub use connect::{Connect, ConnectFailure};
pub use error::TlsError;
pub use io::Io;
pub use peer::{Connection, OPERATOR, Peer, callers};
pub use seated::Seated;
pub use seats::{Calls, InCall, Refused, Seat, SeatBounds, Seats};
pub use tls::{Looked, Tls};
