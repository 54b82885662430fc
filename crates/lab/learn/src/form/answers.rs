//! What the answers to questions in a form are, and where a sentence has such an answer.

use std::collections::BTreeSet;

use autoact_score::normalize;

use crate::filter::within;
use crate::pages::Pages;
use crate::relation_words::{compares, key_of};
use crate::statement::Sort;
use crate::task::Example;

/// Maximum number of words of an answer at the end of a sentence.
const ANSWER_WORDS: usize = 4;
/// Numbers of more digits than this are quantities, and may have any number of them.
const DIGITS: usize = 4;
/// What looks like a year.
const YEARS: std::ops::RangeInclusive<u32> = 1500..=2100;
/// Words between a number and what it counts.
const LARGE: [&str; 4] = ["billion", "hundred", "million", "thousand"];
/// Words after a number that may belong to it: `million crowns`.
const UNIT_WORDS: usize = 2;

/// What the answers to questions of a form are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Yes or no. `linked`: what is right where a sentence of the first page names the second; `None`:
    /// the model says.
    Claim { linked: Option<bool> },
    /// One of the names in the question.
    Named,
    /// The name of a page. `kind`: that of the example's.
    Name { kind: usize },
    /// A number, of that many digits if it is a short one, with or without the word after it, and a
    /// year or none.
    Number { digits: Option<usize>, unit: bool, year: bool },
    /// A weekday, or a month.
    Sorted(Sort),
    /// A name that no page has: words with capital letters.
    Capitals,
    /// Other words, at the end of a sentence.
    Words,
    /// Whatever the sentence tells: a page, or else a number, a name or other words.
    Any,
}

impl Answers {
    /// Whether they can be right by chance: yes or no, one of two names.
    pub(crate) fn are_guessable(self) -> bool {
        matches!(self, Answers::Claim { .. } | Answers::Named)
    }

    /// What the answers to questions like an example are. `named`: the pages that its question names.
    pub(crate) fn of(example: &Example, named: &[usize], pages: &Pages) -> Answers {
        let answer = normalize(&example.answer);
        if matches!(answer.as_str(), "yes" | "no") {
            // `Did Line 3 open earlier than Line 5?` is not decided by whether one page names the other
            let differ = named.len() == 2 && pages.kind(named[0]) != pages.kind(named[1]) && !compares(&example.question);
            let linked = named.len() == 2 && pages.linked(named[0]).contains(&named[1]);
            return Answers::Claim { linked: differ.then_some((answer == "yes") == linked) };
        }
        if named.iter().any(|page| normalize(&pages.all()[*page].title) == answer) {
            return Answers::Named;
        }
        match (pages.find(&example.answer), example.answer.split_once(' ')) {
            (Some(page), _) => Answers::Name { kind: pages.kind(page) },
            (None, None) if is_number(&example.answer) => {
                let digits = Some(example.answer.len()).filter(|digits| *digits <= DIGITS);
                Answers::Number { digits, unit: false, year: is_year(&example.answer) }
            }
            (None, Some(_)) if unit_of(&example.answer).is_some() => Answers::Number { digits: None, unit: true, year: false },
            _ => match Sort::of_word(&example.answer) {
                Some(sort @ (Sort::Weekday | Sort::Month)) => Answers::Sorted(sort),
                _ if example.answer.starts_with(char::is_uppercase) => Answers::Capitals,
                _ => Answers::Words,
            },
        }
    }

    /// Those in a sentence of a page. `kept`: the question has the example's relation.
    pub(crate) fn within(self, sentence: &str, page: usize, kept: bool, pages: &Pages) -> BTreeSet<String> {
        let value = key_of(sentence).map_or(sentence, |(_, value)| value);
        // a name that the page's own is a part of is found before that is taken out
        let named = || pages.named_in(value).into_iter().filter(|other| *other != page);
        let told = value.replace(pages.all()[page].title.as_str(), " ");
        let words = told.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let title = |other: usize| pages.all()[other].title.clone();
        match self {
            Answers::Name { kind } => named().filter(|other| pages.kind(*other) == kind).map(title).collect(),
            Answers::Number { digits, unit, year } => {
                // another relation than the example's has nothing but its values to be told by
                let whole = |word: &str| word.chars().all(|c| c.is_ascii_digit());
                let fits =
                    |word: &str| digits.is_none_or(|digits| word.len() == digits && whole(word)) && (kept || unit || is_year(word) == year);
                let found = words.iter().enumerate().filter(|(_, word)| is_number(word) && fits(word));
                let with_unit = |(at, number): (usize, &&str)| {
                    if unit { words.get(at + 1).map(|unit| format!("{number} {unit}")) } else { Some((*number).to_owned()) }
                };
                found.filter_map(with_unit).collect()
            }
            Answers::Sorted(sort) => words.iter().filter(|word| Sort::of_word(word) == Some(sort)).map(|word| (*word).to_owned()).collect(),
            Answers::Capitals => capitals(&words, named().map(title).collect()),
            Answers::Any => {
                let titles: Vec<String> = named().map(title).collect();
                let kinds = [titles.iter().cloned().collect(), numbers(&words), capitals(&words, titles)];
                kinds.into_iter().find(|answers| !answers.is_empty()).unwrap_or_else(|| last_words(&words))
            }
            Answers::Words => last_words(&words),
            Answers::Claim { .. } | Answers::Named => BTreeSet::new(),
        }
    }
}

/// Whether a run of words is what a number counts or measures, as `crowns` in `1.80 crowns per trip`
/// and in `1.7 million crowns`.
pub(crate) fn is_counted(run: &str, sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let first = run.split(' ').next().unwrap_or_default();
    let is_first = |word: &str| word.trim_end_matches(|c: char| !c.is_alphanumeric()) == first;
    let after = |at: usize| {
        words
            .get(at + 1)
            .is_some_and(|word| is_first(word) || (LARGE.contains(word) && words.get(at + 2).is_some_and(|word| is_first(word))))
    };
    (0..words.len()).any(|at| is_number_in_text(words[at]) && after(at))
}

/// The answer to a claim.
pub(crate) fn yes_or_no(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// What is written with digits, with or without the words after it.
fn numbers(words: &[&str]) -> BTreeSet<String> {
    let with_digits = (0..words.len()).filter(|at| words[*at].chars().any(|c| c.is_ascii_digit()));
    let with_unit = |at: usize| {
        let unit = words[at + 1..].iter().take(UNIT_WORDS).take_while(|word| word.starts_with(char::is_lowercase)).count();
        [words[at].to_owned(), words[at..=at + unit].join(" ")]
    };
    with_digits.flat_map(with_unit).collect()
}

/// Names: runs of words with capital letters. A part of one of the titles is the whole title.
fn capitals(words: &[&str], titles: Vec<String>) -> BTreeSet<String> {
    // the first word of a sentence has a capital letter in any case, and may yet begin a name
    let capital = |word: &&str| word.starts_with(char::is_uppercase);
    let start = usize::from(words.first().is_some_and(capital) && !words.get(1).is_some_and(capital));
    let runs = words[start..].split(|word| !capital(word)).filter(|run| !run.is_empty()).map(|run| run.join(" "));
    runs.map(|run| titles.iter().find(|title| within(&run, title)).cloned().unwrap_or(run)).collect()
}

/// Words at the end of a sentence, which do not make the whole of it if it has several.
fn last_words(words: &[&str]) -> BTreeSet<String> {
    let most = ANSWER_WORDS.min(words.len().saturating_sub(1)).max(words.len().min(1));
    (1..=most).map(|count| words[words.len() - count..].join(" ")).collect()
}

/// Digits, also with a point or commas among them: `1006`, `8.7`, `128,297`.
fn is_number(word: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    word.starts_with(digit) && word.ends_with(digit) && word.chars().all(|c| digit(c) || matches!(c, '.' | ','))
}

/// The word after the number of an answer like `8.7 km`.
pub(crate) fn unit_of(answer: &str) -> Option<&str> {
    answer.split_once(' ').filter(|(number, unit)| is_number(number) && !unit.contains(' ')).map(|(_, unit)| unit)
}

/// Whether a number looks like a year.
pub(crate) fn is_year(word: &str) -> bool {
    word.parse::<u32>().is_ok_and(|number| YEARS.contains(&number))
}

pub(crate) fn is_number_in_text(word: &str) -> bool {
    is_number(word.trim_matches(|c: char| !c.is_alphanumeric()))
}
