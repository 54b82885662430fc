//! The command line every service has.

use std::collections::BTreeMap;
use std::ffi::OsString;

use autoact_config::{Section, Sources};
use clap::builder::styling::Styles;
use clap::{Arg, ArgAction, Command};

use crate::Service;

/// A flag that sets one setting.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Without dashes: `model`.
    pub name: &'static str,
    /// The setting's dotted key: `model`.
    pub key: &'static str,
    /// What its value is called in `--help`: `DIR`.
    pub value: &'static str,
    /// One line.
    pub help: &'static str,
}

const SHARED: [Flag; 7] = [
    Flag { name: "listen", key: "listen", value: "HOST:PORT", help: "Address of the gRPC server; port 0 takes a free one" },
    Flag { name: "metrics-listen", key: "metrics_listen", value: "HOST:PORT", help: "Address of /metrics, /livez and /readyz" },
    Flag { name: "grace-period", key: "grace_period", value: "DURATION", help: "How long calls may take to finish after SIGTERM" },
    Flag { name: "nats-url", key: "nats.url", value: "URL", help: "The bus" },
    Flag { name: "log-level", key: "telemetry.log_level", value: "FILTER", help: "A level, or a filter such as info,autoact_agent=debug" },
    Flag { name: "log-format", key: "telemetry.log_format", value: "FORMAT", help: "text or json" },
    Flag { name: "otlp-endpoint", key: "telemetry.otlp_endpoint", value: "URL", help: "Send traces there (OTLP over gRPC)" },
];

/// What the command line asks for.
pub(crate) struct Asked {
    pub(crate) sources: Sources,
    pub(crate) print_config: bool,
}

fn command<S: Service>(shared: &[Flag], own: &[Flag]) -> Command {
    let defaults = S::Config::common();
    let after = format!(
        "Every setting can also come from a file (section [{}] or [common]) and from the environment\n\
         (`AUTOACT_` and the key in upper case, `__` between its parts). Flags win over the environment,\n\
         the environment over the file. `--print-config` shows all settings and where each comes from.\n\
         Default addresses: gRPC {}, metrics {}. Exit codes: 0 stopped, 1 failed, 64 bad configuration.",
        S::Config::NAME,
        defaults.listen,
        defaults.metrics_listen,
    );
    let mut command = Command::new(S::Config::NAME)
        .about(S::ABOUT)
        .version(env!("CARGO_PKG_VERSION"))
        .styles(Styles::plain())
        .after_help(after)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .help("Configuration file [env: AUTOACT_CONFIG]")
                .value_parser(clap::value_parser!(std::path::PathBuf)),
        )
        .arg(
            Arg::new("print-config").long("print-config").action(ArgAction::SetTrue).help("Print all settings with their sources and exit"),
        )
        .arg(Arg::new("set").long("set").value_name("KEY=VALUE").action(ArgAction::Append).help("Set any setting, e.g. --set nats.url=…"));
    for flag in own.iter().chain(shared) {
        command = command.arg(Arg::new(flag.name).long(flag.name).value_name(flag.value).help(flag.help));
    }
    command
}

/// Reads the command line. The error is clap's: help, version or a usage error.
pub(crate) fn parse<S: Service>(args: impl IntoIterator<Item = OsString>, env: BTreeMap<String, String>) -> Result<Asked, clap::Error> {
    let own = S::flags();
    let shared: Vec<Flag> = SHARED.into_iter().filter(|flag| own.iter().all(|mine| mine.name != flag.name)).collect();
    let mut command = command::<S>(&shared, &own);
    let matches = command.try_get_matches_from_mut(args)?;
    let mut flags = Vec::new();
    for flag in own.iter().chain(&shared) {
        if let Some(value) = matches.get_one::<String>(flag.name) {
            flags.push((flag.name.to_owned(), flag.key.to_owned(), value.clone()));
        }
    }
    for pair in matches.get_many::<String>("set").into_iter().flatten() {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("`--set {pair}`: expected KEY=VALUE\n");
            return Err(command.error(clap::error::ErrorKind::ValueValidation, message));
        };
        flags.push((format!("set {key}"), key.to_owned(), value.to_owned()));
    }
    let file = matches.get_one::<std::path::PathBuf>("config").cloned();
    Ok(Asked { sources: Sources { file, env, flags }, print_config: matches.get_flag("print-config") })
}
