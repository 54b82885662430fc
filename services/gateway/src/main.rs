//! The gateway as a process.

fn main() -> std::process::ExitCode {
    autoact_service::main::<gateway::Gateway>()
}
