//! Sentences of a page, turned into the questions that they answer: `Tansley Court was built in 1912.`
//! answers `When was Tansley Court built?` with 1912. The forms of a handful of examples have few of
//! the relations of the pages, and ask for them with few words; these have all of them, and their
//! answers are certain. It is old practice to make questions of declarative sentences by rules and
//! let a model choose among them (Heilman and Smith, "Good Question!", 2010).
//!
//! Only plain sentences about the page itself are understood, as the writers of handbooks, directories
//! and wikis write them: `She is based at Vanmere`, `Launched in 2009`, `Its head is Ada Lind`, `Room: C2`.

use std::collections::BTreeSet;

mod claim;
mod clauses;
mod comparison;
mod lexicon;
mod line;
mod measure;
mod object;
mod predicate;
mod subject;
mod verbs;
mod wording;
mod words;

pub(crate) use self::claim::claim;
use self::clauses::plain;
pub(crate) use self::comparison::{Wording, compared};
pub(crate) use self::lexicon::Lexicon;
use self::line::is_key;
use self::object::{are_noun, is_person};
use self::predicate::Verb;
use self::subject::{Names, behind_apposition, is_verb};
pub(crate) use self::verbs::is_past;
use self::verbs::{base_of_past, base_of_third, is_base, is_participle};
pub(crate) use self::wording::Asked;
use self::wording::{asks, how_many, how_many_of, possessive, when, with_name_before};
use self::words::{ARTICLES, Found, NOUN_WORDS, PREPOSITIONS, Value, Word, joined, words};
pub(crate) use self::words::{Sort, values};
use autoact_score::normalize;

use crate::filter::within;
use crate::pages::Pages;

/// Longer sentences are not read: they are lists or tables, and reading takes the square of their
/// length.
const SENTENCE_WORDS: usize = 80;
/// Maximum number of words between a subject and what is asked for: `joined the company in`.
const OBJECT_WORDS: usize = 4;
const BE: [&str; 4] = ["is", "was", "are", "were"];
/// `I`: some people write their own pages.
const PRONOUNS: [&str; 5] = ["she", "he", "it", "they", "i"];
const POSSESSIVES: [&str; 6] = ["its", "her", "his", "their", "my", "our"];
/// Words that belong to the verb before them.
const PARTICLES: [&str; 8] = ["up", "out", "down", "off", "over", "away", "back", "together"];
/// Verbs of which the page is the subject in `Joined: 1986`, not what it was done to.
const INTRANSITIVE: [&str; 7] = ["arrived", "began", "died", "joined", "left", "retired", "started"];
/// Verbs that end like nouns for people.
const IN_ER: [&str; 6] = ["answers", "covers", "delivers", "enters", "offers", "orders"];

/// Words that stand in questions about anything.
const QUESTION_WORDS: [&str; 26] = [
    "and", "are", "day", "did", "do", "does", "for", "has", "have", "how", "in", "is", "many", "much", "of", "on", "s", "since", "the",
    "was", "what", "when", "where", "which", "who", "year",
];

/// Reads the sentences of a page.
pub(crate) struct Reader<'a> {
    page: usize,
    names: Names<'a>,
    pages: &'a Pages,
    lexicon: &'a Lexicon,
}

impl<'a> Reader<'a> {
    pub(crate) fn of(page: usize, pages: &'a Pages, lexicon: &'a Lexicon) -> Reader<'a> {
        Reader { page, names: Names::of(page, pages, lexicon), pages, lexicon }
    }

    /// The questions that a sentence of the page answers; none, if it is not understood.
    pub(crate) fn asked(&self, sentence: &str) -> Vec<Asked> {
        if sentence.split_whitespace().nth(SENTENCE_WORDS).is_some() {
            return Vec::new();
        }
        let read = |part: &str| -> Vec<Asked> {
            match part.split_once(": ").filter(|(key, _)| is_key(key)) {
                Some((key, value)) => self.keyed(key, &words(value)).unwrap_or_default(),
                None => self.told(&plain(&words(part))),
            }
        };
        // `Zone: B. Opened: 1911.`
        let keys = sentence.matches(": ").count() > 1;
        let parts = sentence.split("; ").flat_map(|part| if keys { part.split(". ").collect() } else { vec![part] });
        let whole = normalize(sentence);
        let mut found: Vec<Asked> = Vec::new();
        for one in parts.flat_map(read) {
            let told = one.answer != self.pages.all()[self.page].title && within(&normalize(&one.answer), &whole);
            if told && !found.contains(&one) {
                found.push(one);
            }
        }
        found
    }

    /// The words of all questions that the page answers, without those that any question has.
    pub(crate) fn asked_words(&self) -> BTreeSet<String> {
        let all = self.pages.all()[self.page].sentences().into_iter().flat_map(|sentence| self.asked(sentence));
        let text: String = all.map(|one| one.around.join(" ").to_lowercase()).collect::<Vec<_>>().join(" ");
        words(&text).into_iter().filter(|word| !word.is_one_of(&QUESTION_WORDS)).map(|word| word.text.to_owned()).collect()
    }

    fn stated(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let lower = words.first()?.text.to_lowercase();
        if let Some((rest, possessive)) = self.names.after(words) {
            if possessive {
                return self.of_its_own(rest);
            }
            // `Corbel Rail, seat in Lanz, founded in 1951`
            let apposed = words[words.len() - rest.len() - 1].ends;
            let rest = if apposed { behind_apposition(rest) } else { rest };
            return match rest.first() {
                Some(verb) if apposed && is_participle(verb.text) && !INTRANSITIVE.contains(&verb.text) => {
                    self.participle(verb.text, &rest[1..])
                }
                _ => self.predicate(rest),
            };
        }
        let rest = &words[1..];
        if PRONOUNS.contains(&lower.as_str()) {
            return self.predicate(rest);
        }
        if POSSESSIVES.contains(&lower.as_str()) {
            return self.of_its_own(rest);
        }
        if lower == "the" {
            let counted = || match rest {
                [noun, _, number, ..] if noun.is_lower() && number.is_number() => self.predicate(&rest[1..]),
                _ => None,
            };
            let part = || {
                self.part(rest, |one, noun| Asked { around: [format!("{}the {noun} of ", one.around[0]), one.around[1].clone()], ..one })
            };
            return self.attribute(rest).or_else(counted).or_else(|| self.called(rest)).or_else(|| self.inverse(words)).or_else(part);
        }
        let next = rest.first()?;
        if lower == "there" && next.is_one_of(&BE) {
            return how_many_of("does", "have", &rest[1..]);
        }
        if lower == "with" && next.is_number() && (2..rest.len()).any(|at| self.names.are_topic(&rest[at..])) {
            return how_many("does", "have", rest);
        }
        if words[0].is_count() {
            return how_many("does", "have", words);
        }
        let goes_on = next.is_number() || [&PREPOSITIONS[..], &PARTICLES, &ARTICLES, &["and"]].iter().any(|some| next.is_one_of(some));
        if is_participle(&lower) && words[0].text != lower && goes_on {
            return self.participle(&lower, rest);
        }
        let of_another = self.inverse(words).or_else(|| self.holder(words)).or_else(|| self.called(words));
        if of_another.is_some() {
            return of_another;
        }
        // `Takes 165 passengers`
        if let Some(base) = base_of_third(&lower).filter(|_| next.is_count())
            && let Some(counted) = how_many("does", &base, rest)
        {
            return Some(counted);
        }
        // `Birth year 1955`
        let number = words.iter().position(Word::is_number).filter(|at| (1..NOUN_WORDS).contains(at));
        let is_noun = |at: &usize| {
            let verb = |word: &Word<'_>| {
                let lower = word.text.to_lowercase();
                is_base(&lower) || base_of_past(&lower).is_some()
            };
            words[1..*at].iter().all(Word::is_lower) && are_noun(&words[..*at]) && !words[..*at].iter().any(verb)
        };
        let title = self.value(words).is_some_and(|told| self.pages.find(&told.text).is_some());
        if let Some(at) = number.filter(|at| is_noun(at) && !title) {
            let told = self.value(&words[at..]).filter(|told| at + told.length == words.len() || words[at + told.length - 1].ends)?;
            // `Call extension 140`
            let noun = if self.lexicon.is_numbered(words[at - 1].text) { at - 1 } else { 0 };
            return Some(self.noun(&joined(&words[noun..at]).to_lowercase(), &told));
        }
        // `Speaks Low Vesk`
        let capitals = rest.iter().take_while(|word| !word.is_lower() && !word.is_number()).count();
        let ends = capitals > 0 && rest.get(capitals).is_none_or(|word| rest[capitals - 1].ends || word.is_one_of(&PREPOSITIONS));
        let named = next.is_one_of(&PREPOSITIONS) && self.value(&rest[1..]).is_some_and(|told| told.value == Value::Name);
        // `Coachbuilders in Dorfield` are no verb
        let agent = named && ["ers", "ors"].iter().any(|end| lower.ends_with(end)) && !IN_ER.contains(&lower.as_str());
        let base = base_of_third(&lower).filter(|_| (ends || named) && !agent)?;
        self.active(&Verb { does: "does", base, read: lower }, rest)
    }

    /// `head is Ada Lind`, after `Its`; `captain of Kestrel Bay is Sunniva Blaike`, after `The`.
    fn attribute(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let of = words.iter().position(|word| word.text == "of").filter(|of| *of <= NOUN_WORDS);
        let of = of.and_then(|of| Some((of, self.names.after(&words[of + 1..])?.0)));
        let (noun, rest) = match of {
            Some((of, rest)) => (&words[..of], rest),
            None => words.split_at(words.iter().position(|word| word.is_one_of(&BE))?),
        };
        let (be, rest) = rest.split_first()?;
        let plain = (1..=NOUN_WORDS).contains(&noun.len()) && noun.iter().all(Word::is_lower) && are_noun(noun);
        // `The nearest stop is called Stocznia.`
        let rest = rest.split_first().filter(|(called, _)| called.text == "called").map_or(rest, |(_, rest)| rest);
        let told = rest.first().is_some_and(|next| !is_participle(next.text) && !next.is_one_of(&PREPOSITIONS));
        (plain && told && be.is_one_of(&BE)).then_some(())?;
        // `The gravel is 40 centimetres deep`
        if let Some(mut measured) = self.measure(be.text, rest) {
            measured.iter_mut().for_each(|one| one.around[0] += &format!("the {} of ", joined(noun)));
            return Some(measured);
        }
        let told = self.value(rest).filter(|told| told.value != Value::Words || told.ends)?;
        Some(self.noun(&joined(noun), &told))
    }

    /// What follows the page's name as a possessive, or `its`.
    fn of_its_own(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        if words.first()?.is_number() {
            return how_many("does", "have", words);
        }
        let owned = |one: Asked, noun: &str| Asked { around: [one.around[0].clone(), format!("'s {noun}{}", one.around[1])], ..one };
        self.attribute(words).or_else(|| self.called(words)).or_else(|| self.part(words, owned))
    }

    /// What is said of something that belongs to the page: `cable is made by Kabelwerk Ansgar`.
    /// `owned` puts it into a question about the page.
    fn part(&self, words: &[Word<'_>], owned: impl Fn(Asked, &str) -> Asked) -> Option<Vec<Asked>> {
        let verb = words.iter().position(is_verb).filter(|verb| (1..=NOUN_WORDS).contains(verb))?;
        let noun = words[..verb].iter().all(|word| word.is_lower() && !word.ends).then(|| joined(&words[..verb]))?;
        let mut found = self.predicate(&words[verb..])?;
        found.retain(|one| one.answer.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()));
        Some(found.into_iter().map(|one| owned(Asked { named: None, ..one }, &noun)).collect())
    }

    /// Questions for a noun with a value.
    fn noun(&self, noun: &str, told: &Found) -> Vec<Asked> {
        let counted = noun.strip_prefix("number of ").or_else(|| noun.strip_prefix("no. of "));
        if let Some(counted) = counted.filter(|_| told.value == Value::Number) {
            return vec![asks(&format!("How many {counted} does"), "have", told)];
        }
        let name = |one| with_name_before(one, &format!("the {noun} of"));
        let mut found = vec![name(asks(&format!("What is the {noun} of"), "", told)), possessive("What is", noun, told)];
        if told.value == Value::Name && is_person(noun) {
            found.extend([name(asks(&format!("Who is the {noun} of"), "", told)), possessive("Who is", noun, told)]);
        }
        if told.value == Value::Year && noun.contains("birth") {
            found.extend(when("was", "born", told));
        }
        let count = told.value == Value::Number && !told.text.contains(' ');
        if count && noun.ends_with('s') && !noun.contains('.') {
            found.push(asks(&format!("How many {noun} does"), "have", told));
        }
        found
    }
}

#[cfg(test)]
mod tests;
