//! Runs one program confined, to try out what a sandbox lets through:
//!
//! ```sh
//! cargo run -p autoact-sandbox --example confine -- namespaces sh -c 'id; ls -la /'
//! ```
//!
//! Without arguments it tells which tiers are available.

use std::process::ExitCode;

use autoact_sandbox::{Sandbox, Tier};

fn main() -> ExitCode {
    autoact_sandbox::run_if_launcher();
    match confine() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(64)
        }
    }
}

fn confine() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let tier = match args.next() {
        None => {
            let tiers = Tier::probe()?;
            for (tier, available) in [(Tier::Namespaces, &tiers.namespaces), (Tier::Landlock, &tiers.landlock)] {
                println!("{tier}: {}", available.as_ref().err().map_or("available", String::as_str));
            }
            return Ok(ExitCode::SUCCESS);
        }
        Some(name) if name == "landlock" => Tier::Landlock,
        Some(name) if name == "namespaces" => Tier::Namespaces,
        Some(other) => return Err(format!("`{}` is no tier, expected `namespaces` or `landlock`", other.display()).into()),
    };
    let program = args.next().ok_or("which program?")?;
    let work = tempfile::tempdir()?;
    let path = [("PATH", "/usr/local/bin:/usr/bin:/bin")];
    let status = Sandbox { tier, ..Sandbox::default() }.command(program, args, path, work.path())?.status()?;
    println!("{status}; it left {} files", work.path().read_dir()?.count());
    Ok(ExitCode::SUCCESS)
}
