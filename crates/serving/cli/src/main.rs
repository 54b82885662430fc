//! `autoact`: start the group, ask it, watch it, measure it, train its bundled model.

// they panic when nobody reads any more: `out` is the only writer
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod adapters;
mod args;
mod artifacts;
mod ask;
mod audit;
mod backup;
mod bus;
mod certs;
mod citations;
mod client;
mod connector;
mod context;
mod control;
mod corpus;
mod eval;
mod exit;
mod identity;
mod json;
mod learn;
mod load;
mod memory;
mod migrate;
mod model;
mod names;
mod nats;
mod out;
mod person;
mod purge;
mod recall;
mod replace;
mod supervise;
mod tasks;
mod text;
mod token;
mod tool_choice;
mod tools;
mod up;
mod view;
mod words;

use std::process::ExitCode;

use autoact_allocator as _;
use autoact_base::error::chain;
use autoact_datasets::UnknownFormat;
use autoact_load::LoadError;
use autoact_pretrain::StemError;
use autoact_registry::RegistryError;
use autoact_tls::TlsError;
use clap::Parser as _;

use crate::args::{Args, Command};
use crate::client::{BadAddress, Failure};
use crate::exit::BadArguments;
use crate::identity::BadToken;
use crate::out::OutputError;

fn main() -> ExitCode {
    // `tools check` confines programs by starting itself once more
    autoact_sandbox::run_if_launcher();
    autoact_documents::run_if_reader();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // clap prints help and versions through the same door
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::error(format_args!("cannot start: {error}"));
            return ExitCode::from(exit::FAILED);
        }
    };
    let code = match runtime.block_on(run(args)) {
        Ok(code) => code,
        Err(error) => {
            let code = exit_code(&error);
            if code != exit::CLOSED {
                out::error(format_args!("{}", chain(error.as_ref())));
            }
            code
        }
    };
    ExitCode::from(code)
}

async fn run(args: Args) -> anyhow::Result<u8> {
    identity::set(args.token_file, args.for_tenant);
    let gateway = args.gateway;
    connector::set_up(args.tls);
    bus::set_up(args.login);
    match args.command {
        Command::Up(options) => up::run(options).await,
        Command::Down(options) => up::down(&options).await,
        Command::Ask(options) => ask::run(&gateway, options).await,
        Command::Watch(options) => ask::watch(&gateway, options).await,
        Command::Tasks(command) => tasks::run(&gateway, command).await,
        Command::Tools(options) => tools::run(&gateway, options).await,
        Command::Memory(command) => memory::run(command).await,
        Command::Eval(options) => eval::run(&gateway, options).await,
        Command::Learn(args) => learn::run(args).await,
        Command::Load(options) => load::run(&gateway, options).await,
        Command::Adapters(options) => adapters::run(options).await,
        Command::Model(command) => model::run(command).await,
        Command::Corpus(command) => corpus::run(command).await,
        Command::Migrate(options) => migrate::run(options).await,
        Command::Audit(options) => audit::run(options).await,
        Command::Backup(options) => backup::run(options).await,
        Command::Restore(options) => backup::restore(options).await,
        Command::Purge(options) => purge::run(options).await,
        Command::Certs(command) => certs::run(command),
        Command::Nats(command) => nats::run(command),
        Command::Token(command) => token::run(command),
    }
}

/// The exit code of an error: what the service's answer, the output or the configuration says.
fn exit_code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(output) = cause.downcast_ref::<OutputError>() {
            return if output.is_closed() { exit::CLOSED } else { exit::FAILED };
        }
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.exit_code();
        }
        if let Some(RegistryError::UnknownVersion { .. } | RegistryError::NotADirectory { .. }) = cause.downcast_ref() {
            return exit::USAGE;
        }
        if let Some(LoadError::Rate(_) | LoadError::Long { .. } | LoadError::NoQuestions { .. } | LoadError::Question { .. }) =
            cause.downcast_ref()
        {
            return exit::USAGE;
        }
        if cause.is::<BadArguments>() || cause.is::<BadAddress>() || cause.is::<BadToken>() {
            return exit::USAGE;
        }
        // what `--from` names is no beginning for what the recipe trains
        if let Some(StemError::From { .. }) = cause.downcast_ref() {
            return exit::USAGE;
        }
        if cause.is::<UnknownFormat>() || cause.is::<TlsError>() {
            return exit::USAGE;
        }
    }
    exit::FAILED
}
