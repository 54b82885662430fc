//! The allocator of the programs: jemalloc, on Linux. A program has it by naming this crate:
//! `use autoact_allocator as _;` in its `main.rs`.
//!
//! Services allocate and free on many threads for months. glibc's allocator keeps what one thread
//! has freed for that thread alone, and fragments: resident memory of the memory service grew by
//! 5 KiB with every task that it stored, and is level with jemalloc (docs/limits.md). A step also
//! takes a tenth less processor time (docs/benchmarks.md).
//!
//! jemalloc's own threads, which would return unused memory to the system in the background, stay
//! off: the launcher of confined programs has to have one thread. `_RJEM_MALLOC_CONF` sets its
//! options (`background_thread:true`, `stats_print:true`).

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
