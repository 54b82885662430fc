//! The allocator of the programs: jemalloc, on Linux. A program has it by naming this crate:
//! `use autoact_allocator as _;` in its `main.rs`. A service also calls [`release_unused`].
//!
//! Services allocate and free on many threads for months. With glibc's allocator the memory
//! service's own memory grew by about 6 KiB with every task that it stored; with jemalloc it hardly
//! grows (docs/limits.md, "At saturation").
//!
//! `_RJEM_MALLOC_CONF` sets jemalloc's options (`background_thread:false`, `stats_print:true`).

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Starts jemalloc's own threads, which return unused memory to the system ten seconds after it was
/// freed. Without them a thread returns memory only while it allocates: what was freed at the start,
/// or before a service ran out of work, stays (30 MiB of an agent whose tokenizer has 49,152 words).
///
/// Call it after what starts the program once more with one thread only, as the launcher of
/// confined programs does.
pub fn release_unused() {
    // a system that refuses the threads keeps the memory, and works
    #[cfg(target_os = "linux")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn unused_memory_is_released_in_the_background() {
        super::release_unused();
        assert_eq!(tikv_jemalloc_ctl::background_thread::read(), Ok(true));
    }
}
