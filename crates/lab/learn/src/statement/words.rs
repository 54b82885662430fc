//! The words of a sentence, and the values among them.

use std::collections::{BTreeMap, BTreeSet};

use super::Reader;
use crate::form::answers::is_year;
use crate::pages::Pages;

/// Maximum number of words of an answer that is no page's title.
const ANSWER_WORDS: usize = 4;
/// Words that stand for something else.
const STAND_INS: [&str; 28] = [
    "it",
    "its",
    "him",
    "his",
    "her",
    "hers",
    "them",
    "their",
    "theirs",
    "one",
    "this",
    "these",
    "there",
    "which",
    "whom",
    "us",
    "we",
    "me",
    "everybody",
    "everything",
    "nobody",
    "nothing",
    "such",
    "here",
    "never",
    "not",
    "no",
    "always",
];
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const COUNTS: [&str; 11] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// Maximum number of words of a noun, as in `line manager`.
pub(super) const NOUN_WORDS: usize = 3;
pub(super) const ARTICLES: [&str; 3] = ["the", "a", "an"];
pub(super) const PREPOSITIONS: [&str; 14] =
    ["in", "on", "at", "by", "after", "for", "from", "to", "with", "of", "since", "under", "as", "into"];
/// Words at which what was said before them ends, beside prepositions.
pub(super) const BREAKS: [&str; 16] =
    ["and", "but", "or", "when", "where", "who", "which", "that", "because", "so", "while", "than", "until", "before", "then", "if"];

/// What a value tells, which decides by what word it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Year,
    Date,
    Day,
    Number,
    /// Words with a capital letter: a place, a person, a title.
    Name,
    Words,
}

/// A word without the punctuation around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// Whether a mark follows, at which a part of the sentence ends.
    pub(super) ends: bool,
}

impl Word<'_> {
    pub(super) fn is_one_of(&self, some: &[&str]) -> bool {
        some.contains(&self.text)
    }

    pub(super) fn is_article(&self) -> bool {
        ARTICLES.iter().any(|article| self.text.eq_ignore_ascii_case(article))
    }

    pub(super) fn is_lower(&self) -> bool {
        self.text.starts_with(char::is_lowercase)
    }

    pub(super) fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether it is a number in digits, or a small one in words.
    pub(super) fn is_count(&self) -> bool {
        self.is_number() || COUNTS.iter().any(|count| self.text.eq_ignore_ascii_case(count))
    }
}

pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let word = |piece: &'_ str| -> Option<(usize, usize)> {
        let start = piece.find(char::is_alphanumeric)?;
        let end = piece.rfind(char::is_alphanumeric)?;
        Some((start, end + piece[end..].chars().next()?.len_utf8()))
    };
    // a full stop within a sentence is that of an abbreviation
    let marked = |after: &str| !matches!(after, "" | ".");
    let parts = text.split_whitespace().filter_map(|piece| word(piece).map(|(start, end)| (&piece[start..end], marked(&piece[end..]))));
    parts.map(|(text, ends)| Word { text, ends }).collect()
}

pub(super) fn joined(words: &[Word<'_>]) -> String {
    words.iter().map(|word| word.text).collect::<Vec<_>>().join(" ")
}

/// A value at the beginning of some words, and how many of them it takes.
pub(super) struct Found {
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) length: usize,
    /// Whether a part of the sentence ends with it.
    pub(super) ends: bool,
}

impl Reader<'_> {
    /// The value that some words begin with.
    pub(super) fn value(&self, words: &[Word<'_>]) -> Option<Found> {
        let article = usize::from(words.first()?.is_article());
        let words = &words[article..];
        let titled = |length: &usize| words[..*length].iter().any(|word| !word.is_lower());
        let title = (1..=words.len().min(2 * ANSWER_WORDS)).rev().filter(titled).find_map(|length| {
            let title = &self.pages.all()[self.pages.find(&joined(&words[..length]))?].title;
            Some((title.clone(), &words[length - 1], length))
        });
        if let Some((text, last, length)) = title {
            // `Ada Lind's office` is another thing than Ada Lind
            let whole = text.trim_end_matches(|c: char| !c.is_alphanumeric()).ends_with(last.text);
            let ends = words.len() == length || last.ends;
            return whole.then_some(Found { text, value: Value::Name, length: article + length, ends });
        }
        let told = |first: &&Word<'_>| {
            let lower = first.text.to_lowercase();
            ![&STAND_INS[..], &PREPOSITIONS, &BREAKS].iter().any(|some| some.contains(&lower.as_str()))
        };
        let first = words.first().filter(told).filter(|first| !first.is_article())?;
        let stops = |word: &Word<'_>| word.is_one_of(&PREPOSITIONS) || word.is_one_of(&BREAKS);
        let length = (1..words.len()).find(|at| words[at - 1].ends || stops(&words[*at])).unwrap_or(words.len());
        let all = &words[..length];
        let cut = words.get(length).is_some_and(|next| {
            let goes_on = next.text == "and" && words.get(length + 1).is_some_and(|word| !word.is_lower());
            !all[length - 1].ends && (goes_on || next.text == "of")
        });
        (length <= ANSWER_WORDS && !cut).then_some(())?;
        let dated = all.iter().any(|word| word.is_one_of(&MONTHS));
        let year = is_year(first.text);
        let value = match first {
            _ if dated && (all.iter().any(Word::is_number) || length == 1) => Value::Date,
            _ if year && length == 1 => Value::Year,
            _ if WEEKDAYS.iter().any(|day| first.text.strip_suffix('s').unwrap_or(first.text) == *day) => Value::Day,
            _ if first.is_number() => Value::Number,
            _ if first.is_lower() => Value::Words,
            _ => Value::Name,
        };
        let ends = words.len() == length || all[length - 1].ends;
        // `Italian, Slovene and German`
        let listed = all[length - 1].ends
            && value == Value::Name
            && words[length..]
                .iter()
                .take(ANSWER_WORDS)
                .take_while(|word| !word.is_lower() || word.text == "and")
                .any(|word| word.text == "and");
        if listed {
            return None;
        }
        Some(Found { text: joined(all), value, length: article + length, ends })
    }
}

/// A sort of values that can be told apart without reading a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// The name of a page of this kind.
    Page(usize),
    Year,
    Month,
    Weekday,
    /// With letters and digits: `QT-8063`.
    Code,
    /// Any other number.
    Number,
}

impl Sort {
    /// That of an answer; `None` if it is none, such as words.
    pub(crate) fn of(answer: &str, pages: &Pages) -> Option<Sort> {
        match pages.find(answer) {
            Some(page) => Some(Sort::Page(pages.kind(page))),
            None => Sort::of_word(answer),
        }
    }

    /// That of a word.
    pub(crate) fn of_word(word: &str) -> Option<Sort> {
        let weekday = WEEKDAYS.iter().any(|day| word.strip_suffix('s').unwrap_or(word) == *day);
        let digits = word.chars().filter(char::is_ascii_digit).count();
        match word {
            _ if weekday => Some(Sort::Weekday),
            _ if MONTHS.contains(&word) => Some(Sort::Month),
            _ if digits == 0 || word.contains(char::is_whitespace) => None,
            _ if is_year(word) => Some(Sort::Year),
            _ if word.contains(char::is_alphabetic) => Some(Sort::Code),
            _ => Some(Sort::Number),
        }
    }
}

/// The values of a page, in the words in which it has them.
pub(crate) fn values(page: usize, pages: &Pages) -> BTreeMap<Sort, BTreeSet<String>> {
    let mut found: BTreeMap<Sort, BTreeSet<String>> = BTreeMap::new();
    let mut rest = pages.all()[page].text.clone();
    for other in pages.linked(page).iter().chain([&page]) {
        let title = &pages.all()[*other].title;
        rest = rest.replace(title.as_str(), " ");
        if *other != page {
            found.entry(Sort::Page(pages.kind(*other))).or_default().insert(title.clone());
        }
    }
    for word in words(&rest) {
        if let Some(sort) = Sort::of_word(word.text) {
            found.entry(sort).or_default().insert(word.text.to_owned());
        }
    }
    found
}
