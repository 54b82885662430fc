//! Errors of learning.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::stage::Stage;

/// All mistakes in a task file and in the files that it names; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMistakes {
    /// The task file.
    pub path: PathBuf,
    /// The mistakes and how to fix them, in the order of the file.
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

/// An error of learning. Everything that was completed before stays in the run directory.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The task file, or a file that it names, is invalid.
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
    /// A line other than the last is invalid.
    #[error("`{}`, line {line}: {reason}; delete that line, or begin anew with `--again`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
    /// Another process holds the run directory.
    #[error("another process is learning in `{}`; wait for it, or name another directory with `--run`", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
    },
    /// The run directory was made from other inputs.
    #[error(
        "`{}` was made with {differences}; go on with what it was made with, begin anew from there with `--again {again}`, or name another \
         directory with `--run`",
        path.display()
    )]
    OtherRun {
        /// The run directory.
        path: PathBuf,
        /// The inputs that differ.
        differences: String,
        /// The first stage whose results would have to be made again.
        again: Stage,
    },
    /// A stage was requested although the stage that it needs is not complete.
    #[error("`{stage}` needs what `{needs}` makes, which is not complete in `{}`; run `autoact learn {needs}` first", path.display())]
    Order {
        /// The requested stage.
        stage: Stage,
        /// The stage that it needs.
        needs: Stage,
        /// The run directory.
        path: PathBuf,
    },
    /// A stage ended with too few results to continue.
    #[error("{what}: {found}; {fix}")]
    TooFew {
        /// What is missing.
        what: &'static str,
        /// What was found, with counts.
        found: String,
        /// What to change.
        fix: String,
    },
    /// The model cannot be loaded.
    #[error("the model in `{}` cannot be used", path.display())]
    Model {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: Box<autoact_model::LoadError>,
    },
    /// The adapter registry refused to publish.
    #[error("cannot publish to the adapter registry `{}`", path.display())]
    Registry {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: Box<autoact_registry::RegistryError>,
    },
    /// Generation failed.
    #[error("the meta-agent cannot generate text")]
    Generate(#[from] autoact_model::GenerateError),
    /// A reflection could not be generated.
    #[error("the meta-agent cannot generate text")]
    Speak(#[from] autoact_speaker::SpeakError),
    /// The planning loop violated its own rules: a bug in this program.
    #[error(transparent)]
    Local(#[from] autoact_in_process::LocalError),
    /// A trajectory cannot be tokenised.
    #[error(transparent)]
    Encode(#[from] autoact_pretrain::EncodeError),
    /// An activated adapter cannot find where its agent begins to speak.
    #[error(
        "the model's chat template or tokenizer does not keep the cue `{}` apart from what stands before it; set `activated = false` under \
         `[train.lora]`",
        autoact_prompt::cue(*role)
    )]
    Cue {
        /// The agent.
        role: autoact_prompt::Role,
    },
    /// The base has a shape that cannot be trained.
    #[error("no adapters can be trained for the model in `{}`; name another one with `--model`", path.display())]
    Untrainable {
        /// Its directory.
        path: PathBuf,
        /// Why.
        source: Box<autoact_train::TrainError>,
    },
    /// A training run failed.
    #[error("training `{adapter}` failed")]
    Train {
        /// Which adapter.
        adapter: String,
        /// Why.
        source: Box<autoact_train::TrainError>,
    },
    /// Stopped by Ctrl-C or SIGTERM.
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
