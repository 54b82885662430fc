//! The launcher of the sandbox's tests, and attacks that need more than a shell:
//! `sandbox-hostile NAME` tries one and prints `ESCAPED` where it gets through.

mod attacks;

use std::process::ExitCode;

fn main() -> ExitCode {
    autoact_sandbox::run_if_launcher();
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    match attacks::run(&name, &args.collect::<Vec<_>>()) {
        Some(Ok(true)) => println!("ESCAPED: {name}"),
        Some(Ok(false)) => println!("contained: {name}"),
        Some(Err(error)) => println!("contained: {name}: {error}"),
        None => {
            eprintln!("error: `{name}` is no attack");
            return ExitCode::from(64);
        }
    }
    ExitCode::SUCCESS
}
