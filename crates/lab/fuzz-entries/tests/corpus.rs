//! The seeds and the findings of every fuzz target, without a fuzzer.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autoact_fuzz_entries::ENTRIES;

/// No input may take longer, here in a test build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz")
}

/// The files of a folder, sorted; none where there is no folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn names(dir: &Path) -> BTreeSet<String> {
    files(dir).iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect()
}

fn known() -> BTreeSet<String> {
    ENTRIES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn every_target_has_a_function_seeds_and_a_program() {
    if cfg!(not(all(feature = "access", feature = "documents", feature = "tools"))) {
        // this build has some of them
        assert!(known().is_subset(&names(&fuzz().join("corpus"))));
        return;
    }
    assert_eq!(names(&fuzz().join("corpus")), known());
    assert_eq!(names(&fuzz().join("fuzz_targets")), known());
    let manifest: toml::Table = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap().parse().unwrap();
    let bins = manifest["bin"].as_array().unwrap();
    assert_eq!(bins.iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), known());
    // a folder of findings without a target would be fed to nobody
    assert!(names(&fuzz().join("findings")).is_subset(&known()));
}

#[test]
fn seeds_and_findings_are_taken() {
    for (name, entry) in ENTRIES {
        let seeds = files(&fuzz().join("corpus").join(name));
        assert!(!seeds.is_empty(), "`{name}` has no seeds");
        for file in seeds.into_iter().chain(files(&fuzz().join("findings").join(name))) {
            println!("{}", file.display());
            let bytes = std::fs::read(&file).unwrap();
            let begun = Instant::now();
            entry(&bytes);
            let took = begun.elapsed();
            assert!(took < PATIENCE, "{} took {took:?}", file.display());
        }
    }
}

#[test]
fn the_fuzzers_have_the_same_dependencies_as_the_project() {
    let packages = |path: PathBuf| -> BTreeSet<(String, String)> {
        let lock: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
        lock["package"].as_array().unwrap().iter().map(|package| (text(package, "name"), text(package, "version"))).collect()
    };
    let (ours, theirs) = (packages(fuzz().join("../Cargo.lock")), packages(fuzz().join("Cargo.lock")));
    let own = ["arbitrary", "autoact-fuzz", "jobserver", "libfuzzer-sys"];
    let others: Vec<_> = theirs.difference(&ours).filter(|(name, _)| !own.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "fuzz/Cargo.lock has other versions: {others:?}; fix: fuzz/run --lock");
}
