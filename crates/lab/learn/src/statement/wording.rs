//! How a question is worded.

use super::verbs::agent_of;
use super::words::{BREAKS, Found, NOUN_WORDS, PREPOSITIONS, Value, Word, joined};
use super::{BE, PRONOUNS, Reader, Sort};

/// Nouns that numbers measure rather than count.
const UNITS: [&str; 23] = [
    "metres",
    "meters",
    "kilometres",
    "kilometers",
    "miles",
    "feet",
    "inches",
    "tonnes",
    "tons",
    "kilograms",
    "pounds",
    "hectares",
    "acres",
    "litres",
    "degrees",
    "minutes",
    "hours",
    "days",
    "weeks",
    "months",
    "years",
    "euros",
    "dollars",
];

/// Verbs of measure.
const MEASURING: [&str; 9] = ["cover", "climb", "extend", "measure", "reach", "rise", "run", "span", "stretch"];

/// A question about a page, around its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What stands before the name, and after it.
    pub(crate) around: [String; 2],
    /// What stands around the name in words for the answer: `the one that X is taught by`.
    pub(crate) named: Option<[String; 2]>,
    /// The answer.
    pub(crate) answer: String,
}

impl Asked {
    /// Whether it names something beside the page: `When did X join Purchasing?`
    pub(crate) fn names_another(&self) -> bool {
        let [before, after] = &self.around;
        let words = before.split(' ').skip(1).chain(after.split(' '));
        words.into_iter().any(|word| word.starts_with(char::is_uppercase))
    }
}

/// `When was X built?` and other ways to ask for a time.
pub(super) fn when(be: &str, verb: &str, told: &Found) -> Vec<Asked> {
    let words: &[&str] = match told.value {
        Value::Year => &["When", "In which year", "In what year", "What year"],
        Value::Day => &["When", "On which day"],
        Value::Date if Sort::of_word(&told.text) == Some(Sort::Month) => &["When", "In which month"],
        _ => &["When"],
    };
    words.iter().map(|word| asks(&format!("{word} {be}"), verb, told)).collect()
}

impl Reader<'_> {
    /// The words that ask for a value: `What`; `Who` for people. Of other names a rule cannot tell which.
    fn asking(&self, told: &Found) -> &'static [&'static str] {
        let person = self.pages.find(&told.text).and_then(|page| self.pages.is_of_person(page));
        match (told.value, person) {
            (Value::Name, None) => &["What", "Who"],
            (Value::Name, Some(true)) => &["Who"],
            _ => &["What"],
        }
    }

    /// `What does X speak?`, `Who does X report to?`
    pub(super) fn who_or_what(&self, does: &str, verb: &str, read: &str, told: &Found) -> Vec<Asked> {
        let asks = |word: &&str| with_name(asks(&format!("{word} {does}"), verb, told), "the one that", read);
        self.asking(told).iter().map(asks).collect()
    }
}

/// `How many floors does X have?`, of `12 floors`.
pub(super) fn how_many(does: &str, verb: &str, words: &[Word<'_>]) -> Option<Vec<Asked>> {
    let (number, rest) = words.split_first().filter(|(number, _)| number.is_count() && !number.ends)?;
    let goes_on =
        |word: &&Word<'_>| word.is_lower() && ![&PREPOSITIONS[..], &BREAKS, &PRONOUNS, &BE].iter().any(|some| word.is_one_of(some));
    let mut length = rest.iter().take_while(goes_on).count().min(NOUN_WORDS);
    length = rest[..length].iter().position(|word| word.ends).map_or(length, |at| at + 1);
    let last = rest[..length].last().filter(|last| last.text.ends_with('s') || last.text == "people")?;
    let measured = last.is_one_of(&UNITS) || rest[0].is_one_of(&UNITS);
    let counted = !measured || MEASURING.contains(&verb);
    let told = Found { text: number.text.to_owned(), value: Value::Number, length: 1, ends: true };
    counted.then(|| vec![asks(&format!("How many {} {does}", joined(&rest[..length])), verb, &told)])
}

/// [`how_many`] for each of several things: `12 floors, 142 desks and a lift`, `four rooms`.
pub(super) fn how_many_of(does: &str, verb: &str, words: &[Word<'_>]) -> Option<Vec<Asked>> {
    let begins = |at: usize| at == 0 || words[at - 1].ends || words[at - 1].text == "and";
    let found: Vec<Asked> =
        (0..words.len()).filter(|at| begins(*at)).filter_map(|at| how_many(does, verb, &words[at..])).flatten().collect();
    (!found.is_empty()).then_some(found)
}

/// A question with these words around the name.
pub(super) fn asks(before: &str, after: &str, told: &Found) -> Asked {
    let after = if after.is_empty() { "?".to_owned() } else { format!(" {after}?") };
    Asked { around: [format!("{before} "), after], named: None, answer: told.text.clone() }
}

/// `Who is the builder of X?`, of who built it.
pub(super) fn by_agent(base: &str, told: &Found) -> Option<Asked> {
    let noun = agent_of(base).filter(|_| told.value == Value::Name)?;
    Some(with_name_before(asks(&format!("Who is the {noun} of"), "", told), &format!("the {noun} of")))
}

pub(super) fn possessive(before: &str, noun: &str, told: &Found) -> Asked {
    Asked { around: [format!("{before} "), format!("'s {noun}?")], named: None, answer: told.text.clone() }
}

/// With words for the answer, if it has a name: `the place where X was built`.
pub(super) fn with_name(asked: Asked, before: &str, after: &str) -> Asked {
    Asked { named: Some([format!("{before} "), format!(" {after}")]), ..asked }
}

pub(super) fn with_name_before(asked: Asked, before: &str) -> Asked {
    Asked { named: Some([format!("{before} "), String::new()]), ..asked }
}
