//! What a sentence says of its subject: `has headed Purchasing since 2013`, `was founded in 1912`.

use super::object::is_person;
use super::verbs::{base_of_past, base_of_third, is_participle, past_of, third_of};
use super::wording::{Asked, asks, by_agent, how_many, how_many_of, when, with_name, with_name_before};
use super::words::{Found, NOUN_WORDS, PREPOSITIONS, Value, Word, joined};
use super::{BE, OBJECT_WORDS, PARTICLES, Reader};

/// Maximum number of words between `has` and `since`: `been a member of Sales since`.
const PERFECT_WORDS: usize = 7;
/// Words after `has` that say nothing of what it has.
const ADVERBS: [&str; 7] = ["already", "also", "always", "just", "now", "once", "since"];

/// A verb that has been read, in the forms that questions need.
pub(super) struct Verb<'a> {
    /// `does` or `did`.
    pub(super) does: &'a str,
    pub(super) base: String,
    /// As it was read.
    pub(super) read: String,
}

impl Reader<'_> {
    /// What is said of the page itself.
    pub(super) fn predicate(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (verb, mut rest) = words.split_first()?;
        // `has since travelled to 29 countries`
        if let [adverb, after @ ..] = rest
            && verb.is_one_of(&["has", "had"])
            && adverb.is_one_of(&ADVERBS)
        {
            rest = after;
        }
        let next = rest.first()?;
        if verb.is_one_of(&BE) {
            return self.being(verb.text, rest);
        }
        if verb.is_one_of(&["has", "had"]) {
            if is_participle(next.text) || next.text == "been" {
                return self.perfect(rest);
            }
            let does = if verb.text == "has" { "does" } else { "did" };
            let counted = how_many_of(does, "have", rest);
            if counted.is_some() || next.is_number() {
                return counted;
            }
            return self.active(&Verb { does, base: "have".to_owned(), read: verb.text.to_owned() }, rest);
        }
        if verb.text == "used" {
            return None; // `used to be`
        }
        let third = base_of_third(verb.text).map(|base| ("does", base));
        let (does, base) = third.or_else(|| Some(("did", base_of_past(verb.text)?)))?;
        self.active(&Verb { does, base, read: verb.text.to_owned() }, rest)
    }

    /// What follows `has`: `been with the company since 2003`, `headed Purchasing since 2013`.
    fn perfect(&self, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (participle, after) = rest.split_first()?;
        let since = rest.iter().position(|word| word.text == "since").filter(|since| (1..=PERFECT_WORDS).contains(since));
        let mut found = Vec::new();
        if let Some(since) = since.filter(|since| rest[..*since].iter().all(|word| !word.ends))
            && let Some(year) = self.value(&rest[since + 1..])
        {
            found.push(asks("Since when has", &joined(&rest[..since]), &year));
        }
        let now = &after[..since.map_or(after.len(), |since| since - 1)];
        found.extend(
            match participle.text {
                "been" => self.being("is", now),
                read => base_of_past(read).and_then(|base| {
                    let read = third_of(&base);
                    self.active(&Verb { does: "does", base, read }, now)
                }),
            }
            .unwrap_or_default(),
        );
        (!found.is_empty()).then_some(found)
    }

    /// What follows `is` or `was`.
    fn being(&self, be: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let (next, after) = rest.split_first()?;
        if is_participle(next.text) {
            return self.passive(be, next.text, after);
        }
        if let Some(measured) = self.measure(be, rest) {
            return Some(measured);
        }
        // `a member of the Faculty of Numbers`, `head of Sales`, `an engineer in Buoy Engineering`
        let noun = if next.is_article() { after } else { rest };
        if let Some(of) = noun.iter().position(|word| word.is_one_of(&PREPOSITIONS)).filter(|of| (1..=NOUN_WORDS).contains(of))
            && (next.is_article() || is_person(&joined(&noun[..of])))
            && noun[..of].iter().all(|word| word.is_lower() && !word.ends)
        {
            let of_what = self.value(&noun[of + 1..]).filter(|found| found.value == Value::Name)?;
            let until = joined(&rest[..rest.len() - noun.len() + of]);
            return match noun[of].text {
                "of" => Some(vec![with_name(
                    asks(&format!("What {be}"), &format!("{until} of"), &of_what),
                    "the one that",
                    &format!("{be} {until} of"),
                )]),
                "in" | "at" => {
                    // `a river in France` is asked for by `Where is the Loire?`
                    let until = if is_person(&until) { &until } else { "" };
                    let named = format!("{be} {until}");
                    Some(vec![with_name(asks(&format!("Where {be}"), until, &of_what), "the place where", named.trim_end())])
                }
                _ => None,
            };
        }
        if next.is_article() {
            return None;
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
    pub(super) fn passive(&self, be: &str, participle: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
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
                    let mut by = vec![
                        name(asks(&format!("Who {active}"), "", &told)),
                        name(asks(&format!("Who {be}"), &format!("{verb} by"), &told)),
                    ];
                    by.extend(base_of_past(participle).filter(|_| verb == participle).and_then(|base| by_agent(&base, &told)));
                    by
                }
                ("by", _) => break,
                ("to", Value::Words) => Vec::new(), // `cut to carry rain`
                ("for" | "at", Value::Number) if participle == "sold" => self.price(after).unwrap_or_default(),
                ("in" | "on" | "at" | "since", Value::Year | Value::Date | Value::Day) => when(be, &verb, &told),
                ("in" | "on" | "at", Value::Name | Value::Words) => {
                    vec![with_name(asks(&format!("Where {be}"), &verb, &told), "the place where", &format!("{be} {verb}"))]
                }
                ("from", Value::Name | Value::Words) => vec![asks(&format!("Where {be}"), &format!("{verb} from"), &told)],
                (_, Value::Name | Value::Words) => {
                    self.who_or_what(be, &format!("{verb} {preposition}"), &format!("{be} {verb} {preposition}"), &told)
                }
                _ => break,
            });
            rest = &after[told.length.min(after.len())..];
        }
        (!found.is_empty()).then_some(found)
    }

    /// What follows a verb of which the page is the subject.
    pub(super) fn active(&self, verb: &Verb<'_>, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let Verb { does, base, read } = verb;
        let (base, rest) = self.with_particle(base, rest);
        let (next, after) = rest.split_first()?;
        if next.is_count() {
            return self.amount(does, &base, rest).or_else(|| how_many(does, &base, rest));
        }
        if next.text == "for"
            && let Some(duration) = self.duration(does, &base, after)
        {
            return Some(duration);
        }
        if next.is_one_of(&PREPOSITIONS) {
            let told = self.value(after)?;
            return match (next.text, told.value) {
                ("in" | "on" | "at" | "since", Value::Year | Value::Date | Value::Day) => Some(when(does, &base, &told)),
                ("to", Value::Words) => None, // `plans to retire`
                ("in" | "on" | "at", Value::Words) if !after.first()?.is_article() => None,
                ("in" | "on" | "at", Value::Name | Value::Words) => {
                    Some(vec![with_name(asks(&format!("Where {does}"), &base, &told), "the place where", read)])
                }
                ("from", Value::Name | Value::Words) => Some(vec![asks(&format!("Where {does}"), &format!("{base} from"), &told)]),
                (preposition, Value::Name | Value::Words) => {
                    Some(self.who_or_what(does, &format!("{base} {preposition}"), &format!("{read} {preposition}"), &told))
                }
                _ => None,
            };
        }
        // `holds the post of Data Engineer`
        if next.is_article()
            && let Some(of) = after.iter().position(|word| word.text == "of").filter(|of| (1..NOUN_WORDS).contains(of))
            && after[..of].iter().all(Word::is_lower)
        {
            let told = self.value(&after[of + 1..])?;
            let has = told.value == Value::Number || ["have", "hold", "occupy"].contains(&base.as_str());
            return has.then(|| self.noun(&joined(&after[..of]), &told));
        }
        // `carries badge QT-8063`
        if next.is_lower()
            && !next.is_article()
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
            _ => whole.then(|| self.who_or_what(does, &base, read, &object)),
        }
    }

    /// A verb with the particle that belongs to it, and what follows.
    fn with_particle<'w, 'b>(&self, verb: &str, rest: &'w [Word<'b>]) -> (String, &'w [Word<'b>]) {
        match rest.split_first() {
            Some((particle, after)) if particle.is_one_of(&PARTICLES) => (format!("{verb} {}", particle.text), after),
            _ => (verb.to_owned(), rest),
        }
    }
}
