//! The allocator of the programs: jemalloc, on Linux. A program has it by naming this crate:
//! `use autoact_allocator as _;` in its `main.rs`.
//!
//! Services allocate and free on many threads for months. With glibc's allocator the memory
//! service's own memory grew by about 6 KiB with every task that it stored; with jemalloc it hardly
//! grows (docs/limits.md, "At saturation").
//!
//! jemalloc's own threads, which would return unused memory to the system in the background, stay
//! off: the launcher of confined programs has to have one thread. `_RJEM_MALLOC_CONF` sets its
//! options (`background_thread:true`, `stats_print:true`).

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
