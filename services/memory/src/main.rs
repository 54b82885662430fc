//! The memory service as a process.

fn main() -> std::process::ExitCode {
    autoact_service::main::<memory::MemoryApp>()
}
