//! What pages have in common in their wording, read once from all of them: one sentence alone does not
//! tell what stands for the page, or which number is one of it.

use std::collections::{BTreeMap, BTreeSet};

use autoact_tools::Page;

use super::measure::{Measured, measures};
use super::object::is_function;
use super::subject::is_verb;
use super::verbs::{is_participle, third_of};
use super::words::{NOUN_WORDS, Word, words};
use super::{BE, POSSESSIVES};
use crate::pages::Pages;

/// Pages that must use a word in the same way.
const PAGES: usize = 2;
/// Pages that must give a measure, so that it is one of the page and not of a part.
const MEASURED: usize = 5;
/// Share of the pages that give a measure once, of those that give it.
const ONCE: f64 = 0.8;

/// How pages word things.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// What pages call themselves after `the`, such as `department`.
    stand_ins: BTreeSet<String>,
    /// What is measured once on most pages that measure it.
    measured: BTreeSet<&'static str>,
    /// Nouns that some pages give a number: `extension`, of `Her extension is 130`.
    numbered: BTreeSet<String>,
}

impl Lexicon {
    /// Reads the pages.
    pub(crate) fn of(pages: &Pages) -> Lexicon {
        let mut begin: BTreeMap<String, usize> = BTreeMap::new();
        let mut numbered: BTreeMap<String, usize> = BTreeMap::new();
        // by measure: the pages that give it, and those that give it once
        let mut measured: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
        for page in pages.all() {
            let sentences: Vec<Vec<Word<'_>>> = page.sentences().into_iter().map(words).collect();
            let begun: BTreeSet<String> = sentences.iter().filter_map(|words| begins_with(words)).collect();
            begun.into_iter().for_each(|noun| *begin.entry(noun).or_default() += 1);
            let told: BTreeSet<String> = sentences.iter().filter_map(|words| numbers(words)).collect();
            told.into_iter().for_each(|noun| *numbered.entry(noun).or_default() += 1);
            let mut count: BTreeMap<&'static str, usize> = BTreeMap::new();
            let all = sentences.iter().flat_map(|words| measures(words));
            all.for_each(|Measured { noun, .. }| *count.entry(noun).or_default() += 1);
            for (noun, count) in count {
                let (some, once) = measured.entry(noun).or_default();
                *some += 1;
                *once += usize::from(count == 1);
            }
        }
        let of_the_page = |(_, (some, once)): &(&str, (usize, usize))| *once >= MEASURED && *once as f64 >= ONCE * *some as f64;
        Lexicon {
            stand_ins: begin
                .into_iter()
                .filter(|(noun, count)| *count >= PAGES && pages.is_described(&third_of(noun)))
                .map(|(noun, _)| noun)
                .collect(),
            measured: measured.into_iter().filter(of_the_page).map(|(noun, _)| noun).collect(),
            numbered: numbered.into_iter().filter(|(_, count)| *count >= PAGES).map(|(noun, _)| noun).collect(),
        }
    }

    /// What a page calls itself after `the`, of what the task says that its pages are.
    pub(super) fn stand_ins<'a>(&'a self, page: &'a Page) -> impl Iterator<Item = &'a String> {
        let begun: BTreeSet<String> = page.sentences().into_iter().filter_map(|sentence| begins_with(&words(sentence))).collect();
        self.stand_ins.iter().filter(move |noun| begun.contains(*noun))
    }

    /// Whether a measure is one of the page, where it gives it once.
    pub(super) fn is_measured(&self, noun: &str) -> bool {
        self.measured.contains(noun)
    }

    /// Whether a noun is given a number elsewhere.
    pub(super) fn is_numbered(&self, noun: &str) -> bool {
        self.numbered.contains(noun)
    }
}

/// The noun of `The department goes back to 1971`.
fn begins_with(words: &[Word<'_>]) -> Option<String> {
    let [the, noun, verb, ..] = words else { return None };
    (the.text == "The" && noun.is_lower() && !noun.ends && is_verb(verb)).then(|| noun.text.to_owned())
}

/// The last word of the noun of `Her telephone extension is 130` and `Extension: 130`.
fn numbers(words: &[Word<'_>]) -> Option<String> {
    let number = words.iter().position(|word| word.is_number()).filter(|at| *at > 0)?;
    let owned = POSSESSIVES.iter().any(|own| words[0].text.eq_ignore_ascii_case(own));
    let noun = match &words[..number] {
        [noun] => noun,
        [_, .., noun, be] if owned && number <= NOUN_WORDS + 2 && be.is_one_of(&BE) => noun,
        _ => return None,
    };
    let noun = noun.text.to_lowercase();
    (noun.chars().all(char::is_alphabetic) && !is_function(&noun) && !is_participle(&noun)).then_some(noun)
}
