//! What one confined call costs:
//!
//! ```sh
//! cargo run --release -p autoact-sandbox --example overhead
//! ```

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use autoact_sandbox::{Sandbox, Tier};

const RUNS: usize = 200;
const PROGRAM: &str = "/bin/true";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    autoact_sandbox::run_if_launcher();
    let tiers = Tier::probe()?;
    told("plain", || Command::new(PROGRAM))?;
    let work = tempfile::tempdir()?;
    for (tier, available) in [(Tier::Namespaces, tiers.namespaces), (Tier::Landlock, tiers.landlock)] {
        if let Err(reason) = available {
            println!("{tier}: skipped: {reason}");
            continue;
        }
        let sandbox = Sandbox { tier, ..Sandbox::default() };
        let none: [(&str, &str); 0] = [];
        let command = || sandbox.command(PROGRAM, [""; 0], none, work.path());
        command()?;
        told(&tier.to_string(), || command().unwrap_or_else(|_| Command::new("false")))?;
    }
    Ok(())
}

/// Starts a command and waits for its end, again and again.
fn told(name: &str, command: impl Fn() -> Command) -> Result<(), Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let status = command().stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        times.push(start.elapsed());
        if !status.success() {
            return Err(format!("{name}: {status}").into());
        }
    }
    times.sort();
    let at = |share: usize| times.get(RUNS * share / 100).map_or(0.0, Duration::as_secs_f64) * 1e3;
    println!("{name}: median {:.2} ms, 90% {:.2} ms, 99% {:.2} ms", at(50), at(90), at(99));
    Ok(())
}
