//! The stages, in their order.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One stage of learning. Each leaves a file in the run directory that the next one reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Self-instruct: from the examples to a database of questions.
    Instruct,
    /// Which tools of the library the task needs.
    Select,
    /// Trajectories by the meta-agent alone, tools really run.
    Synthesize,
    /// The reward filter: kept are trajectories with reward 1.
    Filter,
    /// The meta-agent's judgements of right and wrong histories, of which those stay that agree with the reward.
    Reflect,
    /// The three agents' data sets.
    Differentiate,
    /// The LoRA trainings.
    Train,
    /// Further rounds of synthesis by the differentiated group, kept while they are better on validation.
    Iterate,
    /// The learned group and the base on the task's evaluation questions.
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

    /// Its name on the command line.
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

/// A word that is no stage.
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
    fn names_go_there_and_back_in_order() {
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse(), Ok(stage));
        }
        assert!(Stage::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert!("learn".parse::<Stage>().is_err());
    }
}
