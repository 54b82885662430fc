//! SHA-256 of weight files, remembered between starts.
//!
//! A digest is remembered with the file's size, inode and times. The file is not read again while
//! all of these are the same. Processes that start together share the work: one of them hashes a
//! file, the others wait for what it finds. Nothing here can fail a start that could do without it:
//! a directory that cannot be written, a torn entry or a process that died only mean that the file
//! is hashed.

mod claim;
mod hash;
mod memory;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use autoact_base::progress::Progress;
use memmap2::Advice;

use crate::dir::FIX_WEIGHTS;
use crate::{LoadError, map};
use claim::{Claim, Claimed};
use memory::{Fingerprint, Memory};

/// Smaller files are hashed each time: that takes less than a tenth of a second.
const LEAST: u64 = 32 << 20;
/// How often a process looks at what another one hashes.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Another process that hashed nothing for this long is not waited for.
const STUCK: Duration = Duration::from_secs(10);
/// What is asked of the system at a time when it is to read ahead.
const AHEAD: usize = 64 << 20;

/// Where digests are remembered. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    memory: Option<Memory>,
    /// Files from this size on are remembered.
    least: u64,
    hashed: Arc<AtomicU64>,
}

impl Digests {
    /// Nothing is remembered.
    pub fn forgotten() -> Digests {
        Digests::default()
    }

    /// Remembered in this directory, which is created when it is needed.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Digests {
        Digests { memory: Some(Memory::new(dir.into())), least: LEAST, hashed: Arc::default() }
    }

    /// Remembered in the user's cache: `$XDG_CACHE_HOME/autoact/digests`, else
    /// `$HOME/.cache/autoact/digests`. `variable` reads the environment. Without either variable
    /// nothing is remembered.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Digests {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        cache.map_or_else(Digests::forgotten, |cache| Digests::in_dir(cache.join("autoact").join("digests")))
    }

    /// How many files were read whole and hashed so far.
    pub fn hashed(&self) -> u64 {
        self.hashed.load(Ordering::Relaxed)
    }

    /// SHA-256 digests (hex) of files, in their order. Files are hashed in parallel. `progress`
    /// counts their bytes.
    pub(crate) fn of_files(&self, files: &[PathBuf], progress: &Progress) -> Result<Vec<String>, LoadError> {
        let sizes = files.iter().map(|path| fs::metadata(path).map(|file| file.len()).map_err(unreadable(path)));
        let bytes = sizes.sum::<Result<u64, LoadError>>()?;
        let (begun, before) = (Instant::now(), self.hashed());
        progress.begin(bytes);
        let found = Round { digests: self, files, progress, stop: AtomicBool::new(false) }.run();
        progress.end();
        let hashed = self.hashed() - before;
        if hashed > 0 && bytes >= LEAST {
            tracing::info!(files = files.len(), hashed, bytes, took = ?begun.elapsed(), "weights hashed");
        }
        found
    }

    fn remembered(&self, path: &Path) -> Option<String> {
        let memory = self.memory.as_ref()?;
        let found = Fingerprint::of(&fs::metadata(path).ok()?);
        if found.bytes < self.least { None } else { memory.get(path, &found) }
    }

    /// Reads a file whole. What is found is remembered unless the file was changed just now.
    fn hash(&self, path: &Path, progress: &Progress, mut claim: Option<&mut Claim>) -> Result<String, LoadError> {
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let mut done = 0;
        let hashed = hash::file(path, |bytes| {
            done += bytes;
            progress.add(bytes);
            if let Some(claim) = claim.as_deref_mut() {
                claim.tell(done);
            }
        });
        let hashed = hashed.map_err(unreadable(path))?;
        if let (Some(memory), true) = (&self.memory, hashed.file.bytes >= self.least) {
            if hashed.settled {
                memory.put(path, &hashed.file, &hashed.digest);
            } else {
                tracing::info!(file = %path.display(), "weights that were changed just now: their digest is not remembered");
            }
        }
        Ok(hashed.digest)
    }
}

/// One call for the digests of some files.
struct Round<'a> {
    digests: &'a Digests,
    files: &'a [PathBuf],
    progress: &'a Progress,
    /// A file could not be read: the others are of no use.
    stop: AtomicBool,
}

impl Round<'_> {
    fn run(&self) -> Result<Vec<String>, LoadError> {
        let mut found: Vec<Option<String>> = self.files.iter().map(|path| self.digests.remembered(path)).collect();
        let open: VecDeque<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(open.len());
        let (open, held) = (Mutex::new(open), Mutex::new(VecDeque::new()));
        let take = |queue: &Mutex<VecDeque<usize>>| queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let work = || -> Result<Vec<(usize, String)>, LoadError> {
            let mut done = Vec::new();
            // first what nobody hashes, then what others do
            while let Some(at) = self.goes_on().then(|| take(&open)).flatten() {
                match self.free(&self.files[at])? {
                    Some(digest) => done.push((at, digest)),
                    None => held.lock().unwrap_or_else(PoisonError::into_inner).push_back(at),
                }
            }
            while let Some(at) = self.goes_on().then(|| take(&held)).flatten() {
                done.push((at, self.shared(&self.files[at])?));
            }
            Ok(done)
        };
        let work = || {
            let done = work();
            self.stop.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        let done = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            // nothing else reads these, and the first call should not wait for a disk
            for (path, _) in self.files.iter().zip(&found).filter(|(_, digest)| digest.is_some()) {
                self.read_ahead(path);
            }
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect::<Vec<_>>()
        });
        for done in done {
            for (at, digest) in done? {
                found[at] = Some(digest);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// The digest of a file that no other process hashes; `None` if one does.
    fn free(&self, path: &Path) -> Result<Option<String>, LoadError> {
        let claimed = match &self.digests.memory {
            Some(memory) if fs::metadata(path).map_err(unreadable(path))?.len() >= self.digests.least => Claim::take(&memory.lock_of(path)),
            _ => Claimed::Impossible,
        };
        match claimed {
            Claimed::Mine(claim) => self.mine(path, claim).map(Some),
            Claimed::Others(_) => Ok(None),
            Claimed::Impossible => self.digests.hash(path, self.progress, None).map(Some),
        }
    }

    fn mine(&self, path: &Path, mut claim: Claim) -> Result<String, LoadError> {
        // by one who had the claim before
        if let Some(digest) = self.digests.remembered(path) {
            self.progress.add(fs::metadata(path).map_err(unreadable(path))?.len());
            return Ok(digest);
        }
        self.digests.hash(path, self.progress, Some(&mut claim))
    }

    /// The digest of a file that another process hashes: waits as long as it goes on.
    fn shared(&self, path: &Path) -> Result<String, LoadError> {
        let Some(memory) = &self.digests.memory else { return self.digests.hash(path, self.progress, None) };
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            match Claim::take(&memory.lock_of(path)) {
                Claimed::Mine(claim) => {
                    self.progress.take_back(seen);
                    return self.mine(path, claim);
                }
                Claimed::Others(count) if count > seen => {
                    self.progress.add(count - seen);
                    (seen, moved) = (count, Instant::now());
                }
                Claimed::Others(_) if moved.elapsed() < STUCK => {}
                Claimed::Others(_) | Claimed::Impossible => {
                    self.progress.take_back(seen);
                    return self.digests.hash(path, self.progress, None);
                }
            }
            std::thread::park_timeout(LOOK_PERIOD);
        }
    }

    /// Asks the system to read a file into memory, as hashing does by itself. No error matters.
    fn read_ahead(&self, path: &Path) {
        let Ok(map) = map::map(path, FIX_WEIGHTS) else { return };
        for from in (0..map.len()).step_by(AHEAD) {
            if !self.goes_on() {
                return;
            }
            let length = AHEAD.min(map.len() - from);
            let _ = map.advise_range(Advice::WillNeed, from, length);
            self.progress.add(length as u64);
        }
    }
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> LoadError + '_ {
    move |source| LoadError::Read { path: path.to_owned(), fix: FIX_WEIGHTS, source }
}

#[cfg(test)]
mod tests;
