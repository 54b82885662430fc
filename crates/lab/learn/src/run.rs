//! The run directory: its files, the inputs that it was made from, and its lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LearnError;
use crate::stage::Stage;
use crate::store::{read_json, write_json};

/// The inputs of the stages, by stage and name: digests and settings that must not change between
/// two starts.
pub type Origin = BTreeMap<Stage, BTreeMap<String, String>>;

/// `run.json`
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    /// Version of the directory's layout.
    version: u32,
    task: String,
    origin: Origin,
    /// The completed stages.
    done: BTreeSet<Stage>,
    /// Seconds spent in each stage, over all starts.
    seconds: BTreeMap<Stage, f64>,
    /// Peak memory over all starts, in bytes.
    peak_memory: u64,
}

const VERSION: u32 = 1;

/// A run directory, locked while this value exists.
#[derive(Debug)]
pub struct Run {
    dir: PathBuf,
    manifest: Manifest,
    /// Dropping the file releases the lock.
    _lock: File,
}

impl Run {
    /// Opens or creates a run directory and locks it. With `again`, the results of that stage and
    /// all later ones are deleted first.
    ///
    /// # Errors
    /// Another process holds the lock, the inputs differ, or the directory cannot be written.
    pub fn open(dir: &Path, task: &str, origin: Origin, again: Option<Stage>) -> Result<Run, LearnError> {
        std::fs::create_dir_all(dir).map_err(LearnError::io("make", dir))?;
        let lock_path = dir.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(LearnError::io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(LearnError::Locked { path: dir.to_owned() }),
            Err(std::fs::TryLockError::Error(error)) => return Err(LearnError::io("lock", &lock_path)(error)),
        }
        let manifest = read_json::<Manifest>(&dir.join("run.json"))?;
        let mut run = Run { dir: dir.to_owned(), manifest: manifest.unwrap_or_default(), _lock: lock };
        if let Some(stage) = again {
            run.forget(stage)?;
        }
        run.check(&origin)?;
        run.manifest.version = VERSION;
        task.clone_into(&mut run.manifest.task);
        run.manifest.origin = origin;
        run.save()?;
        Ok(run)
    }

    fn check(&self, origin: &Origin) -> Result<(), LearnError> {
        let mut differences = Vec::new();
        let mut first = None;
        for (stage, then) in &self.manifest.origin {
            let now = origin.get(stage);
            for (name, then) in then {
                let Some(now) = now.and_then(|now| now.get(name)).filter(|now| *now != then) else { continue };
                first.get_or_insert(*stage);
                differences.push(format!("another {name} (`{then}`, now `{now}`)"));
            }
        }
        match first {
            None => Ok(()),
            Some(again) => Err(LearnError::OtherRun { path: self.dir.clone(), differences: differences.join(", "), again }),
        }
    }

    /// Deletes the results of `stage` and all later ones.
    fn forget(&mut self, stage: Stage) -> Result<(), LearnError> {
        for later in Stage::ALL.into_iter().filter(|later| *later >= stage) {
            for name in made_by(later) {
                let path = self.dir.join(name);
                let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                match removed {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(LearnError::io("delete", &path)(error)),
                    _ => {}
                }
            }
            self.manifest.seconds.remove(&later);
            self.manifest.done.remove(&later);
            self.manifest.origin.remove(&later);
        }
        self.save()
    }

    fn save(&self) -> Result<(), LearnError> {
        write_json(&self.dir.join("run.json"), &self.manifest)
    }

    /// Adds to the time spent in a stage and updates the peak memory.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn spent(&mut self, stage: Stage, seconds: f64) -> Result<(), LearnError> {
        *self.manifest.seconds.entry(stage).or_default() += seconds;
        self.manifest.peak_memory = self.manifest.peak_memory.max(crate::memory::peak());
        self.save()
    }

    /// Seconds by stage, and peak memory in bytes.
    pub fn costs(&self) -> (&BTreeMap<Stage, f64>, u64) {
        (&self.manifest.seconds, self.manifest.peak_memory)
    }

    /// Marks a stage as complete.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn complete(&mut self, stage: Stage) -> Result<(), LearnError> {
        self.manifest.done.insert(stage);
        self.save()
    }

    /// Whether a stage is complete.
    pub fn is_complete(&self, stage: Stage) -> bool {
        self.manifest.done.contains(&stage)
    }

    /// The inputs that it was made from.
    pub fn origin(&self) -> &Origin {
        &self.manifest.origin
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The files and directories that a stage writes, relative to the run directory.
fn made_by(stage: Stage) -> &'static [&'static str] {
    match stage {
        Stage::Instruct => &["questions.jsonl", "rejected.jsonl"],
        Stage::Select => &["tools.json"],
        Stage::Synthesize => &["trajectories.jsonl"],
        Stage::Filter => &["kept.jsonl", "filter.json"],
        Stage::Reflect => &["reflections.jsonl"],
        Stage::Differentiate => &["datasets"],
        Stage::Train => &["rounds/1", "adapters"],
        // settings allow at most 9 rounds; the first one's adapters belong to the stage Train
        Stage::Iterate => &[
            "rounds/2",
            "rounds/3",
            "rounds/4",
            "rounds/5",
            "rounds/6",
            "rounds/7",
            "rounds/8",
            "rounds/9",
            "iterate.json",
            "validation.jsonl",
        ],
        Stage::Evaluate => &["calibration-answers.jsonl", "calibrated.json", "evaluation.jsonl", "held-out-judgements.jsonl"],
        Stage::Report => &["report.json", "report.html"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(value: &str) -> Origin {
        Origin::from([(Stage::Synthesize, BTreeMap::from([("seed".to_owned(), value.to_owned())]))])
    }

    #[test]
    fn a_run_is_locked_and_refuses_other_inputs() {
        let dir = tempfile::tempdir().unwrap();
        let open = |value: &str, again| Run::open(dir.path(), "t", origin(value), again);
        let held = open("1", None).unwrap();
        assert!(matches!(open("1", None), Err(LearnError::Locked { .. })));
        drop(held);
        assert!(matches!(open("2", None), Err(LearnError::OtherRun { .. })));
        assert!(open("1", None).is_ok());
        assert!(matches!(open("2", Some(Stage::Filter)), Err(LearnError::OtherRun { again: Stage::Synthesize, .. })));
        assert!(open("2", Some(Stage::Synthesize)).is_ok());
        assert!(open("2", None).is_ok());
    }

    #[test]
    fn again_deletes_a_stage_and_those_after_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["questions.jsonl", "kept.jsonl", "datasets/plan.jsonl", "report.json"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let run = Run::open(dir.path(), "t", origin("1"), Some(Stage::Filter)).unwrap();
        assert!(run.path("questions.jsonl").exists());
        assert!(!run.path("kept.jsonl").exists() && !run.path("datasets").exists() && !run.path("report.json").exists());
    }
}
