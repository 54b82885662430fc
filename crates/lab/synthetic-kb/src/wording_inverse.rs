//! Rewording of questions from a value to the entity that has it.

use autoact_base::random::Rng;

use crate::schema::RelationRef;
use crate::text::fill;
use crate::wording::{Composer, Form, bare};
use crate::wording_grammar::{described, indirect};

/// Probability of a noun phrase or keywords in place of a sentence.
const PHRASED: f64 = 0.45;

impl Composer<'_> {
    pub(crate) fn inverse(&mut self, value: &str, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (v, _) = self.value(at, value, rng);
        let schema = self.base.schema();
        let relation = schema.relation(at);
        let direct = fill(Self::either(&relation.asked.inverse, &relation.inverse, rng)?, |slot| (slot == "v").then(|| v.clone()));
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, &v)?, rng);
        }
        if self.trains() && rng.chance(PHRASED) {
            let noun = schema.types[at.kind].noun.as_str();
            if rng.chance(0.25) {
                return Some(Form { text: format!("{noun} with {} {}", relation.noun, bare(&v)), family: "keywords" });
            }
            let phrase = indirect(&direct, &v).and_then(|clause| described(&clause, noun));
            if let Some(phrase) = phrase {
                return Some(match rng.below(4) {
                    0 => Form { text: format!("What is {phrase}?"), family: "noun-phrase" },
                    1 => Form { text: self.imperative(&phrase, true, rng)?, family: "imperative" },
                    2 => Form { text: bare(&phrase).to_owned(), family: "keywords" },
                    _ => Form { text: self.request(&phrase, rng)?, family: "request" },
                });
            }
        }
        if rng.chance(0.5) { Some(Form { text: direct, family: "direct" }) } else { self.asking(&indirect(&direct, &v)?, rng) }
    }
}
