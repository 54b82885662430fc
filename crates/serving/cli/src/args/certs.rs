//! `autoact certs`: its words.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// Where certificates are unless told otherwise.
const DEFAULT_DIR: &str = "tls";

/// `autoact certs`
#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    /// Make an authority, and a certificate for each service and for the operator.
    Init {
        #[command(flatten)]
        options: CertsOptions,
        /// Replace what is there; what trusts the old authority has to be given the new one.
        #[arg(long)]
        force: bool,
    },
    /// Make new certificates with the authority that is there. Services that run take them.
    Renew(CertsOptions),
    /// What certificates say: whom they are for, and from when to when.
    Show {
        /// A directory, or a PEM file.
        #[arg(default_value = DEFAULT_DIR)]
        path: PathBuf,
        /// A JSON array for programs.
        #[arg(long)]
        json: bool,
    },
}

/// How certificates are made.
#[derive(Debug, ClapArgs)]
pub(crate) struct CertsOptions {
    /// The directory of the authority and its certificates.
    #[arg(long, default_value = DEFAULT_DIR)]
    pub(crate) dir: PathBuf,
    /// How many days they are valid.
    #[arg(long, default_value_t = 365)]
    pub(crate) days: u32,
    /// A further DNS name or IP address of every service; `{service}` stands for the service's
    /// name. May be given several times.
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}
