//! What the commands that talk to the bus itself have in common.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use autoact_bus::{BusConfig, NatsConfig, Progress};
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::LoginOptions;
use crate::connector;

/// The settings of a local group, in its state directory.
pub(crate) const CONFIG: &str = "autoact.toml";
/// The keys of its NATS users.
pub(crate) const KEYS_DIR: &str = "nats";

/// What the command line says of the login. One command is one process.
static LOGIN: OnceLock<LoginOptions> = OnceLock::new();

/// Remembers the options of the command line.
pub(crate) fn set_up(login: LoginOptions) {
    // once, at the start
    let _ = LOGIN.set(login);
}

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
}

impl NatsOptions {
    pub(crate) fn config(&self) -> BusConfig {
        BusConfig { name: "autoact".to_owned(), ..BusConfig::over(reach(&self.url)) }
    }
}

/// How the servers at `url` are reached: as the command line says, and otherwise as the operator of
/// the group in the state directory, if it is that group's server.
pub(crate) fn reach(url: &str) -> NatsConfig {
    let LoginOptions { nats_nkey, nats_credentials, nats_ca, nats_cert, nats_key } = LOGIN.get().cloned().unwrap_or_default();
    // the gateway's name of the setting
    let nats_credentials = nats_credentials.or_else(|| std::env::var_os("AUTOACT_GATEWAY__BUS__CREDENTIALS").map(PathBuf::from));
    let said = [&nats_nkey, &nats_credentials, &nats_ca, &nats_cert, &nats_key].into_iter().any(Option::is_some);
    // what is between `//` and `@` is a login
    if said || url.contains('@') {
        let (nkey_file, credentials_file) = (nats_nkey, nats_credentials);
        return NatsConfig { nkey_file, credentials_file, ca: nats_ca, cert: nats_cert, key: nats_key, ..NatsConfig::at(url) };
    }
    of_group(&connector::state_dir(), url).unwrap_or_else(|| NatsConfig::at(url))
}

/// As the operator of the group in this directory, if `url` is its server's.
fn of_group(state_dir: &Path, url: &str) -> Option<NatsConfig> {
    let settings: toml::Table = std::fs::read_to_string(state_dir.join(CONFIG)).ok()?.parse().ok()?;
    let known = settings.get("common")?.get("nats")?.get("url")?.as_str()?;
    (known == url.trim_end_matches('/'))
        .then(|| operator(state_dir, url))
        .filter(|nats| nats.nkey_file.as_ref().is_some_and(|key| key.exists()))
}

/// As the operator of the group in this directory.
pub(crate) fn operator(state_dir: &Path, url: &str) -> NatsConfig {
    let tls = state_dir.join(connector::TLS_DIR);
    let (cert, key) = autoact_certificates::files(&tls, autoact_certificates::OPERATOR);
    NatsConfig {
        nkey_file: Some(autoact_bus::key_file(&state_dir.join(KEYS_DIR), autoact_bus::OPERATOR)),
        ca: Some(autoact_certificates::files(&tls, autoact_certificates::AUTHORITY).0),
        cert: Some(cert),
        key: Some(key),
        ..NatsConfig::at(url)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_operators_key_is_for_the_groups_own_server() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, other) = ("nats://127.0.0.1:7422", "nats://127.0.0.1:4222");
        assert_eq!(of_group(dir.path(), ours), None);
        std::fs::write(dir.path().join(CONFIG), format!("[common]\nnats.url = \"{ours}\"\n")).unwrap();
        assert_eq!(of_group(dir.path(), ours), None, "a group of a release without logins");
        autoact_bus::make_keys(&dir.path().join(KEYS_DIR), false).unwrap();
        assert_eq!(of_group(dir.path(), ours), Some(operator(dir.path(), ours)));
        assert_eq!(of_group(dir.path(), other), None);
    }
}
