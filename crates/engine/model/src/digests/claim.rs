//! One process at a time hashes a file; the others see how far it is.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often the holder tells how far it is.
const TELL_PERIOD: Duration = Duration::from_millis(250);
/// Decimal digits of that count: those of the largest.
const DIGITS: usize = 20;

/// The right to hash a file. It ends with this value, and with the process, whatever ends it.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Locked.
    file: File,
    told: Instant,
}

/// What an attempt to claim a file gave.
#[derive(Debug)]
pub(crate) enum Claimed {
    /// It is ours now.
    Mine(Claim),
    /// Another process (or thread) has it, and has hashed so many bytes.
    Others(u64),
    /// There is no such file to lock here: no directory, no permission, no locks.
    Impossible,
}

impl Claim {
    pub(crate) fn take(lock: &Path) -> Claimed {
        let Ok(file) = File::options().create(true).read(true).write(true).truncate(false).open(lock) else { return Claimed::Impossible };
        match file.try_lock() {
            Ok(()) => {
                let claim = Claim { file, told: Instant::now() };
                claim.write(0);
                Claimed::Mine(claim)
            }
            Err(TryLockError::WouldBlock) => {
                let mut digits = [0; DIGITS];
                let read = file.read_exact_at(&mut digits, 0).ok().and_then(|()| std::str::from_utf8(&digits).ok()?.parse().ok());
                // not written yet
                Claimed::Others(read.unwrap_or(0))
            }
            Err(TryLockError::Error(_)) => Claimed::Impossible,
        }
    }

    /// Tells those who wait that so many bytes are hashed.
    pub(crate) fn tell(&mut self, done: u64) {
        if self.told.elapsed() >= TELL_PERIOD {
            self.write(done);
            self.told = Instant::now();
        }
    }

    /// Who waits takes silence for a standstill, and hashes the file itself: no more than a loss of
    /// time.
    fn write(&self, done: u64) {
        let _ = self.file.write_all_at(format!("{done:0DIGITS$}").as_bytes(), 0);
    }
}
