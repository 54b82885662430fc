//! The published formats.

use std::fmt;
use std::str::FromStr;

use autoact_score::Metric;

/// A published format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// HotpotQA (<https://arxiv.org/abs/1809.09600>), distractor setting: ten paragraphs per
    /// question.
    HotpotQa,
    /// ScienceQA (<https://arxiv.org/abs/2209.09513>): multiple choice.
    ScienceQa,
}

/// An unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no known data set; expected `hotpotqa` or `scienceqa`")]
pub struct UnknownFormat {
    /// The name.
    pub name: String,
}

impl Format {
    /// The metric of its answers.
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

    /// An example of a record, for error messages.
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
