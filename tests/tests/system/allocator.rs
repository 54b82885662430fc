//! Every program that runs for long has the allocator that returns what it no longer needs.

use std::process::Command;

use autoact_testkit::files;

#[test]
#[cfg(target_os = "linux")]
fn every_program_has_jemalloc() -> anyhow::Result<()> {
    for name in ["autoact", "gateway", "agents", "memory", "meta-agent"] {
        let mut program = Command::new(files::program(name)?);
        if name == "agents" {
            program.arg("plan-agent");
        }
        let output = program.arg("--version").env("_RJEM_MALLOC_CONF", "stats_print:true").output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success() && told.contains("jemalloc statistics"), "`{name}`: {told}");
    }
    Ok(())
}
