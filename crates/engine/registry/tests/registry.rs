//! The registry on a real disk, with a tiny adapter of random weights.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use autoact_registry::{CALIBRATION_FILE, DataRecord, NewVersion, ROLES, Registry, RegistryError, VersionId, sha256_file};
use tempfile::TempDir;

/// The base that the fixture says it was made for.
const BASE: &str = "12db0804b952508f00f81957f0f32635190dd02d8a8fdca9396ff96f9981a9ce";
const OTHER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/fixtures/llama3/adapter")
}

/// Three adapters that differ from those of another `alpha`.
fn adapters(dir: &Path, alpha: u32) -> PathBuf {
    let root = dir.join(format!("alpha-{alpha}"));
    for role in ROLES {
        let to = root.join(role);
        fs::create_dir_all(&to).unwrap();
        fs::copy(fixture().join("adapter_model.safetensors"), to.join("adapter_model.safetensors")).unwrap();
        let text = fs::read_to_string(fixture().join("adapter_config.json")).unwrap();
        let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
        config["lora_alpha"] = alpha.into();
        fs::write(to.join("adapter_config.json"), config.to_string()).unwrap();
    }
    root
}

fn new(dir: &Path, alpha: u32) -> NewVersion {
    NewVersion {
        task: "The Atlas".into(),
        base: "stem".into(),
        base_sha256: BASE.into(),
        adapters: adapters(dir, alpha),
        metrics: serde_json::json!({ "exact_match": 0.5 }),
        ..NewVersion::default()
    }
}

fn empty() -> (TempDir, Registry) {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path().join("adapters")).unwrap();
    (dir, registry)
}

#[test]
fn a_published_version_is_listed_with_what_it_is_made_of() {
    let (dir, registry) = empty();
    assert!(registry.list().unwrap().versions.is_empty());
    assert_eq!(registry.current().unwrap(), None);
    let data = dir.path().join("plan.jsonl");
    fs::write(&data, "{}\n").unwrap();
    let parent: VersionId = "atlas-0".parse().unwrap();
    let mut asked = new(dir.path(), 8);
    asked.parent = Some(parent.clone());
    asked.data.insert("plan".into(), DataRecord { sha256: sha256_file(&data).unwrap(), count: 1 });
    let version = registry.publish(asked).unwrap();
    assert!(version.id().as_str().starts_with("the-atlas-"), "{}", version.id());
    assert_eq!(version.adapter_name("plan"), format!("plan@{}", version.id()));
    let listing = registry.list().unwrap();
    assert!(listing.broken.is_empty());
    assert_eq!(listing.versions, std::slice::from_ref(&version));
    let manifest = &listing.versions[0].manifest;
    assert_eq!(manifest.parent, Some(parent));
    assert_eq!(manifest.data["plan"].count, 1);
    assert_eq!(manifest.metrics["exact_match"], 0.5);
    assert_eq!(manifest.created.len(), "2026-01-01T00:00:00Z".len(), "{}", manifest.created);
    // the digest is the one every reply names
    let adapter = autoact_lora::Adapter::load(version.adapter("tool")).unwrap();
    assert_eq!(manifest.adapters["tool"].sha256, adapter.digest);
    registry.verify(&version, BASE).unwrap();
    // published, but not in service
    assert_eq!(registry.current().unwrap(), None);
}

#[test]
fn publishing_the_same_again_is_the_same_version() {
    let (dir, registry) = empty();
    let first = registry.publish(new(dir.path(), 8)).unwrap();
    let again = registry.publish(new(dir.path(), 8)).unwrap();
    assert_eq!(first, again);
    assert_ne!(registry.publish(new(dir.path(), 16)).unwrap().id(), first.id());
    assert_eq!(registry.list().unwrap().versions.len(), 2);
}

#[test]
fn promote_and_rollback_go_through_the_versions() {
    let (dir, registry) = empty();
    assert!(matches!(registry.rollback(), Err(RegistryError::NothingToRollBack { .. })));
    let ids: Vec<VersionId> = [8, 16, 32].map(|alpha| registry.publish(new(dir.path(), alpha)).unwrap().id().clone()).into();
    for id in &ids {
        assert_eq!(registry.promote(id).unwrap().current(), Some(id));
    }
    let pointer = registry.promote(&ids[2]).unwrap();
    assert_eq!((pointer.revision, pointer.promotions.len()), (3, 3), "promoting what is in service changes nothing");
    assert_eq!(registry.rollback().unwrap().current(), Some(&ids[1]));
    assert_eq!(registry.current().unwrap().unwrap().id(), &ids[1]);
    assert_eq!(registry.rollback().unwrap().current(), Some(&ids[0]));
    assert_eq!(registry.rollback().unwrap().current(), None);
    assert!(matches!(registry.rollback(), Err(RegistryError::NothingToRollBack { .. })));
    assert_eq!(registry.pointer().unwrap().revision, 6);
}

#[test]
fn an_unknown_version_is_named_with_those_there_are() {
    let (dir, registry) = empty();
    let version = registry.publish(new(dir.path(), 8)).unwrap();
    let error = registry.promote(&"atlas-1".parse().unwrap()).unwrap_err();
    assert!(matches!(error, RegistryError::UnknownVersion { .. }));
    assert!(error.to_string().contains(version.id().as_str()), "{error}");
}

#[test]
fn another_base_and_changed_bytes_are_refused() {
    let (dir, registry) = empty();
    let version = registry.publish(new(dir.path(), 8)).unwrap();
    let error = registry.verify(&version, OTHER).unwrap_err();
    assert!(matches!(&error, RegistryError::BaseMismatch { found, .. } if found == OTHER), "{error}");
    let before = registry.publish(new(dir.path(), 16)).unwrap();
    registry.promote(before.id()).unwrap();
    registry.promote(version.id()).unwrap();
    // a valid adapter, but another one
    let config = before.adapter("reflect").join("adapter_config.json");
    let text = fs::read_to_string(&config).unwrap().replace("16", "17");
    fs::write(&config, text).unwrap();
    let error = registry.verify(&before, BASE).unwrap_err();
    assert!(matches!(&error, RegistryError::Changed { role, .. } if role == "reflect"), "{error}");
    assert!(matches!(registry.rollback(), Err(RegistryError::Changed { .. })));
    assert_eq!(registry.current().unwrap().unwrap().id(), version.id(), "a refused rollback changes nothing");
    // bytes that are no adapter
    fs::write(version.adapter("plan").join("adapter_model.safetensors"), b"cut").unwrap();
    assert!(matches!(registry.verify(&version, BASE), Err(RegistryError::Adapter { .. })));
    assert!(matches!(registry.promote(version.id()), Err(RegistryError::Adapter { .. })));
}

#[test]
fn a_calibration_belongs_to_its_version() {
    let (dir, registry) = empty();
    let plain = registry.publish(new(dir.path(), 8)).unwrap();
    assert_eq!(plain.record("reflect").unwrap().calibration_sha256, None);
    let asked = new(dir.path(), 8);
    fs::write(asked.adapters.join("reflect").join(CALIBRATION_FILE), "{}").unwrap();
    let calibrated = registry.publish(asked).unwrap();
    assert_ne!(calibrated.id(), plain.id(), "it approves other answers");
    let copy = calibrated.adapter("reflect").join(CALIBRATION_FILE);
    assert_eq!(fs::read(&copy).unwrap(), b"{}");
    registry.verify(&calibrated, BASE).unwrap();
    for change in [Some("{ }"), None] {
        match change {
            Some(text) => fs::write(&copy, text).unwrap(),
            None => fs::remove_file(&copy).unwrap(),
        }
        let error = registry.verify(&calibrated, BASE).unwrap_err();
        assert!(matches!(&error, RegistryError::Changed { role, .. } if role == "reflect"), "{error}");
    }
    // one that was put beside a published adapter later
    fs::write(plain.adapter("reflect").join(CALIBRATION_FILE), "{}").unwrap();
    assert!(matches!(registry.promote(plain.id()), Err(RegistryError::Changed { .. })));
}

#[test]
fn what_cannot_be_published_leaves_no_trace() {
    let (dir, registry) = empty();
    let mut asked = new(dir.path(), 8);
    asked.base_sha256 = "stem".into();
    assert!(matches!(registry.publish(asked), Err(RegistryError::InvalidBase { .. })));
    let asked = NewVersion { base_sha256: OTHER.into(), ..new(dir.path(), 8) };
    assert!(matches!(registry.publish(asked), Err(RegistryError::AdapterBase { found, .. }) if found == BASE));
    let asked = new(dir.path(), 8);
    fs::remove_dir_all(asked.adapters.join("tool")).unwrap();
    assert!(matches!(registry.publish(asked), Err(RegistryError::Adapter { role, .. }) if role == "tool"));
    assert!(!registry.root().exists());
}

#[test]
fn a_publisher_that_was_killed_leaves_no_version() {
    let (dir, registry) = empty();
    let version = registry.publish(new(dir.path(), 8)).unwrap();
    // killed half way: a directory under its temporary name, its manifest written or not
    let left = registry.root().join("versions/.new-the-atlas-0123456789");
    fs::create_dir_all(left.join("plan")).unwrap();
    fs::copy(version.dir.join("manifest.json"), left.join("manifest.json")).unwrap();
    let listing = registry.list().unwrap();
    assert_eq!((listing.versions.len(), listing.broken.len()), (1, 0));
    registry.publish(new(dir.path(), 16)).unwrap();
    assert!(!left.exists(), "the next publisher cleans up");
}

#[test]
fn what_is_broken_by_hand_is_said_and_the_rest_stays() {
    let (dir, registry) = empty();
    let version = registry.publish(new(dir.path(), 8)).unwrap();
    registry.promote(version.id()).unwrap();
    fs::create_dir(registry.root().join("versions/empty")).unwrap();
    let copy = registry.root().join("versions/copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(version.dir.join("manifest.json"), copy.join("manifest.json")).unwrap();
    let listing = registry.list().unwrap();
    assert_eq!((listing.versions.len(), listing.broken.len()), (1, 2), "{listing:?}");
    assert!(listing.broken.iter().any(|error| matches!(error, RegistryError::Misplaced { .. })));
    fs::write(registry.root().join("current.json"), "{").unwrap();
    assert!(matches!(registry.current(), Err(RegistryError::Pointer { .. })));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Registry::open(file), Err(RegistryError::NotADirectory { .. })));
}

#[test]
fn writers_exclude_each_other_and_readers_see_whole_pointers() {
    let (dir, registry) = empty();
    let asked: Vec<NewVersion> = (1..=4).map(|alpha| new(dir.path(), alpha)).collect();
    let barrier = Barrier::new(asked.len() + 1);
    std::thread::scope(|scope| {
        let writers: Vec<_> = asked
            .into_iter()
            .map(|asked| {
                let (registry, barrier) = (&registry, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let version = registry.publish(asked).unwrap();
                    for _ in 0..10 {
                        registry.promote(version.id()).unwrap();
                        // somebody else may have taken the last one
                        let _ = registry.rollback();
                    }
                    registry.promote(version.id()).unwrap();
                })
            })
            .collect();
        barrier.wait();
        let mut revision = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            let pointer = registry.pointer().unwrap();
            assert!(pointer.revision >= revision, "{} after {revision}", pointer.revision);
            revision = pointer.revision;
            registry.current().unwrap();
        }
    });
    assert_eq!(registry.list().unwrap().versions.len(), 4);
    assert!(registry.current().unwrap().is_some());
}
