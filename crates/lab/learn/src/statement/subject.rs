//! What a sentence is about: whether its first words, or later ones, stand for the page.

use super::measure::measures;
use super::verbs::{base_of_past, base_of_third, is_participle};
use super::words::{BREAKS, PREPOSITIONS, Word, words};
use super::{ARTICLES, BE, Lexicon, POSSESSIVES, PRONOUNS};
use crate::pages::Pages;

/// Words before a noun that says what a page is: `is our factory`.
const DETERMINERS: [&str; 5] = ["a", "an", "the", "our", "one"];
/// Maximum number of words between the name and the predicate.
const APPOSITION_WORDS: usize = 8;

/// What a page is called.
pub(super) struct Names<'a> {
    title: Vec<Word<'a>>,
    /// Single words of the title that stand for it: `Ada` for Ada Lind, where no page has `ada`.
    parts: Vec<&'a str>,
    /// Nouns that stand for it after `the`: what the title ends with, and what the page calls itself.
    nouns: Vec<String>,
    /// What the page measures, once for each time.
    measured: Vec<&'static str>,
}

impl<'a> Names<'a> {
    pub(super) fn of(page: usize, pages: &'a Pages, lexicon: &Lexicon) -> Names<'a> {
        let title = words(&pages.all()[page].title);
        let last = title.last().map(|last| last.text.to_lowercase());
        let mut nouns: Vec<String> = last.into_iter().filter(|last| pages.is_word(last)).collect();
        let named = title.len() > 1 && title.iter().all(|word| word.text.starts_with(char::is_uppercase));
        let ends = [title.first(), title.last()].into_iter().flatten().map(|word| word.text).filter(|_| named);
        let parts = ends.filter(|part| pages.find(part).is_none() && !pages.is_word(&part.to_lowercase())).collect();
        let mut names = Names { title, parts, nouns: Vec::new(), measured: Vec::new() };
        for sentence in pages.all()[page].sentences() {
            let words = words(sentence);
            nouns.extend(names.is_a(&words));
            names.measured.extend(measures(&words).into_iter().map(|one| one.noun));
        }
        nouns.extend(lexicon.stand_ins(&pages.all()[page]).cloned());
        names.nouns = nouns;
        names
    }

    /// The noun that says what the page is: `factory`, of `It is our factory, a long brick hall`.
    fn is_a(&self, words: &[Word<'_>]) -> Option<String> {
        let pronoun = words.first().filter(|first| PRONOUNS.iter().any(|own| first.text.eq_ignore_ascii_case(own)));
        let rest = pronoun.map(|_| &words[1..]).or_else(|| self.after_title(words))?;
        let [be, determiner, rest @ ..] = rest else { return None };
        (be.is_one_of(&BE) && determiner.is_one_of(&DETERMINERS)).then_some(())?;
        let stops = |word: &Word<'_>| !word.is_lower() || word.is_one_of(&PREPOSITIONS) || word.is_one_of(&BREAKS);
        let end = rest.iter().position(stops).unwrap_or(rest.len());
        let end = rest[..end].iter().position(|word| word.ends).map_or(end, |at| at + 1);
        rest[..end].last().map(|noun| noun.text.to_owned())
    }

    /// What follows the title.
    fn after_title<'w, 'b>(&self, words: &'w [Word<'b>]) -> Option<&'w [Word<'b>]> {
        self.after(words).filter(|(_, possessive)| !possessive).map(|(rest, _)| rest)
    }

    /// What follows the page's name, and whether the name was a possessive.
    pub(super) fn after<'w, 'b>(&self, words: &'w [Word<'b>]) -> Option<(&'w [Word<'b>], bool)> {
        let article = words.first()?.is_article();
        if let Some(noun) = words.get(1).filter(|_| words[0].text.eq_ignore_ascii_case("the"))
            && let Some(possessive) = is_name(noun, self.nouns.iter().map(String::as_str))
            && (possessive || words.get(2).is_some_and(is_verb) && !is_value(&words[2..]))
        {
            return Some((&words[2..], possessive));
        }
        if let Some(possessive) = is_name(words.first()?, self.parts.iter().copied())
            && (possessive || words.get(1).is_some_and(is_verb))
        {
            return Some((&words[1..], possessive));
        }
        let own_article = self.title.first()?.text.eq_ignore_ascii_case("the");
        let words = if article && !own_article && words[0].text.eq_ignore_ascii_case("the") { &words[1..] } else { words };
        let (last, before) = self.title.split_last()?;
        let there = words.len() > before.len() && before.iter().zip(words).all(|(own, word)| own.text == word.text);
        let end = words.get(before.len()).filter(|_| there)?;
        let possessive = is_name(end, [last.text])?;
        Some((&words[before.len() + 1..], possessive))
    }

    /// Whether some words begin with one that stands for the page as an object: `gives this course`.
    pub(super) fn are_object(&self, words: &[Word<'_>]) -> bool {
        let closed = |word: Option<&Word<'_>>| word.is_none_or(|next| next.is_one_of(&PREPOSITIONS) || next.is_one_of(&BREAKS));
        match words {
            [it, rest @ ..] if it.is_one_of(&["it", "him", "her", "them"]) => it.ends || closed(rest.first()),
            [this, noun, ..] if this.text == "this" => noun.is_lower(),
            [the, noun, rest @ ..] if the.text == "the" && self.nouns.iter().any(|own| own == noun.text) => {
                noun.ends || closed(rest.first())
            }
            _ => self.after_title(words).is_some(),
        }
    }

    /// Whether the page gives a measure exactly once.
    pub(super) fn is_measured_once(&self, noun: &str) -> bool {
        self.measured.iter().filter(|one| **one == noun).count() == 1
    }

    /// Whether a sentence with these words tells of the page first.
    pub(super) fn are_topic(&self, words: &[Word<'_>]) -> bool {
        let Some(first) = words.first() else { return false };
        let own = [&PRONOUNS[..], &POSSESSIVES].concat();
        own.iter().any(|own| first.text.eq_ignore_ascii_case(own)) || self.after(words).is_some()
    }
}

/// What follows what is said of a name, up to the predicate: `physicist, was hired`.
pub(super) fn behind_apposition<'w, 'b>(rest: &'w [Word<'b>]) -> &'w [Word<'b>] {
    let end = rest.iter().take(APPOSITION_WORDS).position(|word| word.ends);
    match (rest.first(), end) {
        (Some(first), Some(end)) if !is_participle(first.text) => &rest[end + 1..],
        _ => rest,
    }
}

/// Whether a word is one of these names, and if so whether it is a possessive.
fn is_name<'n>(word: &Word<'_>, names: impl IntoIterator<Item = &'n str>) -> Option<bool> {
    let owner = word.text.strip_suffix("'s").or_else(|| word.text.strip_suffix("’s"));
    names.into_iter().find_map(|name| if word.text == name { Some(false) } else { (owner == Some(name)).then_some(true) })
}

/// Whether it says what something is: `is Ada Lind`, `is 12 crowns`. Then `the building` is one of the
/// page.
fn is_value(words: &[Word<'_>]) -> bool {
    let next = words.iter().skip(1).find(|word| !word.is_article());
    words.first().is_some_and(|be| be.is_one_of(&BE)) && next.is_none_or(|next| !next.is_lower())
}

/// Whether a word can be the verb of a sentence.
pub(super) fn is_verb(word: &Word<'_>) -> bool {
    let known = word.is_one_of(&BE) || word.is_one_of(&["has", "had"]);
    let other = !ARTICLES.contains(&word.text) && (base_of_third(word.text).is_some() || base_of_past(word.text).is_some());
    known || other
}
