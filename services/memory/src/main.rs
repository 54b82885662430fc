//! The memory service as a process.

use autoact_allocator as _;

fn main() -> std::process::ExitCode {
    autoact_service::main::<memory::MemoryApp>()
}
