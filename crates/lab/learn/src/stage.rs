//! The stages of learning, in order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One stage of learning. Each writes files in the run directory, which later stages read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Self-instruct: from the examples to a database of questions.
    Instruct,
    /// Selection of the tools that the task needs.
    Select,
    /// Generation of trajectories by the meta-agent alone, with real tools.
    Synthesize,
    /// The reward filter: keeps trajectories with reward 1.
    Filter,
    /// The meta-agent's judgements of trajectories; those that agree with the reward are kept.
    Reflect,
    /// The three agents' data sets.
    Differentiate,
    /// The LoRA training runs.
    Train,
    /// Further rounds of synthesis by the trained group, as long as validation results improve.
    Iterate,
    /// Evaluation of the learned group and the base on the task's questions.
    Evaluate,
    /// `report.json` and `report.html`.
    Report,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 10] = [
        Stage::Instruct,
        Stage::Select,
        Stage::Synthesize,
        Stage::Filter,
        Stage::Reflect,
        Stage::Differentiate,
        Stage::Train,
        Stage::Iterate,
        Stage::Evaluate,
        Stage::Report,
    ];

    /// The stage's name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Instruct => "instruct",
            Stage::Select => "select",
            Stage::Synthesize => "synthesize",
            Stage::Filter => "filter",
            Stage::Reflect => "reflect",
            Stage::Differentiate => "differentiate",
            Stage::Train => "train",
            Stage::Iterate => "iterate",
            Stage::Evaluate => "evaluate",
            Stage::Report => "report",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not the name of a stage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no stage `{0}`; the stages are instruct, select, synthesize, filter, reflect, differentiate, train, iterate, evaluate, report"
)]
pub struct UnknownStage(String);

impl FromStr for Stage {
    type Err = UnknownStage;

    fn from_str(text: &str) -> Result<Stage, UnknownStage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == text).ok_or_else(|| UnknownStage(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_order() {
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse(), Ok(stage));
        }
        assert!(Stage::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert!("learn".parse::<Stage>().is_err());
    }
}
