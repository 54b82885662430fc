//! What all processes of a call take together: no limit of the kernel covers them without a
//! delegated cgroup, so the launcher measures, and ends the call when it is too much.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::fs::{Dir, Mode, OFlags, openat};

use super::process::End;
use crate::sandbox::Limits;

/// Processes looked at: more than any limit allows between two looks.
const MAX_PROCESSES: usize = 16_384;

/// What was too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Memory { bytes: u64, most: u64 },
    Processes { most: u64 },
    Work { most: u64 },
}

impl Excess {
    /// How the call ends: as the kernel would have ended it.
    pub(crate) fn end(self) -> End {
        match self {
            Excess::Memory { .. } | Excess::Processes { .. } => End::Signal(Signal::SIGKILL as i32),
            Excess::Work { .. } => End::Signal(Signal::SIGXFSZ as i32),
        }
    }
}

impl Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Memory { bytes, most } => write!(f, "the program took {bytes} bytes of memory, allowed are {most}"),
            Excess::Processes { most } => write!(f, "the program started more than {most} processes"),
            Excess::Work { most } => write!(f, "the working directory holds more than {most} bytes"),
        }
    }
}

/// Measures the descendants of a process.
pub(crate) struct Watch {
    processes: OwnedFd,
    root: u32,
    limits: Limits,
}

impl Watch {
    /// The pause between two measurements.
    pub(crate) const PERIOD: Duration = Duration::from_millis(20);

    /// `processes` is the host's `/proc`.
    pub(crate) fn new(processes: OwnedFd, root: u32, limits: Limits) -> Watch {
        Watch { processes, root, limits }
    }

    /// The descendants at this moment, as far as they stand still.
    pub(crate) fn descendants(&self) -> Vec<u32> {
        let (mut found, mut seen, mut next) = (Vec::new(), HashSet::from([self.root]), vec![self.root]);
        while let Some(process) = next.pop() {
            for child in self.children(process) {
                if found.len() < MAX_PROCESSES && seen.insert(child) {
                    found.push(child);
                    next.push(child);
                }
            }
        }
        found
    }

    /// The children of all threads of a process.
    fn children(&self, process: u32) -> Vec<u32> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(threads) = openat(&self.processes, format!("{process}/task"), flags, Mode::empty()) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&threads) else { return Vec::new() };
        let mut children = Vec::new();
        for entry in entries.flatten() {
            let Ok(thread) = entry.file_name().to_str() else { continue };
            if thread.starts_with('.') {
                continue;
            }
            if let Some(text) = self.read(&format!("{process}/task/{thread}/children")) {
                children.extend(text.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
        }
        children
    }

    /// More memory than allowed.
    pub(crate) fn memory(&mut self) -> Option<Excess> {
        let processes = self.descendants();
        let most = self.limits.memory_bytes;
        // cheap, and too much rather than too little: pages that processes share count for each
        let resident: u64 = processes.iter().map(|process| self.resident(*process)).sum();
        if resident <= most {
            return None;
        }
        let bytes: u64 = processes.iter().map(|process| self.proportional(*process).unwrap_or_else(|| self.resident(*process))).sum();
        (bytes > most).then_some(Excess::Memory { bytes, most })
    }

    /// More processes than allowed: where the kernel counts those of others too.
    pub(crate) fn too_many(&self) -> Option<Excess> {
        let most = self.limits.processes;
        (self.descendants().len() as u64 > most).then_some(Excess::Processes { most })
    }

    /// More in the working directory than allowed.
    pub(crate) fn work(&self, directory: &Path) -> Option<Excess> {
        let most = self.limits.work_bytes;
        let mut files = self.limits.work_files();
        let within = usage(directory, &mut files).is_some_and(|bytes| bytes <= most);
        (!within).then_some(Excess::Work { most })
    }

    /// Memory that is no file's, in bytes; pages shared with others count whole.
    fn resident(&self, process: u32) -> u64 {
        let Some(status) = self.read(&format!("{process}/status")) else { return 0 };
        kilobytes(&status, &["RssAnon:", "RssShmem:"]) << 10
    }

    /// The same, where shared pages count in proportion; `None` when the process hides itself.
    fn proportional(&self, process: u32) -> Option<u64> {
        let rollup = self.read(&format!("{process}/smaps_rollup"))?;
        Some(kilobytes(&rollup, &["Pss_Anon:", "Pss_Shmem:"]) << 10)
    }

    fn read(&self, path: &str) -> Option<String> {
        let file = openat(&self.processes, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

/// The sum of the given lines of a file of `/proc`.
fn kilobytes(text: &str, names: &[&str]) -> u64 {
    let value = |line: &str| line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    text.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).filter_map(value).sum()
}

/// What the files below `directory` take on the disk; `None` when there are more than `files`, or
/// some that cannot be measured. One that vanished meanwhile counts nothing.
fn usage(directory: &Path, files: &mut u64) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let mut bytes = 0_u64;
    // no recursion: the program decides how deep its directories go
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            Err(error) if gone(&error) => continue,
            Err(_) => return None,
        };
        for entry in entries {
            *files = files.checked_sub(1)?;
            let entry = entry.ok()?;
            match entry.metadata() {
                Ok(metadata) => {
                    bytes += metadata.blocks() * 512;
                    if metadata.is_dir() {
                        left.push(entry.path());
                    }
                }
                Err(error) if gone(&error) => {}
                Err(_) => return None,
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_measured_within_bounds() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("inner")).unwrap();
        std::fs::write(directory.path().join("inner/file"), vec![1; 100_000]).unwrap();
        assert!((100_000..200_000).contains(&usage(directory.path(), &mut 10).unwrap()));
        assert_eq!(usage(directory.path(), &mut 1), None);
        assert_eq!(usage(Path::new("/no/such/directory"), &mut 1), Some(0));
    }

    #[test]
    fn figures_of_proc_are_added() {
        let status = "Name:\tx\nRssAnon:\t     100 kB\nRssFile:\t     50 kB\nRssShmem:\t       7 kB\n";
        assert_eq!(kilobytes(status, &["RssAnon:", "RssShmem:"]), 107);
    }
}
