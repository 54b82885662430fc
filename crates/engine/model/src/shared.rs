//! The shared prefix cache: files on tmpfs, one for each KV block that the base has computed.
//!
//! Three agents read the same history. With activated adapters (or none) its keys and values are
//! the base's, so one process can compute a block for all. Copying a block takes microseconds,
//! computing it milliseconds. A file's name is a hash of everything that its numbers depend on: the
//! model, the number formats of weights and of keys and values, the instruction set, this program's
//! version, all tokens from the first to the block's last, and, beyond what all owners share, the
//! owner. So a file is correct or absent, and processes need no coordination. A block that cannot
//! be read is computed.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

use autoact_kernels::{BLOCK, instruction_set};
use sha2::{Digest, Sha256};

use crate::known::Owned;
use crate::kv::{Block, BlockShape};
use crate::{KvCache, LoadError};

/// The directory's size is checked after each fraction 1/`SWEEPS` of the limit has been written.
const SWEEPS: u64 = 8;
/// At most the fraction 1/`WAITING` of the limit may wait to be written; further blocks are not
/// shared.
const WAITING: usize = 4;
/// Maximum number of blocks that wait to be written.
const MOST_WAITING: usize = 256;

/// A directory of blocks. The engine reads them. Another thread writes them, and finishes on drop.
/// A process that must not write there only reads.
pub(crate) struct SharedPrefixes {
    dir: PathBuf,
    shape: Arc<BlockShape>,
    /// The initial value of the hash chain.
    origin: [u8; 32],
    /// `None` during drop, and if the directory can only be read.
    writes: Option<SyncSender<(String, Arc<Block>)>>,
    writer: Option<JoinHandle<()>>,
}

impl SharedPrefixes {
    /// Opens or creates `dir` for the model with this digest and weights in `format`. All processes
    /// together keep about `limit` bytes there.
    pub(crate) fn open(dir: &Path, digest: &str, format: &str, shape: &Arc<BlockShape>, limit: usize) -> Result<Self, LoadError> {
        let fix = "name a directory in memory (such as one in /dev/shm) that this user may read";
        let unusable = |source| LoadError::Read { path: dir.to_owned(), fix, source };
        fs::create_dir_all(dir).map_err(unusable)?;
        let writes = may_write(dir).map_err(unusable)?;
        if !writes {
            tracing::info!(path = %dir.display(), "shared keys and values are read here, and none are written");
        }
        Self::opened(dir, digest, format, shape, limit, writes)
    }

    fn opened(dir: &Path, digest: &str, format: &str, shape: &Arc<BlockShape>, limit: usize, writes: bool) -> Result<Self, LoadError> {
        let mut sha = Sha256::new();
        for part in [digest, format, shape.format().name(), instruction_set(), env!("CARGO_PKG_VERSION"), &shape.bytes().to_string()] {
            sha.update(part);
            sha.update([0]);
        }
        let mut shared = Self { dir: dir.to_owned(), shape: shape.clone(), origin: sha.finalize().into(), writes: None, writer: None };
        if writes {
            let (writes, waiting) = sync_channel((limit / WAITING / shape.bytes().max(1)).clamp(1, MOST_WAITING));
            let writer = Writer { dir: dir.to_owned(), limit: limit as u64 };
            let writer = std::thread::Builder::new().name("prefixes".to_owned()).spawn(move || writer.run(&waiting));
            shared.writer = Some(writer.map_err(LoadError::Thread)?);
            shared.writes = Some(writes);
        }
        Ok(shared)
    }

    /// Adds stored blocks of `tokens` to `cache`: whole blocks only, and never the last token,
    /// whose logits have to be computed.
    pub(crate) fn take(&self, owner: Option<&Owned>, tokens: &[u32], cache: &mut KvCache) {
        let whole = tokens.len().saturating_sub(1) / BLOCK;
        let known = cache.len() / BLOCK;
        let mut found = Vec::new();
        for digest in chain(self.origin, owner, &tokens[..whole * BLOCK]).skip(known) {
            let block = fs::read(self.dir.join(name(&digest))).ok().and_then(|bytes| Block::from_bytes(&self.shape, &bytes));
            let Some(block) = block else { break };
            found.push(Arc::new(block));
        }
        if !found.is_empty() {
            cache.extend_from(known, found);
        }
    }

    /// Queues the whole blocks of `tokens` from block `from` on for writing. Returns the number of
    /// blocks that are written or queued, which is smaller than all if too many wait.
    pub(crate) fn put(&self, owner: Option<&Owned>, tokens: &[u32], from: usize, cache: &KvCache) -> usize {
        let whole = tokens.len().min(cache.len()) / BLOCK;
        let Some(writes) = self.writes.as_ref().filter(|_| from < whole) else { return from };
        let blocks = chain(self.origin, owner, &tokens[..whole * BLOCK]).zip(cache.blocks()).skip(from);
        from + blocks.take_while(|(digest, block)| writes.try_send((name(digest), (*block).clone())).is_ok()).count()
    }
}

impl Drop for SharedPrefixes {
    fn drop(&mut self) {
        self.writes = None;
        // A writer that panicked has nothing more to write.
        drop(self.writer.take().map(JoinHandle::join));
    }
}

/// Whether this process may write files into `dir`: tried, because a mount can forbid it to all.
fn may_write(dir: &Path) -> io::Result<bool> {
    let file = dir.join(format!("writable.{}", std::process::id()));
    match fs::write(&file, []) {
        Err(error) if matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied) => {
            // it has to be readable at least
            fs::read_dir(dir).map(|_| false)
        }
        // a full directory has room again later
        _ => {
            drop(fs::remove_file(&file));
            Ok(true)
        }
    }
}

/// The writing thread.
struct Writer {
    dir: PathBuf,
    limit: u64,
}

impl Writer {
    fn run(&self, waiting: &Receiver<(String, Arc<Block>)>) {
        let mut unswept = 0;
        for (name, block) in waiting {
            let path = self.dir.join(&name);
            if path.exists() {
                continue;
            }
            // Written under a temporary name and renamed, so that no incomplete file is read.
            let unfinished = self.dir.join(format!("{name}.{}", std::process::id()));
            if let Err(error) = fs::write(&unfinished, block.to_bytes()).and_then(|()| fs::rename(&unfinished, &path)) {
                tracing::warn!(%error, path = %path.display(), "keys and values are not shared");
                // An incomplete file would only take space.
                drop(fs::remove_file(&unfinished));
                continue;
            }
            unswept += block.bytes() as u64;
            if unswept >= self.limit / SWEEPS {
                self.sweep();
                unswept = 0;
            }
        }
    }

    /// Deletes the oldest files until the size is below the limit. Other processes may do the same
    /// at the same time, so a missing file is no error.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let described = |entry: fs::DirEntry| {
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()))
        };
        let mut files: Vec<_> = entries.flatten().filter_map(described).collect();
        let mut bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        files.sort();
        for (_, len, path) in files {
            if bytes <= self.limit {
                break;
            }
            if fs::remove_file(path).is_ok() {
                bytes -= len;
            }
        }
    }
}

/// The hash of each block of `tokens`: of the previous block's hash and its own tokens. The first
/// block that is not all owners' has the owner in it, and so has every one after it.
fn chain<'a>(origin: [u8; 32], owner: Option<&'a Owned>, tokens: &'a [u32]) -> impl Iterator<Item = [u8; 32]> + 'a {
    tokens.chunks_exact(BLOCK).enumerate().scan(origin, move |before, (at, tokens)| {
        let mut sha = Sha256::new_with_prefix(*before);
        if let Some(owner) = owner.filter(|owner| owner.common_blocks() == at) {
            sha.update((owner.name.len() as u64).to_le_bytes());
            sha.update(&owner.name);
        }
        tokens.iter().for_each(|token| sha.update(token.to_le_bytes()));
        *before = sha.finalize().into();
        Some(*before)
    })
}

/// The file name of a block.
fn name(digest: &[u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut name, byte| {
        // Writing into a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, KvFormat, Logits, ModelDir, Scratch, Transformer};
    use autoact_kernels::Team;

    struct Setup {
        model: Transformer,
        dir: tempfile::TempDir,
    }

    impl Setup {
        fn new() -> Self {
            Self::with_kv(KvFormat::F32)
        }

        fn with_kv(kv: KvFormat) -> Self {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/fixtures/llama2");
            let model = Transformer::load(&ModelDir::open(path).unwrap(), None).unwrap();
            Self { model: model.with_kv(kv), dir: tempfile::tempdir().unwrap() }
        }

        fn open(&self, digest: &str, blocks: usize) -> SharedPrefixes {
            let shape = self.model.block_shape();
            SharedPrefixes::open(self.dir.path(), digest, "f32", shape, blocks * shape.bytes()).unwrap()
        }

        /// Computes the tokens after those in `cache` and returns the last token's logits.
        fn read(&self, tokens: &[u32], cache: &mut KvCache) -> Vec<f32> {
            let from = cache.len();
            let item = Item { tokens: &tokens[from..], cache, adapter: None, adapter_from: 0, logits: Logits::Last };
            self.model.forward(&Team::new(1).unwrap(), &mut [item], &mut Scratch::default()).to_vec()
        }

        fn files(&self) -> Vec<PathBuf> {
            fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
        }
    }

    fn tokens(n: u32, salt: u32) -> Vec<u32> {
        (0..n).map(|i| 3 + (i * i + salt) % 200).collect()
    }

    #[test]
    fn what_one_has_read_another_goes_on_from_with_the_same_bits() {
        for kv in [KvFormat::F32, KvFormat::Bf16] {
            goes_on(&Setup::with_kv(kv));
        }
    }

    fn goes_on(setup: &Setup) {
        let tokens = tokens(3 * BLOCK as u32 + 5, 0);
        let mut first = setup.model.new_cache();
        let expected = setup.read(&tokens, &mut first);
        assert_eq!(setup.open("a", 100).put(None, &tokens, 0, &first), 3);

        let mut second = setup.model.new_cache();
        setup.open("a", 100).take(None, &tokens, &mut second);
        assert_eq!(second.len(), 3 * BLOCK);
        assert_eq!(setup.read(&tokens, &mut second), expected);
        // the last token is never in the cache, nor are blocks of another model or another prefix
        let known = |digest: &str, tokens: &[u32]| {
            let mut cache = setup.model.new_cache();
            setup.open(digest, 100).take(None, tokens, &mut cache);
            cache.len()
        };
        assert_eq!(known("a", &tokens[..2 * BLOCK]), BLOCK);
        assert_eq!(known("b", &tokens), 0);
        let mut other = tokens.clone();
        other[0] += 1;
        assert_eq!(known("a", &other), 0);
    }

    #[test]
    fn blocks_of_one_number_format_are_never_read_as_the_other() {
        let mut setup = Setup::new();
        let tokens = tokens(4 * BLOCK as u32 + 1, 0);
        let formats = [KvFormat::F32, KvFormat::Bf16];
        for (at, kv) in formats.into_iter().enumerate() {
            setup.model = setup.model.with_kv(kv);
            let mut cache = setup.model.new_cache();
            setup.open("a", 100).take(None, &tokens, &mut cache);
            assert!(cache.is_empty(), "{kv} reads what the other one wrote");
            setup.read(&tokens, &mut cache);
            assert_eq!(setup.open("a", 100).put(None, &tokens, 0, &cache), 4);
            assert_eq!(setup.files().len(), 4 * (at + 1));
        }
        // nor if a name were the same: the size differs
        let [wide, narrow] = formats.map(|kv| BlockShape::new(setup.model.config(), kv));
        assert_eq!(wide.bytes(), 2 * narrow.bytes());
        assert!(Block::from_bytes(&wide, &vec![0; narrow.bytes()]).is_none());
        let sizes = setup.files().iter().map(|path| fs::metadata(path).unwrap().len()).collect::<Vec<_>>();
        assert_eq!(sizes.iter().filter(|len| **len == narrow.bytes() as u64).count(), 4);
    }

    #[test]
    fn beyond_the_common_blocks_an_owner_finds_its_own() {
        let setup = Setup::new();
        let tokens = tokens(3 * BLOCK as u32 + 5, 0);
        let mut cache = setup.model.new_cache();
        setup.read(&tokens, &mut cache);
        let owner = |name: &str, common| Owned { name: name.to_owned(), common };
        let known = |owner: Option<&Owned>| {
            let mut cache = setup.model.new_cache();
            setup.open("a", 100).take(owner, &tokens, &mut cache);
            cache.len() / BLOCK
        };
        setup.open("a", 100).put(Some(&owner("ops", BLOCK + 3)), &tokens, 0, &cache);
        let found = ["ops", "dev"].map(|name| known(Some(&owner(name, BLOCK + 3))));
        assert_eq!((found, known(None)), ([3, 1], 1));
        // nothing in common
        setup.open("a", 100).put(Some(&owner("lab", 0)), &tokens, 0, &cache);
        assert_eq!((known(Some(&owner("lab", 0))), known(Some(&owner("dev", 0)))), (3, 0));
    }

    #[test]
    fn who_may_not_write_reads() {
        let setup = Setup::new();
        let shape = setup.model.block_shape();
        let reader = SharedPrefixes::opened(setup.dir.path(), "a", "f32", shape, 100 * shape.bytes(), false).unwrap();
        let tokens = tokens(3 * BLOCK as u32 + 5, 0);
        let mut cache = setup.model.new_cache();
        setup.read(&tokens, &mut cache);
        assert_eq!((reader.put(None, &tokens, 0, &cache), setup.files().len()), (0, 0));
        setup.open("a", 100).put(None, &tokens, 0, &cache);
        let mut known = setup.model.new_cache();
        reader.take(None, &tokens, &mut known);
        assert_eq!((known.len(), setup.files().len()), (3 * BLOCK, 3));
        // whoever the test runs as: root writes everywhere, but not there
        assert!(may_write(setup.dir.path()).unwrap() && !may_write(Path::new("/sys")).unwrap());
        assert_eq!(setup.files().len(), 3);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let setup = Setup::new();
        let tokens = tokens(2 * BLOCK as u32 + 1, 0);
        let mut cache = setup.model.new_cache();
        setup.read(&tokens, &mut cache);
        setup.open("a", 100).put(None, &tokens, 0, &cache);
        for path in setup.files() {
            fs::write(path, b"half").unwrap();
        }
        let mut fresh = setup.model.new_cache();
        setup.open("a", 100).take(None, &tokens, &mut fresh);
        assert!(fresh.is_empty());
    }

    #[test]
    fn the_directory_stays_below_its_limit() {
        let setup = Setup::new();
        let shared = setup.open("a", 8);
        for salt in 0..40 {
            let tokens = tokens(BLOCK as u32 + 1, salt);
            let mut cache = setup.model.new_cache();
            setup.read(&tokens, &mut cache);
            while shared.put(None, &tokens, 0, &cache) == 0 {
                std::thread::yield_now(); // two may wait
            }
        }
        drop(shared);
        assert!(setup.files().len() <= 8, "{} files", setup.files().len());
    }
}
