//! What the commands that talk to the bus itself have in common.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use autoact_bus::{BusConfig, Progress};
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};

/// Where the bus is.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct NatsOptions {
    /// The NATS servers.
    #[arg(
        long = "nats-url",
        visible_alias = "nats",
        value_name = "URL",
        env = "AUTOACT_NATS__URL",
        default_value = "nats://127.0.0.1:7422"
    )]
    url: String,
    /// A NATS credentials file.
    #[arg(long = "nats-credentials", value_name = "FILE", env = "AUTOACT_GATEWAY__BUS__CREDENTIALS")]
    credentials: Option<PathBuf>,
}

impl NatsOptions {
    pub(crate) fn config(&self) -> BusConfig {
        BusConfig { credentials: self.credentials.clone(), name: "autoact".to_owned(), ..BusConfig::new(&self.url) }
    }
}

/// Work that takes less is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar on standard error, once the work has taken two seconds. Nothing where it is no terminal.
pub(crate) struct Bar {
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { since: Instant::now(), bar: None }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        if self.bar.is_none() && self.since.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos} of {len} messages, {per_sec}, {eta} left");
            let bar = ProgressBar::new(progress.of);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        bar.set_length(progress.of.max(progress.read));
        bar.set_position(progress.read);
    }

    pub(crate) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
