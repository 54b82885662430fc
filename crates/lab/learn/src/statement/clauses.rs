//! The clauses of a sentence: most sentences of prose say several things, `The gate opens at 9 and is
//! kept by Ada Lind`.

use super::subject::is_verb;
use super::verbs::{base_of_third, is_participle};
use super::wording::{Asked, how_many};
use super::words::{BREAKS, Found, PREPOSITIONS, Value, Word};
use super::{POSSESSIVES, PRONOUNS, Reader};
use crate::form::answers::is_year;

/// Words that say how near a number is, or how something is done: what is said stays the same.
const NEAR: [&str; 9] = ["about", "almost", "around", "exactly", "nearly", "only", "over", "roughly", "some"];
const ADVERBS: [&str; 10] = ["also", "alone", "currently", "itself", "just", "mostly", "now", "still", "today", "usually"];

/// The words without those that say how near a number is, or how something is done.
pub(super) fn plain<'b>(words: &[Word<'b>]) -> Vec<Word<'b>> {
    let left_out = |at: usize| {
        let Some(next) = words.get(at + 1).filter(|_| !words[at].ends) else { return false };
        let near = words[at].is_one_of(&NEAR) && next.is_number() && !is_year(next.text);
        near || words[at].is_one_of(&ADVERBS) && at > 0 && (is_verb(next) || is_participle(next.text))
    };
    (0..words.len()).filter(|at| !left_out(*at)).map(|at| words[at]).collect()
}

impl Reader<'_> {
    /// What the clauses of a sentence answer.
    pub(super) fn told(&self, words: &[Word<'_>]) -> Vec<Asked> {
        let mut found = self.stated(words).unwrap_or_default();
        if self.names.are_topic(words) {
            for at in (1..words.len()).filter(|at| words[*at].is_one_of(&["and", "but"])) {
                found.extend(self.further(&words[at + 1..]).unwrap_or_default());
            }
        }
        if found.is_empty() {
            found = self.fragment(words);
        }
        found.extend(self.measured(words));
        found.extend(self.numbered(words));
        found.extend(self.owned_count(words));
        found
    }

    /// A clause after `and`, in a sentence about the page: with its own subject, or without.
    fn further(&self, words: &[Word<'_>]) -> Option<Vec<Asked>> {
        let first = words.first()?;
        if first.is_one_of(&PRONOUNS) || first.is_one_of(&POSSESSIVES) || first.text == "there" {
            return self.stated(words);
        }
        let next = words.get(1).filter(|_| is_verb(first) && !first.ends && !first.is_one_of(&["were", "are"]))?;
        // `rails and baths fill the hall`
        let known = base_of_third(first.text).is_none()
            || next.is_article()
            || next.is_count()
            || !next.is_lower()
            || next.is_one_of(&PREPOSITIONS);
        known.then(|| self.predicate(words)).flatten()
    }

    /// `You reach her on extension 210`, where other pages say `Her extension is 130`.
    fn numbered(&self, words: &[Word<'_>]) -> Vec<Asked> {
        let mut found = Vec::new();
        for (at, pair) in words.windows(2).enumerate().filter(|(at, _)| *at > 0) {
            let [noun, number] = pair else { continue };
            let closed = number.ends || words.get(at + 2).is_none_or(|next| next.is_one_of(&PREPOSITIONS) || next.is_one_of(&BREAKS));
            if noun.is_lower() && number.is_number() && closed && self.lexicon.is_numbered(noun.text) {
                let told = Found { text: number.text.to_owned(), value: Value::Number, length: 1, ends: true };
                found.extend(self.noun(noun.text, &told));
            }
        }
        found
    }

    /// `Lone Virkelund leads its 8 members.`
    fn owned_count(&self, words: &[Word<'_>]) -> Vec<Asked> {
        let counts = (1..words.len()).filter(|at| words[at - 1].text == "its" && words[*at].is_count());
        counts.filter_map(|at| how_many("does", "have", &words[at..])).flatten().collect()
    }
}
