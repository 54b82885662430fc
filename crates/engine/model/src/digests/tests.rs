use std::fs::{FileTimes, Permissions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

/// How long anything here may take; a change time is settled after three seconds.
const PATIENCE: Duration = Duration::from_secs(60);

struct Setup {
    dir: TempDir,
    weights: PathBuf,
}

impl Setup {
    fn new() -> Setup {
        let dir = tempfile::tempdir().unwrap();
        let weights = dir.path().join("model.safetensors");
        fs::write(&weights, "weights").unwrap();
        Setup { dir, weights }
    }

    fn memory(&self) -> PathBuf {
        self.dir.path().join("cache").join("digests")
    }

    /// As another process has it: nothing but the directory is shared.
    fn digests(&self) -> Digests {
        Digests { least: 1, ..Digests::in_dir(self.memory()) }
    }

    /// The digest, and how many files were hashed for it.
    fn start(&self) -> (String, u64) {
        start(&self.digests(), &self.weights)
    }

    /// Starts until the digest is remembered.
    fn settle(&self) {
        settle(&self.digests(), &self.weights);
    }

    /// The only entry.
    fn entry(&self) -> PathBuf {
        let entries = fs::read_dir(self.memory()).unwrap().map(|entry| entry.unwrap().path());
        let mut entries: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "digest")).collect();
        assert_eq!(entries.len(), 1);
        entries.remove(0)
    }
}

fn start(digests: &Digests, path: &Path) -> (String, u64) {
    let before = digests.hashed();
    let mut found = digests.of_files(&[path.to_owned()], &Progress::default()).unwrap();
    (found.remove(0), digests.hashed() - before)
}

fn settle(digests: &Digests, path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while start(digests, path).1 > 0 {
        assert!(Instant::now() < deadline, "never remembered");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn set_modified(path: &Path, like: &fs::Metadata) {
    fs::File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(like.modified().unwrap())).unwrap();
}

#[test]
fn a_digest_is_remembered_from_the_time_its_file_is_settled() {
    let setup = Setup::new();
    // written just now: it could change again without a sign
    assert_eq!([setup.start(), setup.start()], [(sha256("weights"), 1), (sha256("weights"), 1)]);
    setup.settle();
    assert_eq!([setup.start(), setup.start()], [(sha256("weights"), 0), (sha256("weights"), 0)]);
}

#[test]
fn a_changed_file_is_hashed_anew_whatever_its_size_and_time_say() {
    let setup = Setup::new();
    setup.settle();
    let before = fs::metadata(&setup.weights).unwrap();
    // the same inode, size and modification time
    fs::write(&setup.weights, "WEIGHTS").unwrap();
    set_modified(&setup.weights, &before);
    let after = fs::metadata(&setup.weights).unwrap();
    assert_eq!((after.ino(), after.len(), after.modified().unwrap()), (before.ino(), before.len(), before.modified().unwrap()));
    assert_eq!(setup.start(), (sha256("WEIGHTS"), 1));
    fs::write(&setup.weights, "other weights").unwrap();
    assert_eq!(setup.start(), (sha256("other weights"), 1));
}

#[test]
fn another_inode_is_another_file() {
    let setup = Setup::new();
    setup.settle();
    let before = fs::metadata(&setup.weights).unwrap();
    let other = setup.dir.path().join("other");
    fs::write(&other, "WEIGHTS").unwrap();
    set_modified(&other, &before);
    fs::rename(&other, &setup.weights).unwrap();
    let after = fs::metadata(&setup.weights).unwrap();
    assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
    assert_ne!(after.ino(), before.ino());
    assert_eq!(setup.start(), (sha256("WEIGHTS"), 1));
    // and each field alone: only a test can change one of them
    let memory = Memory::new(setup.memory());
    let found = Fingerprint::of(&after);
    memory.put(&setup.weights, &found, "known");
    assert_eq!(memory.get(&setup.weights, &found).as_deref(), Some("known"));
    let json = serde_json::to_value(&found).unwrap();
    for key in ["bytes", "inode", "modified", "changed"] {
        let mut other = json.clone();
        other[key] = if json[key].is_array() { serde_json::json!([json[key][0], json[key][1].as_i64().unwrap() ^ 1]) } else { 7777.into() };
        let other: Fingerprint = serde_json::from_value(other).unwrap();
        assert_eq!(memory.get(&setup.weights, &other), None, "{key}");
    }
}

#[test]
fn a_damaged_entry_is_no_entry_and_is_written_anew() {
    let setup = Setup::new();
    setup.settle();
    let whole = fs::read(setup.entry()).unwrap();
    let mut wrong = whole.clone();
    let at = whole.windows(8).position(|bytes| bytes == b"\"sha256\"").unwrap() + 12;
    wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
    let torn = [&b""[..], b"{}", b"\xff\xfe\n\n", &whole[..whole.len() / 2], &whole[..whole.len() - 1], &wrong];
    for damaged in torn {
        fs::write(setup.entry(), damaged).unwrap();
        assert_eq!(setup.start(), (sha256("weights"), 1));
        assert_eq!(fs::read(setup.entry()).unwrap(), whole);
        assert_eq!(setup.start(), (sha256("weights"), 0));
    }
}

#[test]
fn a_directory_that_is_missing_or_cannot_be_written_is_no_error() {
    let setup = Setup::new();
    setup.settle();
    // a file in its place
    let file = setup.dir.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below"), PathBuf::from("/proc/no/such")] {
        let digests = Digests { least: 1, ..Digests::in_dir(place) };
        assert_eq!([start(&digests, &setup.weights), start(&digests, &setup.weights)], [(sha256("weights"), 1), (sha256("weights"), 1)]);
    }
    // read-only: what is there is used, nothing is added
    let other = setup.dir.path().join("other");
    fs::write(&other, "other").unwrap();
    fs::set_permissions(setup.memory(), Permissions::from_mode(0o500)).unwrap();
    let entries = || fs::read_dir(setup.memory()).unwrap().count();
    let before = entries();
    assert_eq!(setup.start(), (sha256("weights"), 0));
    assert_eq!(start(&setup.digests(), &other), (sha256("other"), 1));
    let may_write = fs::write(setup.memory().join("may"), "").is_ok();
    assert!(may_write || entries() == before);
    fs::set_permissions(setup.memory(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(start(&Digests::forgotten(), &setup.weights), (sha256("weights"), 1));
}

#[test]
fn the_users_cache_is_where_the_variables_say() {
    let dir = |cache: Option<&str>, home: Option<&str>| {
        let value = |name: &str| if name == "HOME" { home } else { cache.filter(|_| name == "XDG_CACHE_HOME") };
        Digests::of_user(|name| value(name).map(OsString::from)).memory.map(|memory| memory.lock_of(Path::new("/")))
    };
    let begins = |found: Option<PathBuf>, with: &str| found.is_some_and(|path| path.starts_with(with));
    let place = tempfile::tempdir().unwrap();
    let place = place.path().to_str().unwrap();
    assert!(begins(dir(Some(place), Some("/no")), &format!("{place}/autoact/digests")));
    assert!(begins(dir(None, Some(place)), &format!("{place}/.cache/autoact/digests")));
    // a relative path is to be passed over, says the XDG specification
    assert!(begins(dir(Some("here"), Some(place)), &format!("{place}/.cache/autoact/digests")));
    assert!(dir(None, None).is_none());
}

#[test]
fn small_files_are_hashed_each_time_and_leave_nothing() {
    let setup = Setup::new();
    setup.settle();
    let digests = Digests::in_dir(setup.dir.path().join("untouched"));
    assert_eq!([start(&digests, &setup.weights).1, start(&digests, &setup.weights).1], [1, 1]);
    assert!(!setup.dir.path().join("untouched").exists());
}

#[test]
fn shards_keep_their_order_and_a_missing_one_is_named() {
    let setup = Setup::new();
    let paths: Vec<PathBuf> = (0..7).map(|at| setup.dir.path().join(format!("{at}.safetensors"))).collect();
    for (at, path) in paths.iter().enumerate() {
        fs::write(path, vec![at as u8; 100_000 * (8 - at)]).unwrap();
    }
    let expected: Vec<String> = (0..7).map(|at| sha256(vec![at as u8; 100_000 * (8 - at)])).collect();
    settle(&setup.digests(), paths.last().unwrap());
    fs::write(&paths[3], vec![3; 500_000]).unwrap();
    let digests = setup.digests();
    assert_eq!(digests.of_files(&paths, &Progress::default()).unwrap(), expected);
    assert_eq!(digests.hashed(), 6, "one was remembered");
    fs::remove_file(&paths[5]).unwrap();
    let error = digests.of_files(&paths, &Progress::default()).unwrap_err();
    assert!(matches!(&error, LoadError::Read { path, .. } if *path == paths[5]), "{error}");
}

/// Several processes start at once: each file is read whole by one of them.
#[test]
fn those_that_start_together_share_the_work() {
    let setup = Setup::new();
    let paths: Vec<PathBuf> = (0..4).map(|at| setup.dir.path().join(format!("{at}.safetensors"))).collect();
    for (at, path) in paths.iter().enumerate() {
        fs::write(path, vec![at as u8; 3_000_000]).unwrap();
    }
    settle(&setup.digests(), &paths[3]);
    fs::remove_dir_all(setup.memory()).unwrap();
    let starts: Vec<Digests> = (0..6).map(|_| setup.digests()).collect();
    let found: Vec<Vec<String>> = std::thread::scope(|scope| {
        let starts: Vec<_> = starts.iter().map(|digests| scope.spawn(|| digests.of_files(&paths, &Progress::default()).unwrap())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let expected: Vec<String> = (0..4).map(|at| sha256(vec![at as u8; 3_000_000])).collect();
    assert!(found.iter().all(|found| *found == expected));
    assert_eq!(starts.iter().map(Digests::hashed).sum::<u64>(), 4);
}

#[test]
fn one_that_waits_sees_how_far_the_other_is() {
    let setup = Setup::new();
    setup.settle();
    let bytes = fs::metadata(&setup.weights).unwrap().len();
    fs::remove_file(setup.entry()).unwrap();
    let memory = Memory::new(setup.memory());
    let Claimed::Mine(mut claim) = Claim::take(&memory.lock_of(&setup.weights)) else { panic!("nobody else has it") };
    let (digests, progress) = (setup.digests(), Progress::default());
    let deadline = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| digests.of_files(std::slice::from_ref(&setup.weights), &progress).unwrap());
        while progress.look().is_none_or(|look| look.done != 3) {
            assert!(Instant::now() < deadline, "never seen");
            claim.tell(3);
            std::thread::park_timeout(Duration::from_millis(20));
        }
        memory.put(&setup.weights, &Fingerprint::of(&fs::metadata(&setup.weights).unwrap()), "by the other");
        assert_eq!(progress.look().unwrap().total, bytes);
        drop(claim);
        assert_eq!(waits.join().unwrap(), ["by the other"]);
    });
    assert_eq!(digests.hashed(), 0);
}

#[test]
fn one_that_does_not_go_on_is_not_waited_for() {
    let setup = Setup::new();
    let memory = Memory::new(setup.memory());
    let Claimed::Mine(claim) = Claim::take(&memory.lock_of(&setup.weights)) else { panic!("nobody else has it") };
    let begun = Instant::now();
    assert_eq!(setup.start(), (sha256("weights"), 1));
    assert!(begun.elapsed() >= STUCK);
    drop(claim);
}

#[test]
fn a_claim_ends_with_its_process() {
    let setup = Setup::new();
    let lock = Memory::new(setup.memory()).lock_of(&setup.weights);
    let script = r#"exec 9>"$1"; flock -n 9 && echo held && read _"#;
    let mut holder = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(&lock)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.take().unwrap()), &mut said).unwrap();
    if said.is_empty() {
        // no program `flock` here
        holder.kill().unwrap();
        holder.wait().unwrap();
        return;
    }
    assert!(matches!(Claim::take(&lock), Claimed::Others(0)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(matches!(Claim::take(&lock), Claimed::Mine(_)));
}

#[test]
fn only_so_many_entries_stay_and_what_is_not_ours_is_left_alone() {
    let setup = Setup::new();
    fs::create_dir_all(setup.memory()).unwrap();
    let foreign = ["notes.digest", "0123456789abcdef0123456789abcdef.txt"].map(|name| setup.memory().join(name));
    for path in &foreign {
        fs::write(path, "").unwrap();
    }
    let count = || fs::read_dir(setup.memory()).unwrap().count();
    for at in 0..600 {
        fs::write(setup.memory().join(format!("{at:032x}.digest")), "").unwrap();
    }
    setup.settle();
    assert!(count() <= 512 + foreign.len(), "{}", count());
    assert_eq!(setup.start().1, 0);
    assert!(foreign.iter().all(|path| path.exists()));
}

/// As large as real weights are, of the size from which they are remembered.
#[test]
fn some_hundred_megabytes_are_read_once() {
    const BYTES: u64 = 300 << 20;
    let setup = Setup::new();
    let mut file = fs::File::create(&setup.weights).unwrap();
    for at in 0..30 {
        file.seek(SeekFrom::Start(at * 10_000_000)).unwrap();
        file.write_all(format!("piece {at}").as_bytes()).unwrap();
    }
    file.set_len(BYTES).unwrap();
    drop(file);
    let at_first = sha256(fs::read(&setup.weights).unwrap());
    settle(&Digests::in_dir(setup.memory()), &setup.weights);

    let (second, progress) = (Digests::in_dir(setup.memory()), Progress::default());
    assert_eq!(second.of_files(std::slice::from_ref(&setup.weights), &progress).unwrap(), std::slice::from_ref(&at_first));
    assert_eq!((second.hashed(), progress.look()), (0, None));
    let mut file = fs::File::options().write(true).open(&setup.weights).unwrap();
    file.seek(SeekFrom::Start(BYTES / 2)).unwrap();
    file.write_all(b"!").unwrap();
    drop(file);
    let third = Digests::in_dir(setup.memory());
    let (changed, hashed) = start(&third, &setup.weights);
    assert_eq!((changed == at_first, hashed), (false, 1));
    assert_eq!(changed, sha256(fs::read(&setup.weights).unwrap()));
}
