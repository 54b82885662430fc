//! The meta-agent as a process: a job that learns a task and ends.

use std::process::ExitCode;

use autoact_allocator as _;
use clap::Parser as _;

fn main() -> ExitCode {
    match meta_agent::Args::try_parse() {
        Ok(args) => ExitCode::from(meta_agent::run(&args)),
        Err(error) => {
            // clap prints help and versions through the same door
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { meta_agent::USAGE } else { 0 })
        }
    }
}
