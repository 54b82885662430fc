//! What an agent remembers of its model's weights from one start to the next.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autoact_agent::testing::tiny_model;
use autoact_agent::{Agent, EngineConfig};
use autoact_trajectory::Role;
use serde_json::{Value, json};

/// Weights of this size are remembered.
const PADDING: u64 = 200 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds a tensor that no layer uses to the model in `dir`.
fn pad(dir: &Path) -> PathBuf {
    let path = dir.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let tensors = &bytes[end..];
    let from = tensors.len() as u64;
    header["padding"] = json!({ "dtype": "U8", "shape": [PADDING], "data_offsets": [from, from + PADDING] });
    let mut header = serde_json::to_vec(&header).unwrap();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut padded = (header.len() as u64).to_le_bytes().to_vec();
    padded.extend_from_slice(&header);
    padded.extend_from_slice(tensors);
    fs::write(&path, &padded).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(padded.len() as u64 + PADDING).unwrap();
    path
}

async fn start(model: &Path, digests: &Path) -> Agent {
    let config = EngineConfig { threads: 1, digests: digests.to_owned(), ..EngineConfig::default() };
    autoact_agent::load(Role::Plan, model, Path::new(""), &config, false).await.unwrap()
}

/// The inode of the only entry, which is another one whenever the entry is written.
fn entry(digests: &Path) -> Option<u64> {
    let entries = fs::read_dir(digests).ok()?.map(Result::unwrap);
    let mut entries = entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "digest"));
    let inode = entries.next()?.metadata().unwrap().ino();
    assert!(entries.next().is_none());
    Some(inode)
}

/// Starts until the digest of a file that has just been written is remembered, in an entry other
/// than `before`.
async fn settle(model: &Path, digests: &Path, before: Option<u64>) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        start(model, digests).await;
        match entry(digests) {
            Some(entry) if before != Some(entry) => return entry,
            _ => assert!(Instant::now() < deadline, "never remembered"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_hashes_its_weights_at_its_first_start() {
    let model = tiny_model("llama3").unwrap();
    let weights = pad(model.path());
    let place = tempfile::tempdir().unwrap();
    let digests = place.path().join("digests");
    let first = settle(model.path(), &digests, None).await;
    start(model.path(), &digests).await;
    assert_eq!(entry(&digests), Some(first), "not written again");
    // a byte of the padding
    let length = fs::metadata(&weights).unwrap().len();
    fs::File::options().write(true).open(&weights).unwrap().write_all_at(b"!", length - 7).unwrap();
    let second = settle(model.path(), &digests, Some(first)).await;
    start(model.path(), &digests).await;
    assert_eq!(entry(&digests), Some(second));
    // without a place nothing fails
    start(model.path(), Path::new("/proc/no/such")).await;
}
