//! The reflect-agent process.

use std::process::ExitCode;

fn main() -> ExitCode {
    autoact_service::main::<reflect_agent::ReflectAgentService>()
}
