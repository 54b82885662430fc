//! Limits on resources, set for this process and all that it starts.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::error::{LaunchError, Step};
use crate::sandbox::Limits;

/// Locked memory: keys of programs such as gpg.
const LOCKED_BYTES: u64 = 1 << 20;
/// Signals and timers that wait for delivery.
const PENDING_SIGNALS: u64 = 1024;
/// A stack as shells set it.
const STACK_BYTES: u64 = 8 << 20;

/// No core dump at all. With zero the kernel still hands one to a program of the host, where
/// `core_pattern` names one; the filter of system calls sees that it stays.
const NO_CORE: u64 = 1;

/// Sets the limits. `others` are processes of the same user that the kernel counts too.
///
/// Address space is not limited: runtimes such as Go's, Java's and V8's reserve far more than they
/// use. The private data of a process is, and [`super::watch`] measures what all of them use.
pub(crate) fn set(limits: &Limits, others: u64) -> Result<(), LaunchError> {
    let own = [
        (Resource::RLIMIT_DATA, limits.memory_bytes),
        (Resource::RLIMIT_NPROC, limits.processes.saturating_add(others)),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_NOFILE, limits.open_files),
        (Resource::RLIMIT_CPU, limits.cpu_seconds),
        (Resource::RLIMIT_CORE, NO_CORE),
        (Resource::RLIMIT_MEMLOCK, LOCKED_BYTES),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_NICE, 0),
        (Resource::RLIMIT_RTPRIO, 0),
        (Resource::RLIMIT_SIGPENDING, PENDING_SIGNALS),
        (Resource::RLIMIT_STACK, STACK_BYTES),
    ];
    for (resource, bound) in own {
        // one that was lowered before cannot be raised, and must not fail
        let step = "set the limits on resources";
        let (soft, hard) = getrlimit(resource).step(step)?;
        let bound = bound.min(hard);
        if (soft, hard) != (bound, bound) {
            setrlimit(resource, bound, bound).step(step)?;
        }
    }
    Ok(())
}

/// Where the kernel runs out of memory, it ends the program and not the caller. Some containers
/// refuse that: then the kernel chooses.
pub(crate) fn first_out_of_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}
