//! What is remembered: one small file for each weight file, replaced by a rename.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Entries and locks that are kept; the oldest go.
const MOST: usize = 512;
/// Hexadecimal digits of an entry's name.
const DIGITS: usize = 32;
const ENTRY: &str = "digest";
const LOCK: &str = "lock";
const NEW: &str = "new";

/// What changes when a file does. The change time also tells of a file whose modification time was
/// set back. The device's number is left out: for many file systems it is another after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    pub(crate) bytes: u64,
    inode: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    pub(crate) fn of(file: &Metadata) -> Fingerprint {
        Fingerprint {
            bytes: file.len(),
            inode: file.ino(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// The later of its times, in seconds since 1970.
    pub(crate) fn latest(&self) -> i64 {
        self.modified.0.max(self.changed.0)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// For people; the entry's name is what counts.
    path: String,
    file: Fingerprint,
    sha256: String,
}

/// The directory of entries.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    dir: PathBuf,
}

impl Memory {
    pub(crate) fn new(dir: PathBuf) -> Memory {
        Memory { dir }
    }

    /// The digest of a file that is as it was when it was hashed.
    pub(crate) fn get(&self, path: &Path, found: &Fingerprint) -> Option<String> {
        let entry = parse(&fs::read(self.file(path, ENTRY)).ok()?)?;
        (entry.file == *found).then_some(entry.sha256)
    }

    /// Remembers a digest, if the directory lets us.
    pub(crate) fn put(&self, path: &Path, file: &Fingerprint, sha256: &str) {
        let entry = Entry { path: path.display().to_string(), file: file.clone(), sha256: sha256.to_owned() };
        if let Err(error) = self.write(path, &entry) {
            tracing::info!(directory = %self.dir.display(), %error, "digests of weights cannot be remembered here");
        }
        self.forget_the_oldest();
    }

    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        let mut text = serde_json::to_string(entry)?;
        let check = format!("{:x}", Sha256::digest(&text));
        text.push('\n');
        text.push_str(&check);
        text.push('\n');
        self.create_dir()?;
        // two writers at once, which locks prevent where there are locks, may mix their bytes: the
        // check tells
        let new = self.file(path, NEW);
        fs::write(&new, text)?;
        fs::rename(&new, self.file(path, ENTRY))
    }

    /// The file that one process locks while it hashes `path`. Its directory is there if it can be.
    pub(crate) fn lock_of(&self, path: &Path) -> PathBuf {
        let _ = self.create_dir();
        self.file(path, LOCK)
    }

    fn create_dir(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)
    }

    fn file(&self, path: &Path, kind: &str) -> PathBuf {
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = format!("{:x}", Sha256::digest(whole.as_os_str().as_bytes()));
        self.dir.join(format!("{}.{kind}", &name[..DIGITS]))
    }

    /// Entries of models that are gone stay otherwise. Only files of our own are looked at.
    fn forget_the_oldest(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let ours = entries.flatten().map(|entry| entry.path()).filter(|path| is_ours(path));
        let mut ours: Vec<(SystemTime, PathBuf)> =
            ours.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).collect();
        if ours.len() > MOST {
            ours.sort();
            for (_, path) in &ours[..ours.len() - MOST] {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && [ENTRY, LOCK, NEW].contains(&kind)
}

/// An entry that is whole: a line of JSON, and its digest.
fn parse(bytes: &[u8]) -> Option<Entry> {
    let (json, check) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once('\n')?;
    if format!("{:x}", Sha256::digest(json)) != check {
        return None;
    }
    serde_json::from_str(json).ok()
}
