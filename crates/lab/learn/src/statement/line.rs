//! Lines that are no sentences: with a key, as `Room: C2`, and without a verb, as `Launched in 2009`.

use super::predicate::Verb;
use super::verbs::{base_of_past, base_of_third, is_participle};
use super::wording::{Asked, asks, how_many, when, with_name};
use super::words::{BREAKS, PREPOSITIONS, Value, Word, joined, words};
use super::{BE, INTRANSITIVE, OBJECT_WORDS, PRONOUNS, Reader};

/// Maximum number of words before the year of `In service since 1903`.
const STATE_WORDS: usize = 3;

/// Whether what stands before a colon is a key.
pub(super) fn is_key(text: &str) -> bool {
    let lower = text.to_lowercase();
    let read = words(&lower);
    let sentence =
        read.iter().any(|word| word.is_one_of(&BE)) || read.first().is_none_or(|word| word.is_count() || word.is_one_of(&["no", "not"]));
    let key = !sentence && !text.contains(',');
    key && text.split_whitespace().count() <= OBJECT_WORDS
}

impl Reader<'_> {
    /// `Room: C2`, `Taught by: Ada Lind`.
    pub(super) fn keyed(&self, key: &str, value: &[Word<'_>]) -> Option<Vec<Asked>> {
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

    /// What follows a participle without a subject: `Launched in 2009`, `Joined the company in 1988`.
    pub(super) fn participle(&self, participle: &str, rest: &[Word<'_>]) -> Option<Vec<Asked>> {
        let next = rest.first()?;
        if !next.is_article() && !INTRANSITIVE.contains(&participle) {
            // what is done still, or was done once, is left open: `Taught by Ada Lind`
            let mut found = self.passive("was", participle, rest)?;
            let now = self.passive("is", participle, rest).filter(|_| participle != "born").unwrap_or_default();
            found.extend(now.into_iter().filter(|one| ["Who", "Where"].iter().any(|word| one.around[0].starts_with(word))));
            return Some(found);
        }
        let verb = Verb { does: "did", base: base_of_past(participle)?, read: participle.to_owned() };
        match self.value(rest) {
            Some(told) if next.is_number() && told.value == Value::Year => Some(when("did", &verb.base, &told)),
            _ => self.active(&verb, rest),
        }
    }

    /// Lines without a verb: `Oldest depot, opened 1899, 4 tracks`, `In service since 1903`.
    pub(super) fn fragment(&self, words: &[Word<'_>]) -> Vec<Asked> {
        let sentence = |word: &Word<'_>| {
            let lower = word.text.to_lowercase();
            BE.contains(&lower.as_str())
                || PRONOUNS.contains(&lower.as_str())
                || word.is_one_of(&["has", "had", "and"])
                || word.is_one_of(&BREAKS)
        };
        if words.iter().any(sentence) {
            return Vec::new();
        }
        if let Some(since) = words.iter().position(|word| word.text == "since").filter(|since| (1..=STATE_WORDS).contains(since))
            && PREPOSITIONS.contains(&words[0].text.to_lowercase().as_str())
        {
            let state = joined(&words[..since]).to_lowercase();
            return self
                .value(&words[since + 1..])
                .map(|year| asks("Since when has", &format!("been {state}"), &year))
                .into_iter()
                .collect();
        }
        // `Terminus of Line 2`, `Head of Sales since 2006`
        let count = words.iter().position(|word| word.text == "of").filter(|of| (1..=STATE_WORDS).contains(of));
        let noun = |of: &usize| words[..*of].iter().all(|word| self.is_noun(word) && !word.ends);
        let told =
            count.filter(noun).and_then(|of| Some((of, self.value(&words[of + 1..])?))).filter(|(_, told)| told.value == Value::Name);
        let mut found = self.called(words).unwrap_or_default();
        if let Some((of, told)) = told {
            let noun = joined(&words[..of]).to_lowercase();
            found.push(with_name(asks("What is", &format!("the {noun} of"), &told), "the one that", &format!("is the {noun} of")));
        }
        for part in words.split_inclusive(|word| word.ends) {
            let Some(first) = part.first() else { continue };
            if first.is_count() {
                found.extend(how_many("does", "have", part).filter(|_| part.len() <= STATE_WORDS).unwrap_or_default());
            } else if is_participle(first.text) && part.get(1).is_some_and(|next| next.is_number() || next.is_one_of(&PREPOSITIONS)) {
                found.extend(self.participle(first.text, &part[1..]).unwrap_or_default());
            }
        }
        found
    }
}
