//! The published formats.

use std::fmt;
use std::str::FromStr;

use autoact_score::Metric;

/// A published format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// HotpotQA in the distractor setting: ten paragraphs a question.
    HotpotQa,
    /// ScienceQA: multiple choice.
    ScienceQa,
}

/// A format that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no known data set; expected `hotpotqa` or `scienceqa`")]
pub struct UnknownFormat {
    /// What was asked for.
    pub name: String,
}

impl Format {
    /// How its answers are rewarded.
    pub fn metric(self) -> Metric {
        match self {
            Format::HotpotQa => Metric::F1,
            Format::ScienceQa => Metric::MultipleChoice,
        }
    }

    /// `hotpotqa` or `scienceqa`.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::HotpotQa => "hotpotqa",
            Format::ScienceQa => "scienceqa",
        }
    }

    /// What a record looks like, for messages.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Format::HotpotQa => {
                r#"{"_id": "…", "question": "…", "answer": "…", "level": "easy", "context": [["title", ["sentence", …]], …]}"#
            }
            Format::ScienceQa => {
                r#"{"Question": "…\nOptions: (A) … (B) …", "choices": ["…", "…"], "Answer": "A", "metadata": {"grade": 3}}"#
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Format::HotpotQa, Format::ScienceQa]
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}
