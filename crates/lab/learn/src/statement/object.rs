//! Sentences about somebody else, that tell something of the page: `Ada Lind looks after it.`

use super::subject::is_verb;
use super::verbs::{base_of_past, base_of_third, is_base, is_participle, participle_of};
use super::wording::{Asked, asks, by_agent, when, with_name_before};
use super::words::{BREAKS, Found, NOUN_WORDS, PREPOSITIONS, Value, Word, joined};
use super::{BE, PARTICLES, POSSESSIVES, PRONOUNS, Reader};

/// Maximum number of words between a subject and the page: `has looked after`.
const VERB_WORDS: usize = 4;
/// Ends of nouns for people: `director`, `president`, `head`.
const PEOPLE: [&str; 14] = ["er", "tor", "sor", "ident", "udent", "agent", "tant", "ist", "man", "ian", "head", "dean", "chief", "captain"];
/// Nouns that end so, but are for things.
const THINGS: [&str; 12] =
    ["border", "computer", "corner", "letter", "number", "order", "paper", "power", "river", "theater", "tower", "water"];

impl Reader<'_> {
    /// `Anders Pook gives this course.`, `Ada Lind has looked after it since 2009.`
    pub(super) fn inverse(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let object = (2..words.len()).find(|at| self.names.are_object(&words[*at..]))?;
        let named = |at: usize| self.value(&words[..at]).filter(|told| told.length == at && self.is_name(told) && !words[at - 1].ends);
        let subject = (1..object).filter(|at| words[*at].is_lower()).find_map(named)?;
        let verb = words.get(subject.length..object).filter(|verb| (1..=VERB_WORDS).contains(&verb.len()))?;
        let (first, more) = verb.split_first()?;
        let plain = base_of_third(first.text).is_some() || base_of_past(first.text).is_some();
        let belongs = |word: &Word<'_>| word.is_one_of(&PREPOSITIONS) || word.is_one_of(&PARTICLES);
        let fits = match (first.text, more) {
            ("has" | "had", [participle, rest @ ..]) => is_participle(participle.text) && rest.iter().all(belongs),
            _ => plain && more.len() <= 1 && more.iter().all(belongs),
        };
        (fits && verb.iter().all(|word| !word.ends)).then_some(())?;
        let did = joined(verb);
        let name = |one| with_name_before(one, &format!("the one who {did}"));
        let mut found = vec![name(asks(&format!("Who {did}"), "", &subject))];
        if let [only] = verb {
            let base = base_of_third(only.text).or_else(|| base_of_past(only.text));
            found.extend(base.and_then(|base| by_agent(&base, &subject)));
        }
        // `Ada Lind built it in 1912`
        let of_it = &words[object..];
        if let [it, preposition, after @ ..] = of_it
            && let Some(participle) = base_of_past(first.text).filter(|_| more.is_empty()).and_then(|base| participle_of(&base))
            && it.text == "it"
            && preposition.text == "in"
            && let Some(year) = self.value(after).filter(|told| told.value == Value::Year)
        {
            found.extend(when("was", &participle, &year));
        }
        Some(found)
    }

    /// `Emil Thorsager is the deputy head.`, `Ada Lind has been its head since 2010.`
    pub(super) fn holder(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (at, length) = (1..words.len()).find_map(|at| match &words[at..] {
            [be, ..] if be.is_one_of(&BE) => Some((at, 1)),
            [has, been, ..] if has.text == "has" && been.text == "been" => Some((at, 2)),
            _ => None,
        })?;
        let told = self.value(&words[..at]).filter(|told| self.is_name(told) && told.length == at)?;
        let after = &words[at + length..];
        let bare = Word { text: "", ends: false };
        let (of, rest) = after.split_first().filter(|(of, _)| of.is_one_of(&POSSESSIVES) || of.text == "the").unwrap_or((&bare, after));
        let stops = |word: &Word<'_>| word.is_one_of(&PREPOSITIONS) || word.is_one_of(&BREAKS);
        let end = rest.iter().position(stops).unwrap_or(rest.len());
        let end = rest[..end].iter().position(|word| word.ends).map_or(end, |at| at + 1);
        let is_noun = |word: &Word<'_>| word.is_lower() && self.is_noun(word);
        let noun = rest.get(..end).filter(|noun| (1..=NOUN_WORDS).contains(&noun.len()) && noun.iter().all(is_noun))?;
        let own = rest.get(end).is_none_or(|next| noun[end - 1].ends || next.text != "of" || self.names.are_object(&rest[end + 1..]));
        (own && (of.is_one_of(&POSSESSIVES) || is_person(&joined(noun)))).then(|| self.noun(&joined(noun), &told))
    }

    /// `Office manager Priit Sooväli keeps the list.`, `Call sign Heron`: a noun, then a name.
    pub(super) fn called(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let count = 1 + words.get(1..)?.iter().take_while(|word| word.is_lower() && !word.is_one_of(&PREPOSITIONS)).count();
        let noun: Vec<String> = words[..count].iter().map(|word| word.text.to_lowercase()).collect();
        let known = words[..count].iter().all(|word| self.is_noun(word) && !word.ends) && self.pages.find(&joined(words)).is_none();
        (count <= NOUN_WORDS && known).then_some(())?;
        let name = words[count..].iter().take_while(|word| !word.is_lower() && !word.is_number()).count();
        let person = is_person(&joined(&words[..count])) && name > 1;
        let whole = (1..=NOUN_WORDS).contains(&name) && count + name == words.len() && base_of_third(&noun[0]).is_none();
        let told = self.value(&words[count..count + name]).filter(|told| told.value == Value::Name && told.length == name)?;
        let verb = words.get(count + name).is_none_or(|next| is_verb(next) || words[count + name - 1].ends);
        (whole || person && verb).then(|| self.noun(&noun.join(" "), &told))
    }

    /// Whether a word may be a part of a noun: some page has it in small letters, and it is no verb of
    /// the past and no word of grammar.
    pub(super) fn is_noun(&self, word: &Word<'_>) -> bool {
        let lower = word.text.to_lowercase();
        let other = is_function(&lower) || is_participle(&lower) || word.is_count() || is_base(&lower);
        self.pages.is_word(&lower) && !other && base_of_past(&lower).is_none()
    }

    /// Whether a value is a name, and not only the first word of a sentence.
    fn is_name(&self, told: &Found) -> bool {
        let first = told.text.split_whitespace().next().unwrap_or_default();
        told.value == Value::Name && (self.pages.find(&told.text).is_some() || !self.pages.is_word(&first.to_lowercase()))
    }
}

/// Whether words may be a noun, such as `year of birth`.
pub(super) fn are_noun(words: &[Word<'_>]) -> bool {
    let last = words.len().saturating_sub(1);
    let inner = |(at, word): (usize, &Word<'_>)| (1..last).contains(&at) && word.text == "of";
    words.iter().enumerate().all(|(at, word)| !word.ends && (inner((at, word)) || !is_function(&word.text.to_lowercase())))
}

/// Whether a word is no noun.
pub(super) fn is_function(word: &str) -> bool {
    let lists = [&BE[..], &PRONOUNS, &POSSESSIVES, &PREPOSITIONS, &BREAKS, &["has", "had", "no", "not", "the", "a", "an"]];
    lists.iter().any(|list| list.contains(&word))
}

/// Whether a noun is for a person: `office manager`.
pub(super) fn is_person(noun: &str) -> bool {
    let last = noun.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    !THINGS.contains(&last.as_str()) && PEOPLE.iter().any(|end| last.ends_with(end))
}
