//! How long, high or heavy something is.

use super::Reader;
use super::wording::{Asked, asks};
use super::words::{Found, Value, Word};

/// Adjectives of measure, with the noun for what they measure.
const ADJECTIVES: [(&str, &str); 7] =
    [("long", "length"), ("high", "height"), ("tall", "height"), ("wide", "width"), ("deep", "depth"), ("old", "age"), ("heavy", "weight")];
/// Verbs of measure, with the noun.
const VERBS: [(&str, &str); 2] = [("cost", "price"), ("weigh", "weight")];
const TIMES: [&str; 6] = ["minutes", "hours", "days", "weeks", "months", "years"];

/// `16 metres high`.
pub(super) struct Measured<'a> {
    pub(super) adjective: &'a str,
    pub(super) noun: &'static str,
    text: String,
}

/// What words measure, wherever they do.
pub(super) fn measures<'a>(words: &[Word<'a>]) -> Vec<Measured<'a>> {
    let measured = |three: &[Word<'a>]| -> Option<Measured<'a>> {
        let [number, unit, adjective] = three else { return None };
        let (_, noun) = ADJECTIVES.iter().find(|(word, _)| *word == adjective.text)?;
        let plain = number.is_number() && unit.is_lower() && !number.ends && !unit.ends;
        plain.then(|| Measured { adjective: adjective.text, noun, text: format!("{} {}", number.text, unit.text) })
    };
    words.windows(3).filter_map(measured).collect()
}

fn told(text: String) -> Found {
    Found { text, value: Value::Number, length: 2, ends: true }
}

impl Reader<'_> {
    /// What follows `is`: `99 metres long`.
    pub(super) fn measure(&self, be: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let one = measures(rest.get(..3)?).pop()?;
        Some(ask(be, one))
    }

    /// `The stems are 1.2 metres tall.`, where pages tell such a thing once, and this one does.
    pub(super) fn measured(&self, words: &[Word<'_>]) -> Vec<Asked> {
        let mut all = measures(words);
        all.retain(|one| self.lexicon.is_measured(one.noun) && self.names.is_measured_once(one.noun));
        all.into_iter().flat_map(|one| ask("is", one)).collect()
    }

    /// What follows `weighs` and `costs`: a number and its unit.
    pub(super) fn amount(&self, does: &str, base: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (_, noun) = VERBS.iter().find(|(verb, _)| *verb == base)?;
        let amount = amount_of(rest)?;
        Some(vec![
            asks(&format!("How much {does}"), base, &amount),
            asks(&format!("What {does}"), base, &amount),
            asks(&format!("What is the {noun} of"), "", &amount),
        ])
    }

    /// What follows `sold for`.
    pub(super) fn price(&self, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let amount = amount_of(rest)?;
        Some(vec![asks("What is the price of", "", &amount), asks("How much does", "cost", &amount)])
    }

    /// What follows `runs for`.
    pub(super) fn duration(&self, does: &str, base: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let amount = amount_of(rest)?;
        let time = rest.get(1).is_some_and(|unit| unit.is_one_of(&TIMES));
        time.then(|| vec![asks(&format!("How long {does}"), base, &amount)])
    }
}

fn amount_of(words: &[Word<'_>]) -> Option<Found> {
    let [number, unit, ..] = words else { return None };
    (number.is_number() && !number.ends && unit.is_lower()).then(|| told(format!("{} {}", number.text, unit.text)))
}

fn ask(be: &str, Measured { adjective, noun, text }: Measured<'_>) -> Vec<Asked> {
    let told = told(text);
    let is = if be == "are" { "is" } else { be };
    vec![asks(&format!("How {adjective} {be}"), "", &told), asks(&format!("What {is} the {noun} of"), "", &told)]
}
