//! Sentences of a page, turned into the questions that they answer: `Tansley Court was built in 1912.`
//! answers `When was Tansley Court built?` with 1912. The forms of a handful of examples have few of
//! the relations of the pages, and ask for them with few words; these have all of them, and their
//! answers are certain. It is old practice to make questions of declarative sentences by rules and
//! let a model choose among them (Heilman and Smith, "Good Question!", 2010).
//!
//! Only plain sentences about the page itself are understood, as the writers of handbooks, directories
//! and wikis write them: `She is based at Vanmere`, `Launched in 2009`, `Its head is Ada Lind`, `Room: C2`.

mod claim;
mod comparison;
mod verbs;
mod wording;
mod words;

pub(crate) use self::claim::claim;
pub(crate) use self::comparison::{Wording, compared};
use self::verbs::{base_of_past, base_of_third, is_participle, past_of, third_of};
pub(crate) use self::wording::Asked;
use self::wording::{asks, how_many, possessive, when, who_or_what, with_name, with_name_before};
use self::words::{ARTICLES, Found, NOUN_WORDS, PREPOSITIONS, Value, Word, joined, words};
pub(crate) use self::words::{Sort, values};
use crate::pages::Pages;

/// Maximum number of words between a subject and what is asked for: `joined the company in`.
const OBJECT_WORDS: usize = 4;
const BE: [&str; 4] = ["is", "was", "are", "were"];
const PRONOUNS: [&str; 4] = ["she", "he", "it", "they"];
const POSSESSIVES: [&str; 4] = ["its", "her", "his", "their"];
const MEASURES: [&str; 7] = ["long", "high", "tall", "wide", "deep", "old", "heavy"];
/// Words that belong to the verb before them.
const PARTICLES: [&str; 6] = ["up", "out", "down", "off", "over", "away"];
/// Ends of nouns for people: `director`, `president`, `head`.
const PEOPLE: [&str; 14] = ["er", "tor", "sor", "ident", "udent", "agent", "tant", "ist", "man", "ian", "head", "dean", "chief", "captain"];
/// Verbs of which the page is the subject in `Joined: 1986`, not what it was done to.
const INTRANSITIVE: [&str; 7] = ["arrived", "began", "died", "joined", "left", "retired", "started"];

/// The questions that a sentence of a page answers; none, if it is not understood.
pub(crate) fn asked(sentence: &str, page: usize, pages: &Pages) -> Vec<Asked> {
    let reader = Reader { title: words(&pages.all()[page].title), pages };
    let key = sentence.split_once(": ").filter(|(key, _)| key.split_whitespace().count() <= OBJECT_WORDS);
    let mut found = match key {
        Some((key, value)) => reader.keyed(key, &words(value)),
        None => reader.stated(&words(sentence)),
    }
    .unwrap_or_default();
    found.retain(|one| one.answer != pages.all()[page].title);
    found
}

/// A verb that has been read, in the forms that questions need.
struct Verb<'a> {
    /// `does` or `did`.
    does: &'a str,
    base: String,
    /// As it was read.
    read: String,
}

struct Reader<'a> {
    title: Vec<Word<'a>>,
    pages: &'a Pages,
}

impl Reader<'_> {
    /// `Room: C2`, `Taught by: Ada Lind`.
    fn keyed(&self, key: &str, value: &[Word<'_>]) -> Option<Vec<Asked>> {
        let key = key.split(" / ").next().unwrap_or(key).to_lowercase();
        let read = words(&key);
        let (first, rest) = read.split_first()?;
        if key == "from" {
            let from = self.value(value)?;
            return Some(vec![asks("Where is", "from", &from), asks("Where does", "come from", &from)]);
        }
        if let Some(state) = key.strip_suffix(" since") {
            return Some(vec![asks("Since when has", &format!("been {state}"), &self.value(value)?)]);
        }
        // `Year hired`
        let (first, rest) = match rest {
            [participle] if first.text == "year" && is_participle(participle.text) => (participle, &rest[1..]),
            _ => (first, rest),
        };
        let after: Vec<Word<'_>> = rest.iter().chain(value).copied().collect();
        if is_participle(first.text) && !rest.last().is_some_and(|last| !last.is_one_of(&PREPOSITIONS) && !is_participle(last.text)) {
            return self.participle(first.text, &after);
        }
        if rest.first().is_some_and(|next| next.is_one_of(&PREPOSITIONS))
            && let Some(base) = base_of_third(first.text)
        {
            return self.active(&Verb { does: "does", base, read: first.text.to_owned() }, &after);
        }
        if first.is_one_of(&PREPOSITIONS) {
            return None;
        }
        Some(self.noun(&key, &self.value(value)?))
    }

    fn stated(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let lower = words.first()?.text.to_lowercase();
        if let Some((rest, possessive)) = self.after_name(words) {
            return if possessive { self.attribute(rest) } else { self.predicate(rest) };
        }
        let rest = &words[1..];
        if PRONOUNS.contains(&lower.as_str()) {
            return self.predicate(rest);
        }
        if POSSESSIVES.contains(&lower.as_str()) || lower == "the" {
            let counted = || match rest {
                [noun, _, number, ..] if lower == "the" && noun.is_lower() && number.is_number() => self.predicate(&rest[1..]),
                _ => None,
            };
            return self.attribute(rest).or_else(counted).or_else(|| self.inverse(words));
        }
        let next = rest.first()?;
        if lower == "there" && next.is_one_of(&BE) {
            return how_many("does", "have", &rest[1..]);
        }
        if words[0].is_number() {
            return how_many("does", "have", words);
        }
        let goes_on = next.is_number() || [&PREPOSITIONS[..], &PARTICLES, &ARTICLES, &["and"]].iter().any(|some| next.is_one_of(some));
        if is_participle(&lower) && words[0].text != lower && goes_on {
            return self.participle(&lower, rest);
        }
        let inverse = self.inverse(words);
        if inverse.is_some() {
            return inverse;
        }
        // `Birth year 1955`
        let number = words.iter().position(Word::is_number).filter(|at| (1..NOUN_WORDS).contains(at));
        if let Some(at) = number.filter(|at| words[1..*at].iter().all(Word::is_lower)) {
            let told = self.value(&words[at..]).filter(|told| at + told.length == words.len() || words[at + told.length - 1].ends)?;
            return Some(self.noun(&joined(&words[..at]).to_lowercase(), &told));
        }
        // `Speaks Low Vesk`
        let capitals = rest.iter().take_while(|word| !word.is_lower() && !word.is_number()).count();
        let ends = capitals > 0 && rest.get(capitals).is_none_or(|word| rest[capitals - 1].ends || word.is_one_of(&PREPOSITIONS));
        let named = next.is_one_of(&PREPOSITIONS) && self.value(&rest[1..]).is_some_and(|told| told.value == Value::Name);
        let base = base_of_third(&lower).filter(|_| ends || named)?;
        self.active(&Verb { does: "does", base, read: lower }, rest)
    }

    /// What follows a participle without a subject: `Launched in 2009`, `Joined the company in 1988`.
    fn participle(&self, participle: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let next = rest.first()?;
        if !next.is_article() && !INTRANSITIVE.contains(&participle) {
            // what is done still, or was done once, is left open: `Taught by Ada Lind`
            let mut found = self.passive("was", participle, rest)?;
            let now = self.passive("is", participle, rest).unwrap_or_default();
            found.extend(now.into_iter().filter(|one| ["Who", "Where"].iter().any(|word| one.around[0].starts_with(word))));
            return Some(found);
        }
        let verb = Verb { does: "did", base: base_of_past(participle)?, read: participle.to_owned() };
        match self.value(rest) {
            Some(told) if next.is_number() && told.value == Value::Year => Some(when("did", &verb.base, &told)),
            _ => self.active(&verb, rest),
        }
    }

    /// What follows the page's name, and whether the name was a possessive.
    fn after_name<'w, 'b>(&self, words: &'w [Word<'b>]) -> Option<(&'w [Word<'b>], bool)> {
        let words = if words.first()?.text.eq_ignore_ascii_case("the") && !self.title.first()?.text.eq_ignore_ascii_case("the") {
            &words[1..]
        } else {
            words
        };
        let (last, before) = self.title.split_last()?;
        let there = words.len() > before.len() && before.iter().zip(words).all(|(own, word)| own.text == word.text);
        let end = words.get(before.len()).filter(|_| there)?;
        let possessive = end.text.strip_suffix("'s").or_else(|| end.text.strip_suffix("’s")) == Some(last.text);
        (possessive || end.text == last.text).then(|| (&words[before.len() + 1..], possessive))
    }

    /// `head is Ada Lind`, after `Its`; `captain of Kestrel Bay is Sunniva Blaike`, after `The`.
    fn attribute(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let of = words.iter().position(|word| word.text == "of").filter(|of| *of <= NOUN_WORDS);
        let of = of.and_then(|of| Some((of, self.after_name(&words[of + 1..])?.0)));
        let (noun, rest) = match of {
            Some((of, rest)) => (&words[..of], rest),
            None => words.split_at(words.iter().position(|word| word.is_one_of(&BE))?),
        };
        let (be, rest) = rest.split_first()?;
        let plain = (1..=NOUN_WORDS).contains(&noun.len()) && noun.iter().all(|word| word.is_lower() && !word.ends);
        let told = rest.first().is_some_and(|next| !is_participle(next.text) && !next.is_one_of(&PREPOSITIONS));
        (plain && told && be.is_one_of(&BE)).then_some(())?;
        let told = self.value(rest).filter(|told| told.value != Value::Words || told.ends)?;
        Some(self.noun(&joined(noun), &told))
    }

    /// What is said of the page itself.
    fn predicate(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (verb, rest) = words.split_first()?;
        let next = rest.first()?;
        if verb.is_one_of(&BE) {
            return self.being(verb.text, rest);
        }
        if verb.is_one_of(&["has", "had"]) {
            if next.text == "been" {
                let since = rest.iter().position(|word| word.text == "since").filter(|since| (2..=OBJECT_WORDS).contains(since))?;
                let year = self.value(&rest[since + 1..])?;
                return Some(vec![asks("Since when has", &joined(&rest[..since]), &year)]);
            }
            let does = if verb.text == "has" { "does" } else { "did" };
            if !next.is_number() {
                return self.active(&Verb { does, base: "have".to_owned(), read: verb.text.to_owned() }, rest);
            }
            return how_many(does, "have", rest);
        }
        if verb.text == "used" {
            return None; // `used to be`
        }
        let third = base_of_third(verb.text).map(|base| ("does", base));
        let (does, base) = third.or_else(|| Some(("did", base_of_past(verb.text)?)))?;
        self.active(&Verb { does, base, read: verb.text.to_owned() }, rest)
    }

    /// What follows `is` or `was`.
    fn being(&self, be: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (next, after) = rest.split_first()?;
        if is_participle(next.text) {
            return self.passive(be, next.text, after);
        }
        if let [number, unit, measure, ..] = rest
            && number.is_number()
            && measure.is_one_of(&MEASURES)
        {
            let text = format!("{} {}", number.text, unit.text);
            return Some(vec![asks(
                &format!("How {} {be}", measure.text),
                "",
                &Found { text, value: Value::Number, length: 2, ends: true },
            )]);
        }
        if next.is_article() {
            // `a member of the Faculty of Numbers`
            let of = after.iter().position(|word| word.text == "of").filter(|of| (1..NOUN_WORDS).contains(of))?;
            let of_what = self.value(&after[of + 1..]).filter(|found| found.value == Value::Name)?;
            return Some(vec![with_name(
                asks(&format!("What {be}"), &joined(&rest[..of + 2]), &of_what),
                "the one that",
                &format!("{be} {}", joined(&rest[..of + 2])),
            )]);
        }
        if next.is_one_of(&PREPOSITIONS) {
            let place = self.value(after).filter(|found| found.value == Value::Name)?;
            return match next.text {
                "from" => Some(vec![asks(&format!("Where {be}"), "from", &place)]),
                "in" | "at" | "on" => Some(vec![with_name(asks(&format!("Where {be}"), "", &place), "the place where", be)]),
                _ => None,
            };
        }
        // `worth 6 credits`
        after.first().filter(|number| number.is_number() && next.is_lower())?;
        how_many(be, next.text, after)
    }

    /// What follows `was built`.
    fn passive(&self, be: &str, participle: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (verb, mut rest) = self.with_particle(participle, rest);
        // `built and launched 2008`
        if let [and, other, after @ ..] = rest
            && and.text == "and"
            && is_participle(other.text)
        {
            rest = after;
        }
        let mut found = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            let (preposition, told) = match first.text {
                word if PREPOSITIONS.contains(&word) => (word, self.value(after)),
                _ if first.is_number() && found.is_empty() => {
                    ("in", self.value(rest).map(|told| Found { length: told.length - 1, ..told }))
                }
                _ => break,
            };
            let Some(told) = told else { break };
            let past = matches!(be, "was" | "were");
            found.extend(match (preposition, told.value) {
                ("by", Value::Name | Value::Words) => {
                    let active = if past { past_of(participle).to_owned() } else { third_of(&base_of_past(participle)?) };
                    let active = verb.replacen(participle, &active, 1);
                    let name = |one| with_name_before(one, &format!("the one who {active}"));
                    vec![name(asks(&format!("Who {active}"), "", &told)), name(asks(&format!("Who {be}"), &format!("{verb} by"), &told))]
                }
                ("by", _) => break,
                ("in" | "on" | "at" | "since", Value::Year | Value::Date | Value::Day) => when(be, &verb, &told),
                ("in" | "on" | "at", Value::Name | Value::Words) => {
                    vec![with_name(asks(&format!("Where {be}"), &verb, &told), "the place where", &format!("{be} {verb}"))]
                }
                ("from", Value::Name | Value::Words) => vec![asks(&format!("Where {be}"), &format!("{verb} from"), &told)],
                (_, Value::Name | Value::Words) => {
                    who_or_what(be, &format!("{verb} {preposition}"), &format!("{be} {verb} {preposition}"), &told)
                }
                _ => break,
            });
            rest = &after[told.length.min(after.len())..];
        }
        (!found.is_empty()).then_some(found)
    }

    /// What follows a verb of which the page is the subject.
    fn active(&self, verb: &Verb<'_>, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let Verb { does, base, read } = verb;
        let (base, rest) = self.with_particle(base, rest);
        let (next, after) = rest.split_first()?;
        if next.is_number() {
            return how_many(does, &base, rest);
        }
        if next.is_one_of(&PREPOSITIONS) {
            let told = self.value(after)?;
            return match (next.text, told.value) {
                ("in" | "on" | "at" | "since", Value::Year | Value::Date | Value::Day) => Some(when(does, &base, &told)),
                ("in" | "on" | "at", Value::Name | Value::Words) => {
                    Some(vec![with_name(asks(&format!("Where {does}"), &base, &told), "the place where", read)])
                }
                ("from", Value::Name | Value::Words) => Some(vec![asks(&format!("Where {does}"), &format!("{base} from"), &told)]),
                (preposition, Value::Name | Value::Words) => {
                    Some(who_or_what(does, &format!("{base} {preposition}"), &format!("{read} {preposition}"), &told))
                }
                _ => None,
            };
        }
        // `holds the post of Data Engineer`
        if next.is_article()
            && let Some(of) = after.iter().position(|word| word.text == "of").filter(|of| (1..NOUN_WORDS).contains(of))
            && after[..of].iter().all(Word::is_lower)
        {
            return Some(self.noun(&joined(&after[..of]), &self.value(&after[of + 1..])?));
        }
        // `carries badge QT-8063`
        if next.is_lower()
            && let Some(code) = after.first().filter(|code| code.text.contains(|c: char| c.is_ascii_digit()))
        {
            let told = Found { text: code.text.to_owned(), value: Value::Name, length: 1, ends: true };
            return Some(vec![
                asks(&format!("What {} {does}", next.text), &base, &told),
                asks(&format!("What is the {} of", next.text), "", &told),
            ]);
        }
        let object = self.value(rest).filter(|object| object.length <= OBJECT_WORDS && object.value != Value::Day)?;
        let whole = object.ends || object.value == Value::Name;
        let time = match &rest[object.length..] {
            [of, after @ ..] if of.is_one_of(&["in", "on", "since"]) && !rest[object.length - 1].ends => self.value(after),
            _ => None,
        };
        match time {
            Some(time) if matches!(time.value, Value::Year | Value::Date | Value::Day) => {
                Some(when(does, &format!("{base} {}", joined(&rest[..object.length])), &time))
            }
            _ => whole.then(|| who_or_what(does, &base, read, &object)),
        }
    }

    /// `Anders Pook gives this course.`
    fn inverse(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let stands_for_it = |at: usize| {
            words[at].is_one_of(&["it", "him", "her", "them"]) && words[at].ends
                || words[at].text == "this" && words.get(at + 1).is_some_and(|noun| noun.is_lower())
                || self.after_name(&words[at..]).is_some_and(|(_, possessive)| !possessive)
        };
        let object = (2..words.len()).find(|at| stands_for_it(*at))?;
        let verb = words[object - 1];
        (base_of_third(verb.text).is_some() || base_of_past(verb.text).is_some()).then_some(())?;
        let subject = self.value(words).filter(|subject| subject.length == object - 1 && subject.value == Value::Name)?;
        let name = |one| with_name_before(one, &format!("the one who {}", verb.text));
        Some(vec![name(asks(&format!("Who {}", verb.text), "", &subject))])
    }

    /// Questions for a noun with a value.
    fn noun(&self, noun: &str, told: &Found) -> Vec<Asked> {
        let counted = noun.strip_prefix("number of ").or_else(|| noun.strip_prefix("no. of "));
        if let Some(counted) = counted.filter(|_| told.value == Value::Number) {
            return vec![asks(&format!("How many {counted} does"), "have", told)];
        }
        let name = |one| with_name_before(one, &format!("the {noun} of"));
        let mut found = vec![name(asks(&format!("What is the {noun} of"), "", told)), possessive("What is", noun, told)];
        if told.value == Value::Name && PEOPLE.iter().any(|end| noun.ends_with(end)) && !noun.ends_with("number") {
            found.extend([name(asks(&format!("Who is the {noun} of"), "", told)), possessive("Who is", noun, told)]);
        }
        if told.value == Value::Year && noun.contains("birth") {
            found.extend(when("was", "born", told));
        }
        if told.value == Value::Number && noun.ends_with('s') && !noun.contains('.') {
            found.push(asks(&format!("How many {noun} does"), "have", told));
        }
        found
    }

    /// A verb with the particle that belongs to it, and what follows.
    fn with_particle<'w, 'b>(&self, verb: &str, rest: &'w [Word<'b>]) -> (String, &'w [Word<'b>]) {
        match rest.split_first() {
            Some((particle, after)) if particle.is_one_of(&PARTICLES) => (format!("{verb} {}", particle.text), after),
            _ => (verb.to_owned(), rest),
        }
    }
}

#[cfg(test)]
mod tests;
