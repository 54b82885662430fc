//! A question, its answer, and the facts needed to answer it.

use serde::{Deserialize, Serialize};

/// The kind of a question; evaluation reports by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A chain of relations, one or more: `hops` says how many.
    Hop,
    /// From a value back to its entity.
    Inverse,
    /// Which of two.
    Comparison,
    /// Yes or no.
    YesNo,
}

/// The facts needed to answer a question. They are named by titles and the question's chain, so a
/// question does not depend on the knowledge base that it was generated from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// The value at the end of the chain.
    Follow {
        /// The title of the page to begin with.
        start: String,
    },
    /// The one entity whose value this is.
    Inverse {
        /// The value.
        value: String,
    },
    /// The one of two with the larger or smaller value at the end of the chain.
    Compare {
        /// The first title named.
        a: String,
        /// The second.
        b: String,
        /// Whether the larger value wins.
        more: bool,
    },
    /// Whether the first has the larger (smaller) value.
    IsMore {
        /// The first title named.
        a: String,
        /// The second.
        b: String,
        /// Whether the question is for larger.
        more: bool,
    },
    /// Whether the value at the end of the chain is the one claimed.
    IsValue {
        /// The title of the page to begin with.
        start: String,
        /// The value the question claims.
        claim: String,
    },
    /// Whether two entities share the value of a relation.
    IsSame {
        /// The first title named.
        a: String,
        /// The second.
        b: String,
    },
}

/// A question with one right answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Stable: made from what is asked, not from when.
    pub id: String,
    /// The question as a person writes it.
    pub text: String,
    /// Its answer as pages spell it; `yes` or `no`.
    pub answer: String,
    /// Its kind.
    pub kind: Kind,
    /// How many relations have to be followed for it (for one of two, where there are two).
    pub hops: usize,
    /// Their paths: `["river.country", "country.capital"]`.
    pub chain: Vec<String>,
    /// The titles of the pages that the answer is read from, in the order of reading.
    pub entities: Vec<String>,
    /// What has to be found out.
    pub plan: Plan,
    /// The name of the first entity as the question misspells it, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

impl Question {
    /// `1-hop`, `2-hop`, `3-hop`, `comparison`, `yes-no` or `inverse`.
    pub fn label(&self) -> String {
        match self.kind {
            Kind::Hop => format!("{}-hop", self.hops),
            Kind::Inverse => "inverse".to_owned(),
            Kind::Comparison => "comparison".to_owned(),
            Kind::YesNo => "yes-no".to_owned(),
        }
    }
}

/// How often each kind of question is asked, in proportion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Chains of one, two and three relations.
    pub hops: [f64; 3],
    /// From a value to its entity.
    pub inverse: f64,
    /// Which of two.
    pub comparison: f64,
    /// Yes or no.
    pub yes_no: f64,
    /// The chance that a chain's first name is misspelt in the question (not a proportion).
    pub misspelt: f64,
}

impl Default for Mix {
    /// Harder ones more often than easy ones: they hold the easy ones.
    fn default() -> Self {
        Mix { hops: [0.22, 0.28, 0.2], inverse: 0.05, comparison: 0.09, yes_no: 0.16, misspelt: 0.02 }
    }
}

impl Mix {
    /// Only chains of this many relations (1 to 3).
    pub fn only_hops(hops: usize) -> Mix {
        let mut mix = Mix::none();
        if let Some(weight) = hops.checked_sub(1).and_then(|index| mix.hops.get_mut(index)) {
            *weight = 1.0;
        }
        mix
    }

    /// Only comparisons.
    pub fn only_comparison() -> Mix {
        Mix { comparison: 1.0, ..Mix::none() }
    }

    /// Only yes/no questions.
    pub fn only_yes_no() -> Mix {
        Mix { yes_no: 1.0, ..Mix::none() }
    }

    /// Only questions from a value to its entity.
    pub fn only_inverse() -> Mix {
        Mix { inverse: 1.0, ..Mix::none() }
    }

    fn none() -> Mix {
        Mix { hops: [0.0; 3], inverse: 0.0, comparison: 0.0, yes_no: 0.0, misspelt: 0.0 }
    }
}
