//! The program as a process.
#![allow(dead_code)] // each test binary uses its part

use std::process::{Command, Output};

/// One of the three, without this process's environment.
pub(crate) fn agent(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agents"));
    command.arg(name).env_clear();
    command
}

/// `plan-agent` on free ports.
pub(crate) fn plan_agent() -> Command {
    let mut command = agent("plan-agent");
    command.args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    command
}

/// How it ended, and what it said of it.
pub(crate) fn code_and_error(command: &mut Command) -> (i32, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert!(!error.contains("panicked"), "{error}");
    (status.code().unwrap(), error)
}
