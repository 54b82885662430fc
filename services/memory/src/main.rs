//! The memory service as a process.

fn main() -> std::process::ExitCode {
    autoact_allocator::release_unused();
    autoact_service::main::<memory::MemoryApp>()
}
