//! Why learning stops.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::stage::Stage;

/// Everything that is wrong with a task and what it names; at least one mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMistakes {
    /// The task file.
    pub path: PathBuf,
    /// What is wrong and how to mend it, in the order of the file.
    pub mistakes: Vec<String>,
}

impl fmt::Display for TaskMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if let [only] = self.mistakes.as_slice() {
            return write!(f, "the task `{path}` cannot be learned: {only}");
        }
        write!(f, "the task `{path}` cannot be learned, {} mistakes:", self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  - {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for TaskMistakes {}

/// Why learning stops. What was done before stays in the run directory.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The task, or a file it names.
    #[error(transparent)]
    Task(#[from] TaskMistakes),
    /// A file of the run directory cannot be read or written.
    #[error("cannot {action} `{}`: {source}; everything up to here is kept: mend it and run the same command again", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A line in the middle of a file is not what this program writes.
    #[error("`{}`, line {line}: {reason}; delete that line, or begin anew with `--again`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else learns in this directory.
    #[error("another process is learning in `{}`; wait for it, or name another directory with `--run`", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
    },
    /// The run directory was made from other things.
    #[error(
        "`{}` was made with {differences}; go on with what it was made with, begin anew from there with `--again {again}`, or name another \
         directory with `--run`",
        path.display()
    )]
    OtherRun {
        /// The run directory.
        path: PathBuf,
        /// What differs.
        differences: String,
        /// The first stage that would have to be done again.
        again: Stage,
    },
    /// A stage was asked for before the one it needs.
    #[error("`{stage}` needs what `{needs}` makes, which is not complete in `{}`; run `autoact learn {needs}` first", path.display())]
    Order {
        /// The stage asked for.
        stage: Stage,
        /// The one that has to come before.
        needs: Stage,
        /// The run directory.
        path: PathBuf,
    },
    /// A stage ended with too little to go on.
    #[error("{what}: {found}; {fix}")]
    TooFew {
        /// What there is too little of.
        what: &'static str,
        /// What was found, with counts.
        found: String,
        /// What to change.
        fix: String,
    },
    /// The model.
    #[error("the model in `{}` cannot be used", path.display())]
    Model {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: Box<autoact_model::LoadError>,
    },
    /// The adapter registry.
    #[error("cannot publish to the adapter registry `{}`", path.display())]
    Registry {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: Box<autoact_registry::RegistryError>,
    },
    /// The model cannot go on.
    #[error("the meta-agent cannot speak")]
    Generate(#[from] autoact_model::GenerateError),
    /// The model cannot judge.
    #[error("the meta-agent cannot speak")]
    Speak(#[from] autoact_speaker::SpeakError),
    /// The planning loop broke its own rules: a mistake in the program.
    #[error(transparent)]
    Local(#[from] autoact_in_process::LocalError),
    /// A trajectory cannot be tokenised.
    #[error(transparent)]
    Encode(#[from] autoact_pretrain::EncodeError),
    /// A training run.
    #[error("training `{adapter}` failed")]
    Train {
        /// Which adapter.
        adapter: String,
        /// Why.
        source: Box<autoact_train::TrainError>,
    },
    /// Ctrl-C, or SIGTERM.
    #[error("stopped during `{stage}`; the same command goes on from here")]
    Stopped {
        /// The stage.
        stage: Stage,
    },
}

impl LearnError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LearnError {
        let path = path.to_owned();
        move |source| LearnError::Io { action, path, source }
    }

    pub(crate) fn train(adapter: &str) -> impl Fn(autoact_train::TrainError) -> LearnError {
        let adapter = adapter.to_owned();
        move |source| LearnError::Train { adapter: adapter.clone(), source: Box::new(source) }
    }
}
