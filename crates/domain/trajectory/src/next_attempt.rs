//! How a group tries again after a judgement "wrong".

use serde::{Deserialize, Serialize};

/// The temperature at which Plan-Agent and Tool-Agent sample in an attempt that begins anew, where
/// the task says greedy: the model's own distribution. Greedily they would say the same again.
pub(crate) const TEMPERATURE: f32 = 1.0;

/// What the agents are given in the attempt that follows a judgement "wrong". Which is better is a
/// matter of what their adapters have learned (`docs/evaluation.md`, "Another attempt").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAttempt {
    /// The whole history, with what was wrong (AutoAct, section 2.4).
    #[default]
    Continues,
    /// The question alone, as if nothing had been tried. An attempt after one with a tool that
    /// changes the world or that asks the user continues all the same.
    Anew,
}

impl NextAttempt {
    /// Its name on the command line and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            NextAttempt::Continues => "continues",
            NextAttempt::Anew => "anew",
        }
    }

    /// Whether it is the default one.
    pub fn continues(&self) -> bool {
        *self == NextAttempt::Continues
    }
}
