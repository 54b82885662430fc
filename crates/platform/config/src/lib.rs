//! Configuration in layers: named-constant defaults < TOML file < environment (`AUTOACT_*`, `__`
//! nests) < command-line flags.
//!
//! A service describes its own settings as one serde struct
//! (`#[serde(default, deny_unknown_fields)]`) and implements [`Section`]; what every service shares
//! is [`Common`]. [`load`] merges the layers, reports *all* mistakes together, each with the place
//! it comes from, and remembers where every value came from for [`Loaded::print`]. Nothing here
//! reads the process's environment or arguments: they come in through [`Sources`].
//!
//! ```toml
//! [common]            # for every service that reads this file
//! telemetry.log_format = "json"
//!
//! [plan-agent]        # for one
//! listen = "0.0.0.0:7401"
//! model = "models/stem"
//! ```

mod common;
mod door;
mod error;
mod file;
mod load;
mod nats;
mod print;
mod secret;
mod setting;
mod tls;
mod variables;

pub use autoact_base::duration;
pub use common::{Common, DEFAULT_GRACE_PERIOD, DEFAULT_LOG_LEVEL, DEFAULT_NATS_URL, DEFAULT_START_LIMIT, LogFormat, TelemetryConfig};
pub use door::DoorConfig;
pub use error::{ConfigErrors, Mistake, Source};
pub use load::{Check, Loaded, Section, Sources, load};
pub use nats::{NatsConfig, NatsLogin, NatsTls};
pub use secret::Secret;
pub use tls::{Door, TlsConfig, TlsFiles};
pub use variables::{CONFIG_VARIABLE, OTHER_VARIABLES, SETTINGS};

/// The sections a configuration file may have: one per service, and one for what they share. Jobs
/// such as meta-agent are no services: they have flags, and read no file.
pub const SECTIONS: [&str; 6] = [COMMON_SECTION, "gateway", "plan-agent", "tool-agent", "reflect-agent", "memory"];

/// The section whose settings hold for every service.
pub const COMMON_SECTION: &str = "common";

/// What every variable of ours begins with.
pub const VARIABLE_PREFIX: &str = "AUTOACT_";
