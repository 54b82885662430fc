//! Rounds: the first is the meta-agent's own, in the run directory itself; each further one has a directory, and the group that the round
//! before differentiated speaks in it.

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

    /// A file of its data.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The adapter it trains.
    pub(crate) fn adapter(&self, name: &str) -> PathBuf {
        self.adapters.join("adapters").join(name)
    }

    /// Where an adapter's training keeps its checkpoints and its curve.
    pub(crate) fn training(&self, name: &str) -> PathBuf {
        self.adapters.join("training").join(name)
    }

    /// What its adapters are called in the engines.
    pub(crate) fn voice(&self, adapter: &str) -> String {
        format!("{}:{adapter}", self.number)
    }

    /// Its three agents.
    pub(crate) fn group(&self) -> Voices {
        Voices::named(|role| self.voice(role.as_str()))
    }

    /// Who speaks in its synthesis: the meta-agent in the first, then the group of the round before.
    pub(crate) fn speakers(&self, run: &Run) -> Voices {
        if self.number == 1 { Voices::base() } else { Round::new(run, self.number - 1).group() }
    }

    /// Loads adapters of it into the engines.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub(crate) fn load<S: AsRef<str>>(&self, work: &Workplace, names: &[S]) -> Result<(), LearnError> {
        let crew = work.crew()?;
        names.iter().map(AsRef::as_ref).try_for_each(|name| crew.load_adapter(&self.voice(name), &self.adapter(name)))
    }
}
