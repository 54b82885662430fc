//! The life of a service, the same for all of them: `Config -> bind -> build -> run(shutdown)`.
//!
//! ```ignore
//! struct Memory;
//!
//! impl Service for Memory {
//!     type Config = MemoryConfig;                                     // its settings: `autoact_config::Section`
//!     const ABOUT: &'static str = "Remembers finished tasks.";
//!     async fn build(config: MemoryConfig, setup: &mut Setup) -> Result<(), StartError> {
//!         let store = Store::open(&config.store).map_err(|error| StartError::new(error).fix("check `store.path`"))?;
//!         setup.serve(autoact_wire::limited!(MemoryServer::new(MemoryService { store })));
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {                               // the whole main.rs
//!     autoact_service::main::<Memory>()
//! }
//! ```
//!
//! [`main`] reads the configuration, starts telemetry and runs the service until SIGTERM or SIGINT.
//! Tests and programs that hold a service in themselves use [`App`]:
//! `App::build::<Memory>(loaded).await?.start()`.

mod app;
mod cli;
mod descriptors;
mod error;
mod http_port;
mod limits;
mod liveness;
mod needs;
mod peers;
mod readiness;
mod refusal;
mod request_body;
mod running;
mod setup;
mod shell;
mod signals;
mod slow_reader;
mod tasks;
mod work;

use std::future::Future;

use autoact_config::Section;

pub use app::App;
pub use autoact_tls::{Connection, Peer};
pub use cli::Flag;
pub use error::{RunError, StartError};
pub use limits::{Deadline, deadline};
pub use needs::{Absence, Checks};
pub use peers::peer;
pub use readiness::{Condition, Latch, Readiness};
pub use running::Running;
pub use setup::Setup;
pub use shell::{EXIT_BAD_CONFIG, EXIT_FAILED, main, main_with};
pub use slow_reader::OnSlowReader;
pub use tasks::{Hold, Tasks};

/// A service: its settings and how it is put together.
pub trait Service: Sized + Send + 'static {
    /// Its own settings; what all services share comes with [`Setup::common`].
    type Config: Section + Send;

    /// One or two sentences for `--help`.
    const ABOUT: &'static str;

    /// Settings that have a flag of their own; the others are reached by `--set key=value`.
    fn flags() -> Vec<Flag> {
        Vec::new()
    }

    /// Opens what it needs and registers its gRPC services with [`Setup::serve`]. The ports are
    /// bound already. What may come later (a bus that is not there yet) is waited for with
    /// [`Setup::wait_for`], or belongs into a task of [`Setup::tasks`] that holds a [`Latch`]. What
    /// takes long and counts its progress is waited for with [`Setup::while_it_goes_on`].
    fn build(config: Self::Config, setup: &mut Setup) -> impl Future<Output = Result<(), StartError>> + Send;
}
