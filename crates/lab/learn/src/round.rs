//! Rounds of learning. The first round's data are in the run directory itself, and the base model
//! generates its trajectories. Each further round has its own directory, and the previous round's
//! group generates its trajectories.

use std::path::PathBuf;

use autoact_in_process::Voices;

use crate::error::LearnError;
use crate::run::Run;
use crate::workplace::Workplace;

/// A round of synthesis, filter, reflection, differentiation and training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Round {
    /// From 1.
    pub(crate) number: usize,
    dir: PathBuf,
    adapters: PathBuf,
}

impl Round {
    /// The round of this number.
    pub(crate) fn new(run: &Run, number: usize) -> Round {
        let own = run.path(&format!("rounds/{number}"));
        Round { number, dir: if number == 1 { run.dir().to_owned() } else { own.clone() }, adapters: own }
    }

    /// The path of a data file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The directory of an adapter that it trains.
    pub(crate) fn adapter(&self, name: &str) -> PathBuf {
        self.adapters.join("adapters").join(name)
    }

    /// The directory of an adapter's checkpoints and loss curve.
    pub(crate) fn training(&self, name: &str) -> PathBuf {
        self.adapters.join("training").join(name)
    }

    /// The name of its adapter in the engines.
    pub(crate) fn voice(&self, adapter: &str) -> String {
        format!("{}:{adapter}", self.number)
    }

    /// The adapters of its three agents.
    pub(crate) fn group(&self) -> Voices {
        Voices::named(|role| self.voice(role.as_str()))
    }

    /// The adapters that generate its trajectories: none (the base model) in the first round, the
    /// previous round's in later ones.
    pub(crate) fn speakers(&self, run: &Run) -> Voices {
        if self.number == 1 { Voices::base() } else { Round::new(run, self.number - 1).group() }
    }

    /// The adapter that judges its trajectories: none (the base model) in the first round, the first
    /// round's Reflect-Agent in later ones.
    pub(crate) fn judge(&self, run: &Run) -> Option<String> {
        (self.number > 1).then(|| Round::new(run, 1).voice("reflect"))
    }

    /// Loads some of its adapters into the engines.
    ///
    /// # Errors
    /// An adapter cannot be loaded.
    pub(crate) fn load<S: AsRef<str>>(&self, work: &Workplace, names: &[S]) -> Result<(), LearnError> {
        let pool = work.pool()?;
        names.iter().map(AsRef::as_ref).try_for_each(|name| pool.load_adapter(&self.voice(name), &self.adapter(name)))
    }
}
