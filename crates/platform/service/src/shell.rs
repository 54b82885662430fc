//! What every service's `main` does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use autoact_config::{Loaded, Section};

use crate::app::App;
use crate::error::one_line;
use crate::signals::Signals;
use crate::{Service, cli};

/// The exit code for a configuration or a command line that is wrong (`EX_USAGE`).
pub const EXIT_BAD_CONFIG: u8 = 64;
/// The exit code for a service that did not start, or failed while it ran.
pub const EXIT_FAILED: u8 = 1;
/// How long threads in blocking work may hold the process at its end.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Runs a service as a process: reads flags, environment and file, starts telemetry, serves until
/// SIGTERM or SIGINT. What is wrong is one clear message on stderr and an exit code.
pub fn main<S: Service>() -> ExitCode {
    main_with::<S>(std::env::args_os())
}

/// The same with this command line, the program's name first: for a program that is several
/// services.
pub fn main_with<S: Service>(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let env: BTreeMap<String, String> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    let asked = match cli::parse::<S>(args, env) {
        Ok(asked) => asked,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { EXIT_BAD_CONFIG.into() } else { ExitCode::SUCCESS };
        }
    };
    let config = match checked::<S>(&asked) {
        Ok(config) => config,
        Err(error) => return fail(EXIT_BAD_CONFIG, &error),
    };
    if asked.print_config {
        // an error means that the reader has seen enough (`| head`)
        let _ = std::io::stdout().write_all(config.print().as_bytes());
        return ExitCode::SUCCESS;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(EXIT_FAILED, &format!("cannot start the runtime: {error}")),
    };
    let code = runtime.block_on(run::<S>(config));
    runtime.shutdown_timeout(LAST_WAIT);
    code
}

fn checked<S: Service>(asked: &cli::Asked) -> Result<Loaded<S::Config>, autoact_config::ConfigErrors> {
    let config = autoact_config::load::<S::Config>(&asked.sources)?;
    autoact_telemetry::check_filter(&config.common.telemetry.log_level)
        .map_err(|error| config.mistake("telemetry.log_level", error.to_string()))?;
    Ok(config)
}

async fn run<S: Service>(config: Loaded<S::Config>) -> ExitCode {
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(EXIT_FAILED, &format!("cannot listen for signals: {error}")),
    };
    let telemetry = match autoact_telemetry::init(&config.common.telemetry, S::Config::NAME, env!("CARGO_PKG_VERSION")) {
        Ok(guard) => guard,
        Err(error) => return fail(EXIT_FAILED, &one_line(&error)),
    };
    crate::descriptors::raise();
    let mut shutdown = Box::pin(signals.shutdown());
    let app = tokio::select! {
        app = App::build::<S>(config) => app,
        () = &mut shutdown => {
            telemetry.shutdown().await;
            return ExitCode::SUCCESS;
        }
    };
    let outcome = match app {
        Ok(app) => app.run(shutdown).await.map_err(|error| one_line(&error)),
        Err(error) => Err(one_line(&error)),
    };
    // traces last: the calls that have just ended are in them
    telemetry.shutdown().await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_FAILED, &error),
    }
}

fn fail(code: u8, error: &dyn Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "error: {error}");
    code.into()
}
