//! A question, its answer, and the facts needed to answer it.

use serde::{Deserialize, Serialize};

/// The kind of a question. Evaluation reports results by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A chain of one or more relations; [`Question::hops`] is their number.
    Hop,
    /// From a value to the entity that has it.
    Inverse,
    /// Which of two entities has the larger or smaller value.
    Comparison,
    /// Yes or no.
    YesNo,
    /// The difference of two numbers or years.
    Difference,
    /// A sum, a difference, a product or a quotient.
    Arithmetic,
    /// None that the pages answer: the right end is `NotFound`.
    Unanswerable,
}

/// The facts needed to answer a question. They are named by titles and the question's chain, so a
/// question does not depend on the knowledge base that it was generated from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionPlan {
    /// The value at the end of the chain.
    Follow {
        /// The title of the page to begin with.
        start: String,
    },
    /// The one entity that has this value.
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
    /// Whether the first entity has the larger (or smaller) value.
    IsMore {
        /// The first title named.
        a: String,
        /// The second.
        b: String,
        /// Whether the question asks for the larger value.
        more: bool,
    },
    /// Whether the value at the end of the chain is the one claimed.
    IsValue {
        /// The title of the page to begin with.
        start: String,
        /// The value the question claims.
        claim: String,
    },
    /// How much larger (or smaller) the first entity's value is.
    Difference {
        /// The first title named.
        a: String,
        /// The second; the same as `a` for a difference of two of its own facts.
        b: String,
        /// Whether the value of `b` is taken from that of `a`, or the other way round.
        more: bool,
        /// The paths that lead from `b` to its value, where they are others than the chain's.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        minus: Vec<String>,
    },
    /// Whether two entities share the value of a relation.
    IsSame {
        /// The first title named.
        a: String,
        /// The second.
        b: String,
    },
    /// What an expression is worth.
    Calculate {
        /// The expression as the calculator reads it.
        expression: String,
    },
    /// A fact that no page gives.
    Missing {
        /// Why no page gives it.
        why: Why,
        /// What the question asks for.
        asks: Asks,
        /// The facts that lead to it, in the order of reading.
        read: Vec<Read>,
        /// The name whose page gives it not, or that has no page; for [`Why::Owner`] the value.
        name: String,
        /// The noun of the missing relation.
        noun: String,
    },
    /// No question for a fact at all.
    NoQuestion {
        /// What it is: `a greeting`.
        what: String,
    },
}

/// Why a question cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The name has no page.
    Entity,
    /// The page says nothing of the kind.
    Relation,
    /// A later name of a chain has no page, or its page lacks the relation.
    Chain,
    /// One of two entities has no page, or its page lacks the relation.
    Side,
    /// No entity has the value.
    Owner,
}

/// What a question asks for, in nouns: what thoughts restate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// The value at the end of a chain.
    Value {
        /// The name it begins with.
        start: String,
        /// The relations' nouns, in the order of reading.
        nouns: Vec<String>,
    },
    /// The values of two entities, beside each other.
    Both {
        /// The first name.
        a: String,
        /// The second.
        b: String,
        /// The relations' nouns, in the order of reading.
        nouns: Vec<String>,
    },
    /// The entity that has a value.
    Owner {
        /// The noun of its type.
        kind: String,
        /// The relation's noun.
        noun: String,
        /// The value.
        value: String,
    },
}

/// A fact that is read on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The page's title.
    pub title: String,
    /// The relation's path.
    pub path: String,
}

/// A name as a question writes it: lower case, a surname, an alias, misspelt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spelling {
    /// The title, or the claimed value.
    pub title: String,
    /// How the question writes it.
    pub written: String,
}

/// A question with one right answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Stable identifier: a hash of what is asked, independent of the wording.
    pub id: String,
    /// The question as a person writes it.
    pub text: String,
    /// The answer as pages spell it, or `yes` or `no`. Empty: there is none (`null` in files).
    #[serde(with = "answer")]
    pub answer: String,
    /// Its kind.
    pub kind: Kind,
    /// Number of relations to follow, for each of the compared entities.
    pub hops: usize,
    /// Paths of these relations: `["river.country", "country.capital"]`.
    pub chain: Vec<String>,
    /// The titles of the pages that state the answer, in the order of reading.
    pub entities: Vec<String>,
    /// The facts needed to answer it.
    pub plan: QuestionPlan,
    /// The misspelt name of the first entity, if the question misspells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Names and values that the question does not write as pages do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spelt: Vec<Spelling>,
    /// The family of its wording, if it was reworded. Evaluation reports these by family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
}

/// An answer in files: no answer is `null`.
mod answer {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(answer: &str, serializer: S) -> Result<S::Ok, S::Error> {
        Some(answer).filter(|answer| !answer.is_empty()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
    }
}

impl Question {
    /// Whether it has an answer.
    pub fn is_answerable(&self) -> bool {
        !self.answer.is_empty()
    }

    /// `1-hop`, `2-hop`, `3-hop`, `comparison`, `yes-no`, `inverse`, `difference`, `arithmetic` or
    /// `unanswerable`.
    pub fn label(&self) -> String {
        match self.kind {
            Kind::Hop => format!("{}-hop", self.hops),
            Kind::Inverse => "inverse".to_owned(),
            Kind::Comparison => "comparison".to_owned(),
            Kind::YesNo => "yes-no".to_owned(),
            Kind::Difference => "difference".to_owned(),
            Kind::Arithmetic => "arithmetic".to_owned(),
            Kind::Unanswerable => "unanswerable".to_owned(),
        }
    }
}

/// Relative frequencies of the kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Chains of one, two and three relations.
    pub hops: [f64; 3],
    /// From a value to its entity.
    pub inverse: f64,
    /// Which of two entities.
    pub comparison: f64,
    /// Yes or no.
    pub yes_no: f64,
    /// How much one value is above another.
    pub difference: f64,
    /// Arithmetic, without pages.
    pub arithmetic: f64,
    /// What the pages do not answer. 0 where evaluation sets are made.
    pub unanswerable: f64,
    /// Probability that the first name of a chain is misspelt. Not a relative frequency.
    pub misspelt: f64,
}

impl Default for Mix {
    /// Harder questions are more frequent than easy ones, because they contain them. There are no
    /// differences.
    fn default() -> Self {
        Mix {
            hops: [0.22, 0.28, 0.2],
            inverse: 0.05,
            comparison: 0.09,
            yes_no: 0.16,
            difference: 0.0,
            arithmetic: 0.0,
            unanswerable: 0.0,
            misspelt: 0.02,
        }
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

    /// Only inverse questions.
    pub fn only_inverse() -> Mix {
        Mix { inverse: 1.0, ..Mix::none() }
    }

    /// Only differences.
    pub fn only_difference() -> Mix {
        Mix { difference: 1.0, ..Mix::none() }
    }

    /// Only arithmetic.
    pub fn only_arithmetic() -> Mix {
        Mix { arithmetic: 1.0, ..Mix::none() }
    }

    /// Only questions without an answer.
    pub fn only_unanswerable() -> Mix {
        Mix { unanswerable: 1.0, ..Mix::none() }
    }

    /// The same mix with these fractions of arithmetic and of questions without an answer.
    #[must_use]
    pub fn with(self, arithmetic: f64, unanswerable: f64) -> Mix {
        let rest = self.hops.iter().sum::<f64>() + self.inverse + self.comparison + self.yes_no + self.difference;
        let scale = rest / (1.0 - arithmetic - unanswerable).max(f64::EPSILON);
        Mix { arithmetic: scale * arithmetic, unanswerable: scale * unanswerable, ..self }
    }

    fn none() -> Mix {
        Mix {
            hops: [0.0; 3],
            inverse: 0.0,
            comparison: 0.0,
            yes_no: 0.0,
            difference: 0.0,
            arithmetic: 0.0,
            unanswerable: 0.0,
            misspelt: 0.0,
        }
    }
}
