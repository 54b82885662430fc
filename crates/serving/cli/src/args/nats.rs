//! The words of `autoact nats`, and of logging in to NATS.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// Where keys are unless told otherwise.
const DEFAULT_DIR: &str = "nats";

/// How the commands that talk to NATS log in. Without these, as the operator of the group in the
/// state directory, if it is that group's server.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Logging in to NATS")]
pub(crate) struct LoginOptions {
    /// The key of a NATS user, as `autoact nats init` makes it.
    #[arg(long, global = true, env = "AUTOACT_NATS__NKEY_FILE", value_name = "FILE")]
    pub(crate) nats_nkey: Option<PathBuf>,
    /// A NATS credentials file.
    #[arg(long, global = true, env = "AUTOACT_NATS__CREDENTIALS_FILE", value_name = "FILE")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// Speak TLS alone, and believe servers with certificates of these authorities: a PEM file.
    #[arg(long, global = true, env = "AUTOACT_NATS__CA", value_name = "FILE")]
    pub(crate) nats_ca: Option<PathBuf>,
    /// The certificate that we show to the server: a PEM file.
    #[arg(long, global = true, env = "AUTOACT_NATS__CERT", value_name = "FILE")]
    pub(crate) nats_cert: Option<PathBuf>,
    /// The certificate's key: a PEM file.
    #[arg(long, global = true, env = "AUTOACT_NATS__KEY", value_name = "FILE")]
    pub(crate) nats_key: Option<PathBuf>,
}

/// `autoact nats`
#[derive(Debug, Subcommand)]
pub(crate) enum NatsCommand {
    /// Make a key for each NATS user that has none.
    Init {
        /// The directory of the keys.
        #[arg(long, default_value = DEFAULT_DIR)]
        dir: PathBuf,
        /// Replace those that are there, too; every service has to be given its new one.
        #[arg(long)]
        force: bool,
        /// Replace the key of this user alone. May be given several times.
        #[arg(long = "replace", value_name = "USER", conflicts_with = "force")]
        users: Vec<String>,
    },
    /// Print what nats-server has to know: the users, and what each may do.
    Config(ConfigOptions),
    /// Who may do what, as a table.
    Users {
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
}

/// What `autoact nats config` prints.
#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigOptions {
    /// The directory of the keys.
    #[arg(long, default_value = DEFAULT_DIR)]
    pub(crate) dir: PathBuf,
    /// Put the users into an account of this name, for a server that others use too.
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// The authority whose clients, and other servers, the server lets in: a PEM file, where the server finds it.
    #[arg(long, value_name = "FILE", requires_all = ["server_cert", "server_key"])]
    pub(crate) server_ca: Option<PathBuf>,
    /// The server's certificate, where the server finds it.
    #[arg(long, value_name = "FILE", requires_all = ["server_ca", "server_key"])]
    pub(crate) server_cert: Option<PathBuf>,
    /// The certificate's key, where the server finds it.
    #[arg(long, value_name = "FILE", requires_all = ["server_ca", "server_cert"])]
    pub(crate) server_key: Option<PathBuf>,
    /// A server of the cluster, each of them with this option: HOST or HOST:PORT. What is printed then holds a password.
    #[arg(long = "route", value_name = "HOST[:PORT]", value_parser = route)]
    pub(crate) routes: Vec<String>,
}

/// Where another server of the cluster listens, with its port: 6222 unless it is said.
fn route(text: &str) -> Result<String, String> {
    let text = text.trim();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port),
        _ => (text, "6222"),
    };
    let named = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let address = || host.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    match port.parse::<u16>() {
        Ok(1..) if named || address().is_some() => Ok(format!("{host}:{port}")),
        _ => Err("expected a host name or an address, and at most a port, such as `nats-0.nats`, `10.0.0.1:6222` or `[::1]`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_a_host_with_a_port() {
        for (text, expected) in [("nats-0.nats", "nats-0.nats:6222"), ("h:7000", "h:7000"), ("[::1]", "[::1]:6222"), ("[::1]:7", "[::1]:7")]
        {
            assert_eq!(route(text).as_deref(), Ok(expected));
        }
        for wrong in ["", "h:", "h:99999", "h:0", ":6222", "::1", "[h]", "nats://h", "a b", "h\"", "h:6222:1"] {
            assert!(route(wrong).is_err(), "{wrong}");
        }
    }
}
