//! Hashing of one file, with the disk and the processor at work at the same time.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::memory::Fingerprint;

/// What is read at a time.
const PIECE: usize = 1 << 20;
/// Pieces that are read ahead of the hash.
const PIECES: usize = 4;
/// Seconds that a file must have been left alone before it is hashed, to be remembered: two changes
/// within the resolution of a file system's clock (2 s at most) have the same time.
const SETTLED: i64 = 2;

/// A file that was read whole.
#[derive(Debug)]
pub(crate) struct Hashed {
    /// SHA-256 (hex).
    pub(crate) digest: String,
    /// The file when it was opened.
    pub(crate) file: Fingerprint,
    /// Any change since then would show in its fingerprint, and there was none.
    pub(crate) settled: bool,
}

/// Hashes a file. `read` hears of every piece's length.
pub(crate) fn file(path: &Path, mut read: impl FnMut(u64)) -> io::Result<Hashed> {
    let begun = SystemTime::now();
    let mut file = File::open(path)?;
    let before = Fingerprint::of(&file.metadata()?);
    let mut sha = Sha256::new();
    std::thread::scope(|scope| {
        let (full, pieces) = sync_channel(PIECES);
        let (free, spare) = channel();
        for _ in 0..PIECES {
            let _ = free.send(Vec::new());
        }
        let reading = &mut file;
        scope.spawn(move || read_pieces(reading, &spare, &full));
        for piece in pieces {
            let piece: Vec<u8> = piece?;
            sha.update(&piece);
            read(piece.len() as u64);
            // the reader has ended
            let _ = free.send(piece);
        }
        Ok::<(), io::Error>(())
    })?;
    // of the file that was read, and of what the path names now
    let same = Fingerprint::of(&file.metadata()?) == before && fs::metadata(path).is_ok_and(|now| Fingerprint::of(&now) == before);
    let settled = same && is_settled(&before, begun);
    Ok(Hashed { digest: format!("{:x}", sha.finalize()), file: before, settled })
}

/// Sends the file's pieces in order, and an error in the place of a piece. Ends early when nobody
/// takes them.
fn read_pieces(file: &mut File, spare: &Receiver<Vec<u8>>, full: &SyncSender<io::Result<Vec<u8>>>) {
    for mut piece in spare {
        piece.resize(PIECE, 0);
        let read = loop {
            match file.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let (last, piece) = match read {
            Ok(0) => return,
            Ok(length) => {
                piece.truncate(length);
                (false, Ok(piece))
            }
            Err(error) => (true, Err(error)),
        };
        if full.send(piece).is_err() || last {
            return;
        }
    }
}

/// As git does with its index: a file that was changed at the time it was looked at may be changed
/// once more without a sign.
fn is_settled(file: &Fingerprint, begun: SystemTime) -> bool {
    let now = begun.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    file.latest() < now - SETTLED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_as_its_bytes_are() {
        let dir = tempfile::tempdir().unwrap();
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE + 13] {
            let path = dir.path().join("weights");
            let bytes: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            let mut read = 0;
            let hashed = file(&path, |piece| read += piece).unwrap();
            assert_eq!(hashed.digest, format!("{:x}", Sha256::digest(&bytes)), "{length} bytes");
            assert_eq!((read, hashed.file.bytes), (length as u64, length as u64));
            assert!(!hashed.settled, "written just now");
        }
        assert_eq!(file(dir.path(), |_| {}).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_file_is_settled_some_seconds_after_its_last_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights");
        fs::write(&path, "w").unwrap();
        let found = Fingerprint::of(&fs::metadata(&path).unwrap());
        let at = |seconds: i64| UNIX_EPOCH + std::time::Duration::from_secs((found.latest() + seconds).cast_unsigned());
        assert_eq!([-5, 0, 2, 3].map(|seconds| is_settled(&found, at(seconds))), [false, false, false, true]);
    }
}
