//! A question of a data set in the project's types.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use autoact_score::Metric;
use autoact_tools::Page;

use crate::error::DatasetError;
use crate::file::{read, records};
use crate::{hotpotqa, scienceqa};

/// One question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The data set's own id.
    pub id: String,
    /// What is asked, options and caption included.
    pub question: String,
    /// The gold answer; `B. Louisiana` for multiple choice.
    pub answer: String,
    /// The level it counts in: `easy`, `medium` or `hard`; `G1-4`, `G5-8` or `G9-12`.
    pub level: String,
    /// The question's own pages, which are its corpus; none: the question brings no pages.
    pub pages: Vec<Page>,
}

/// A published format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// HotpotQA in the distractor setting: ten paragraphs a question.
    HotpotQa,
    /// ScienceQA: multiple choice.
    ScienceQa,
}

/// An unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no known data set; expected `hotpotqa` or `scienceqa`")]
pub struct UnknownFormat {
    /// What was asked for.
    pub name: String,
}

impl Format {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or has records of another format. Up to 20 mistakes are reported
    /// together.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Vec<Record>, DatasetError> {
        let path = path.as_ref();
        self.parse(&read(path)?, &path.display().to_string())
    }

    /// Parses a text; `origin` is its name in error messages.
    ///
    /// # Errors
    /// The text has no records, or records that are not of this format.
    pub fn parse(self, text: &str, origin: &str) -> Result<Vec<Record>, DatasetError> {
        match self {
            Format::HotpotQa => records(text, origin, self, hotpotqa::record),
            Format::ScienceQa => records(text, origin, self, scienceqa::record),
        }
    }

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
