//! The gateway as a process.

fn main() -> std::process::ExitCode {
    autoact_allocator::release_unused();
    autoact_service::main::<gateway::Gateway>()
}
