//! The machine that a figure was measured on: every benchmark prints it beside its figures.

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::instruction_set;

/// Minimum number of bytes that are read to measure the memory's speed.
const LEAST_BYTES: usize = 256 << 20;
/// Maximum number of bytes: a virtual machine can name the caches of its whole host.
const MOST_BYTES: usize = 1 << 30;
/// Size of the buffer relative to the last cache, so that hardly any of it is in the cache when a
/// pass begins anew.
const TIMES_CACHE: usize = 4;
/// Number of passes over the buffer; the best one counts.
const PASSES: usize = 4;

/// A processor, how the kernels use it, and the speed of its memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name as the system tells it.
    pub processor: String,
    /// The instruction set that the kernels use: [`instruction_set`].
    pub instruction_set: String,
    /// Number of hardware threads that this process may use.
    pub threads: usize,
    /// Bytes per second of a streaming read by all threads over a buffer larger than the last
    /// cache. 0: not measured.
    pub memory_bytes_per_second: f64,
}

impl Machine {
    /// The present machine. Reads a buffer of 256 MiB to 1 GiB several times, which takes part of
    /// a second and needs the machine for itself, like any measurement.
    pub fn measure() -> Machine {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Machine {
            processor: processor(),
            instruction_set: instruction_set().to_owned(),
            threads,
            memory_bytes_per_second: read_speed(buffer_bytes(), threads),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, instruction_set, threads, memory_bytes_per_second } = self;
        let unit = if *threads == 1 { "thread" } else { "threads" };
        write!(f, "{processor}, {instruction_set}, {threads} {unit}")?;
        if *memory_bytes_per_second > 0.0 {
            write!(f, ", memory {:.1} GB/s", memory_bytes_per_second / 1e9)?;
        }
        Ok(())
    }
}

/// The name in `/proc/cpuinfo`; the architecture where the system tells none.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named(&text).unwrap_or(std::env::consts::ARCH).to_owned()
}

fn named(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim()).filter(|name| !name.is_empty())
}

/// Size of a buffer that the last cache does not hold.
fn buffer_bytes() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").unwrap_or_default();
    let cache = bytes(text.trim()).unwrap_or(0);
    cache.saturating_mul(TIMES_CACHE).clamp(LEAST_BYTES, MOST_BYTES)
}

/// A size as the kernel writes it: `32768K`.
fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => (text.strip_suffix('M')?, 1 << 20),
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

/// Bytes per second of the best pass.
fn read_speed(bytes: usize, threads: usize) -> f64 {
    let words = bytes / size_of::<u64>();
    let each = words.div_ceil(threads.max(1)).max(1);
    // written, so that every page is there: pages that were never written are one page of zeros
    let buffer: Vec<u64> = (0..words as u64).collect();
    let mut best = f64::MAX;
    for _ in 0..PASSES {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for part in buffer.chunks(each) {
                scope.spawn(move || black_box(part.iter().fold(0u64, |sum, word| sum.wrapping_add(*word))));
            }
        });
        best = best.min(begun.elapsed().as_secs_f64());
    }
    (words * size_of::<u64>()) as f64 / best.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_are_understood() {
        assert_eq!(named("vendor_id : X\nmodel name\t: AMD EPYC 9R45\nflags : a b\n"), Some("AMD EPYC 9R45"));
        assert_eq!(named("processor : 0\nBogoMIPS : 50\n"), None);
        assert_eq!([bytes("32768K"), bytes("8M"), bytes(""), bytes("x")], [Some(32 << 20), Some(8 << 20), None, None]);
        assert!((LEAST_BYTES..=MOST_BYTES).contains(&buffer_bytes()));
    }

    #[test]
    fn a_machine_says_what_it_is() {
        let speed = read_speed(1 << 20, 2);
        assert!(speed.is_finite() && speed > 0.0, "{speed}");
        let machine = Machine { processor: "EPYC".into(), instruction_set: "avx512".into(), threads: 2, memory_bytes_per_second: 27.34e9 };
        assert_eq!(machine.to_string(), "EPYC, avx512, 2 threads, memory 27.3 GB/s");
        assert_eq!(Machine { threads: 1, memory_bytes_per_second: 0.0, ..machine }.to_string(), "EPYC, avx512, 1 thread");
    }
}
