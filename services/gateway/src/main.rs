//! The gateway as a process.

use autoact_allocator as _;

fn main() -> std::process::ExitCode {
    autoact_service::main::<gateway::Gateway>()
}
