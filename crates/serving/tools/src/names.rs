//! What a name means: the rules by which `Retrieve` finds a page, whatever keeps the names.

use std::ops::Range;

use crate::text::{fold, is_stop_word};
use crate::typo::slips;

/// A name within other words has at least so many letters.
const LEAST_WITHIN: usize = 4;
/// With a capital letter it may be as short as this (`Po`).
const LEAST_NAME: usize = 2;
/// So many other words may stand around a name.
const MOST_OTHER_WORDS: usize = 3;
/// Longer texts are not searched for a name.
const MOST_WORDS: usize = 16;
/// So many words of a text that names pages are looked at.
const MOST_TEXT_WORDS: usize = 64;
/// More words that name nothing, also with a capital at the start of a sentence. They are no stop
/// words, because a search may well be for them.
const LINKS: [&str; 33] = [
    "about",
    "after",
    "against",
    "among",
    "before",
    "behind",
    "beside",
    "between",
    "comparing",
    "during",
    "i",
    "if",
    "into",
    "like",
    "may",
    "near",
    "not",
    "over",
    "regarding",
    "since",
    "so",
    "than",
    "then",
    "through",
    "under",
    "until",
    "versus",
    "via",
    "vs",
    "whether",
    "while",
    "within",
    "without",
];
/// Words in lower case within names.
const BETWEEN: [&str; 3] = ["of", "the", "and"];
/// What a name may begin with, and the whole word.
const ABBREVIATED: [(&str, &str); 2] = [("mt", "mount"), ("st", "saint")];
/// Below this a name is not similar any more.
const LEAST_SIMILAR: f64 = 0.4;

/// Pages by their names. All names are folded ([`fold`]).
pub trait Names {
    /// What a name leads to.
    type Page: Copy + PartialEq;
    /// Why names cannot be read.
    type Error;

    /// The page with this title.
    fn titled(&self, folded: &str) -> Result<Option<Self::Page>, Self::Error>;

    /// The page with this alias.
    fn aliased(&self, folded: &str) -> Result<Option<Self::Page>, Self::Error>;

    /// Calls `each` for the titles and aliases that `folded` may misspell: at least all that are two
    /// letters away (one that is missing, too many or another, or two that are swapped).
    fn near(&self, folded: &str, each: &mut dyn FnMut(&str, Self::Page)) -> Result<(), Self::Error>;
}

/// The page that a title names, up to case, diacritics, blanks, punctuation and a leading "the".
///
/// # Errors
/// The names cannot be read.
pub fn find_title<N: Names>(names: &N, title: &str) -> Result<Option<N::Page>, N::Error> {
    let folded = fold(title);
    let with_the = format!("the {folded}");
    first([folded.as_str(), without_the(&folded), &with_the], |form| names.titled(form))
}

/// The page that has this alias, up to case, diacritics, blanks, punctuation and a leading "the".
///
/// # Errors
/// The names cannot be read.
pub fn find_alias<N: Names>(names: &N, alias: &str) -> Result<Option<N::Page>, N::Error> {
    let folded = fold(alias);
    first([folded.as_str(), without_the(&folded)], |form| names.aliased(form))
}

/// [`find_title`], else [`find_alias`].
///
/// # Errors
/// The names cannot be read.
pub fn find<N: Names>(names: &N, name: &str) -> Result<Option<N::Page>, N::Error> {
    Ok(match find_title(names, name)? {
        Some(page) => Some(page),
        None => find_alias(names, name)?,
    })
}

/// The page that a name means, where no page is found by it: the one with `Mount` for `Mt`; else the
/// only page with a title or alias that this name misspells; else the one that is named several times
/// (`Io. Io.`); else the only page whose name stands in it among words that name nothing (`Danube flow
/// into`, `Between Marmolada`, `Malevich's Black Square`).
///
/// # Errors
/// The names cannot be read.
pub fn meant<N: Names>(names: &N, written: &str) -> Result<Option<N::Page>, N::Error> {
    let folded = fold(written);
    let whole = ABBREVIATED.iter().find_map(|(short, long)| Some(format!("{long} {}", folded.strip_prefix(short)?.strip_prefix(' ')?)));
    if let Some(page) = whole.map(|name| find(names, &name)).transpose()?.flatten() {
        return Ok(Some(page));
    }
    if let Some(page) = misspelt(names, &folded)? {
        return Ok(Some(page));
    }
    if let Some(page) = once(&folded).map(|name| find(names, &name)).transpose()?.flatten() {
        return Ok(Some(page));
    }
    within(names, written)
}

/// What is said several times, once. `None`: it is not.
fn once(folded: &str) -> Option<String> {
    let words: Vec<&str> = folded.split(' ').take(MOST_WORDS + 1).collect();
    let repeats = |length: &usize| words.len().is_multiple_of(*length) && words.chunks(*length).all(|part| part == &words[..*length]);
    let length = (1..=words.len() / 2).filter(|_| words.len() <= MOST_WORDS).find(repeats)?;
    Some(words[..length].join(" "))
}

/// Whether a word says whose something is (`Malevich's`).
fn is_possessive(word: &str) -> bool {
    ["'s", "’s"].iter().any(|ending| word.len() > ending.len() && word.ends_with(ending))
}

/// The only page that has one of the names that `written` misspells by the fewest letters.
fn misspelt<N: Names>(names: &N, written: &str) -> Result<Option<N::Page>, N::Error> {
    let written = without_the(written);
    let mut best: Option<(usize, Option<N::Page>)> = None;
    names.near(written, &mut |name, page| {
        if let Some(count) = slips(written, without_the(name)) {
            best = match best {
                Some((least, _)) if least < count => best,
                Some((least, other)) if least == count => Some((least, other.filter(|other| *other == page))),
                _ => Some((count, Some(page))),
            };
        }
    })?;
    Ok(best.and_then(|(_, page)| page))
}

/// The only page whose name, or its possessive, is a part of `written`. The other words must name
/// nothing: they are in lower case, too common to be a name, or say whose it is.
fn within<N: Names>(names: &N, written: &str) -> Result<Option<N::Page>, N::Error> {
    let spelt: Vec<&str> = written.split_whitespace().take(MOST_WORDS + 1).collect();
    let count = spelt.len();
    if count > MOST_WORDS {
        return Ok(None);
    }
    let found = parts(names, &spelt, |_| LEAST_WITHIN)?;
    let Some((named, page)) = found.first() else { return Ok(None) };
    let mut rest = (0..count).filter(|at| !named.contains(at));
    let alone = found.iter().all(|(_, other)| other == page) && rest.clone().count() <= MOST_OTHER_WORDS;
    Ok((alone && rest.all(|at| names_nothing(spelt[at]))).then_some(*page))
}

/// The pages that a text names, in its order: those whose names, or their possessives, are parts of
/// it. Of names within others the longest count. Where one has a capital letter or a digit, those
/// without are words (`The moon Europa`).
///
/// # Errors
/// The names cannot be read.
pub fn named<N: Names>(names: &N, text: &str) -> Result<Vec<N::Page>, N::Error> {
    let spelt: Vec<&str> = text.split_whitespace().take(MOST_TEXT_WORDS).collect();
    let as_name = |part: &Range<usize>| spelt[part.clone()].iter().any(|word| spelt_as_name(word));
    let least = |part: &Range<usize>| if as_name(part) { LEAST_NAME } else { LEAST_WITHIN };
    let mut found = parts(names, &spelt, least)?;
    found.retain(|(part, _)| spelt[part.clone()].iter().any(|word| !is_common(word)));
    if found.iter().any(|(part, _)| as_name(part)) {
        found.retain(|(part, _)| as_name(part));
    }
    let mut pages: Vec<N::Page> = Vec::new();
    for (_, page) in found {
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    Ok(pages)
}

/// The parts of a text that are spelt as names, in its order: words with capital letters or digits, in
/// a row or with `of`, `the` or `and` between them. One with `and` may be two.
pub(crate) fn spelt_as_names(text: &str) -> Vec<String> {
    let mut names: Vec<Vec<&str>> = Vec::new();
    // whether the last name may go on, and the words that stand since between it and the next
    let (mut open, mut between) = (false, Vec::new());
    for spelt in text.split_whitespace().take(MOST_TEXT_WORDS) {
        let word = spelt.trim_matches(|c: char| !c.is_alphanumeric());
        if spelt_as_name(word) {
            if !open || !spelt.starts_with(word) {
                names.push(Vec::new());
                between.clear();
            }
            if let Some(name) = names.last_mut() {
                name.append(&mut between);
                name.push(word);
            }
            // an initial has a full stop, too
            open = spelt.ends_with(word) || word.chars().count() == 1;
        } else if BETWEEN.contains(&spelt) {
            between.push(spelt);
        } else {
            open = false;
        }
    }
    let mut found = Vec::new();
    for name in names {
        found.push(name.join(" "));
        if name.contains(&"and") {
            found.extend(name.split(|word| *word == "and").map(|part| part.join(" ")));
        }
    }
    found
}

/// Whether a word looks like a part of a name.
fn spelt_as_name(spelt: &str) -> bool {
    !names_nothing(spelt) || (is_possessive(spelt) && spelt.chars().any(char::is_uppercase))
}

/// The words of a text that name a page, and the page.
type Part<P> = (Range<usize>, P);

/// The parts of a text that are names of pages, or their possessives, and the pages; without those
/// within others. `least` letters make a part a name.
fn parts<N: Names>(names: &N, spelt: &[&str], least: impl Fn(&Range<usize>) -> usize) -> Result<Vec<Part<N::Page>>, N::Error> {
    let words: Vec<String> = spelt.iter().map(|word| fold(word)).collect();
    let mut found: Vec<Part<N::Page>> = Vec::new();
    for from in 0..words.len() {
        for to in from + 1..=words.len().min(from + MOST_WORDS) {
            let part = words[from..to].join(" ");
            let least = least(&(from..to));
            let owner = part.strip_suffix('s').filter(|_| is_possessive(spelt[to - 1]));
            for name in [Some(part.as_str()), owner].into_iter().flatten().filter(|name| name.chars().count() >= least) {
                if let Some(page) = find(names, name)? {
                    found.push((from..to, page));
                    break;
                }
            }
        }
    }
    // `Blue Danube` also contains `Danube`: the longer name counts
    let within = |part: &Range<usize>, other: &Range<usize>| other.start <= part.start && part.end <= other.end && part != other;
    let longest = |part: &Range<usize>| !found.iter().any(|(other, _)| within(part, other));
    Ok(found.iter().filter(|(part, _)| longest(part)).cloned().collect())
}

/// Whether a word of a text is no part of a name: it is in lower case, or too common, or says whose
/// something is.
pub(crate) fn names_nothing(spelt: &str) -> bool {
    spelt.chars().all(|c| !c.is_uppercase() && !c.is_ascii_digit()) || is_common(spelt) || is_possessive(spelt)
}

/// Whether a word is too common to be a name.
fn is_common(spelt: &str) -> bool {
    let word = fold(spelt);
    is_stop_word(&word) || LINKS.contains(&word.as_str())
}

/// The first form under which something is found.
fn first<T, E>(forms: impl IntoIterator<Item = impl AsRef<str>>, find: impl Fn(&str) -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    for form in forms {
        if let Some(found) = find(form.as_ref())? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A folded name without its leading article.
fn without_the(name: &str) -> &str {
    name.strip_prefix("the ").unwrap_or(name)
}

/// The positions of the (folded) candidates most like `wanted`, best first; ties keep their order. A
/// leading "the" makes no two names alike.
pub fn similar<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, limit: usize) -> Vec<usize> {
    if limit == 0 {
        return Vec::new();
    }
    let wanted = fold(wanted);
    let wanted = without_the(&wanted);
    let pairs = bigrams(wanted);
    let mut scored: Vec<(f64, usize)> = candidates
        .enumerate()
        .map(|(at, candidate)| (likeness(wanted, &pairs, without_the(candidate)), at))
        .filter(|(score, _)| *score >= LEAST_SIMILAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(limit).map(|(_, at)| at).collect()
}

/// Dice's coefficient over pairs of letters, raised where all words of the one are words of the
/// other: `Mercury` is like `Mercury (planet)`, `Loire River` is like `Loire`.
fn likeness(wanted: &str, pairs: &[(char, char)], candidate: &str) -> f64 {
    let theirs = bigrams(candidate);
    let total = pairs.len() + theirs.len();
    if total == 0 {
        return 0.0;
    }
    let dice = 2.0 * common(pairs, &theirs) as f64 / total as f64;
    let within = |few: &str, many: &str| !few.is_empty() && few.split(' ').all(|word| many.split(' ').any(|other| other == word));
    if within(wanted, candidate) || within(candidate, wanted) { 0.5 + dice / 2.0 } else { dice }
}

/// The sorted pairs of neighbouring letters, the ends included.
fn bigrams(text: &str) -> Vec<(char, char)> {
    if text.is_empty() {
        return Vec::new();
    }
    let mut last = ' ';
    let mut pairs: Vec<(char, char)> = text.chars().chain([' ']).map(|c| (std::mem::replace(&mut last, c), c)).collect();
    pairs.sort_unstable();
    pairs
}

/// How many entries two sorted lists share, repeated ones counted.
fn common(a: &[(char, char)], b: &[(char, char)]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                count += 1;
                i += 1;
                j += 1;
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelt_with_capital_letters() {
        for (text, names) in [
            ("When was the dean of the Faculty of Law hired?", vec!["Faculty of Law"]),
            ("is it about Poland's capital, or Apollo 11?", vec!["Poland's", "Apollo 11"]),
            ("It is by F. W. Murnau. Berlin (Germany) has it.", vec!["F W Murnau", "Berlin", "Germany"]),
            ("Stores and Dispatch", vec!["Stores and Dispatch", "Stores", "Dispatch"]),
            ("of the and", vec![]),
            ("what? … –", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(spelt_as_names(text), names, "{text}");
        }
    }
}
