//! Finding a page by its title, and titles like the one somebody wrote.

use std::collections::HashMap;

use crate::text::{fold, is_stop_word};
use crate::typo::slips;

/// Below this a title is not similar any more.
const LEAST_SIMILAR: f64 = 0.4;

/// How many names of one page are expected among the most similar ones.
const MOST_NAMES: usize = 4;

/// A name within other words has at least so many letters.
const LEAST_WITHIN: usize = 4;

/// So many other words may stand around a name.
const MOST_OTHER_WORDS: usize = 3;
/// Longer texts are not searched for a name.
const MOST_WORDS: usize = 16;

/// Titles in three strictnesses. Positions are those of the corpus's pages.
#[derive(Debug)]
pub(crate) struct Titles {
    exact: HashMap<String, usize>,
    folded: HashMap<String, usize>,
    /// Folded titles in page order.
    order: Vec<String>,
    /// Folded aliases that are no title, and the pages that they name.
    aliases: HashMap<String, usize>,
    /// The same, in the order they were added.
    alias_order: Vec<(String, usize)>,
}

impl Titles {
    /// Indexes distinct titles; where two fold to the same, the first is found by it.
    pub(crate) fn new<'a>(titles: impl Iterator<Item = &'a str>) -> Titles {
        let mut index =
            Titles { exact: HashMap::new(), folded: HashMap::new(), order: Vec::new(), aliases: HashMap::new(), alias_order: Vec::new() };
        for (at, title) in titles.enumerate() {
            let folded = fold(title);
            index.exact.insert(title.to_owned(), at);
            index.folded.entry(folded.clone()).or_insert(at);
            index.order.push(folded);
        }
        index
    }

    /// Adds another name of the page at `at`. Names that are titles, or aliases of an earlier page,
    /// stay what they are.
    pub(crate) fn add_alias(&mut self, alias: &str, at: usize) {
        let folded = fold(alias);
        if !folded.is_empty() && !self.folded.contains_key(&folded) && !self.aliases.contains_key(&folded) {
            self.aliases.insert(folded.clone(), at);
            self.alias_order.push((folded, at));
        }
    }

    /// The page that has this alias, up to case, diacritics, blanks, punctuation and a leading
    /// "the".
    pub(crate) fn find_alias(&self, alias: &str) -> Option<usize> {
        if self.aliases.is_empty() {
            return None;
        }
        let folded = fold(alias);
        let bare = without_the(&folded);
        [folded.as_str(), bare].iter().find_map(|form| self.aliases.get(*form)).copied()
    }

    /// The page that a title names: exactly, else up to case, diacritics, blanks and punctuation,
    /// else up to a leading "the", else by an alias.
    pub(crate) fn find(&self, title: &str) -> Option<usize> {
        self.find_title(title).or_else(|| self.find_alias(title))
    }

    /// [`Titles::find`] without aliases.
    pub(crate) fn find_title(&self, title: &str) -> Option<usize> {
        if let Some(at) = self.exact.get(title.trim()) {
            return Some(*at);
        }
        let folded = fold(title);
        let with_the = format!("the {folded}");
        let bare = without_the(&folded);
        [folded.as_str(), bare, &with_the].iter().find_map(|form| self.folded.get(*form)).copied()
    }

    /// The page that a name means, where no page is found by it: the only page with a title or alias
    /// that this name misspells; else the only page whose name stands in it among words that name
    /// nothing (`Danube flow into`).
    pub(crate) fn meant(&self, written: &str) -> Option<usize> {
        self.misspelt(&fold(written)).or_else(|| self.within(written))
    }

    /// All names with their pages.
    fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        let titles = self.order.iter().enumerate().map(|(at, title)| (title.as_str(), at));
        titles.chain(self.alias_order.iter().map(|(alias, at)| (alias.as_str(), *at)))
    }

    /// The only page that has one of the names that `written` misspells by the fewest letters.
    fn misspelt(&self, written: &str) -> Option<usize> {
        let written = without_the(written);
        let candidates = self.names().filter_map(|(name, page)| Some((slips(written, without_the(name))?, page)));
        let mut best: Option<(usize, Option<usize>)> = None;
        for (count, page) in candidates {
            best = match best {
                Some((least, _)) if least < count => best,
                Some((least, other)) if least == count => Some((least, other.filter(|other| *other == page))),
                _ => Some((count, Some(page))),
            };
        }
        best?.1
    }

    /// The only page whose name is a part of `written`. The other words must name nothing: they are
    /// in lower case or too common to be a name.
    fn within(&self, written: &str) -> Option<usize> {
        let spelt: Vec<&str> = written.split_whitespace().take(MOST_WORDS + 1).collect();
        let count = spelt.len();
        if count > MOST_WORDS {
            return None;
        }
        let words: Vec<String> = spelt.iter().map(|word| fold(word)).collect();
        let named = |from: usize, to: usize| {
            let part = words[from..to].join(" ");
            (part.chars().count() >= LEAST_WITHIN).then(|| self.find(&part)).flatten()
        };
        let spans = (0..count).flat_map(|from| (from + 1..=count).map(move |to| (from, to)));
        let found: Vec<(usize, usize, usize)> = spans.filter_map(|(from, to)| Some((from, to, named(from, to)?))).collect();
        // `Blue Danube` also contains `Danube`: the longer name counts
        let longest =
            |&&(from, to, _): &&(usize, usize, usize)| !found.iter().any(|&(a, b, _)| a <= from && to <= b && (a, b) != (from, to));
        let mut pages = found.iter().filter(longest).map(|(_, _, page)| *page);
        let (from, to, page) = found.iter().find(|span| longest(span)).copied()?;
        let plain = |at: &usize| spelt[*at].chars().all(|c| !c.is_uppercase() && !c.is_ascii_digit()) || is_stop_word(&words[*at]);
        let rest = (0..count).filter(|at| !(from..to).contains(at));
        (pages.all(|other| other == page) && rest.clone().all(|at| plain(&at)) && rest.count() <= MOST_OTHER_WORDS).then_some(page)
    }

    /// The pages with the titles or aliases most like `title`, best first.
    pub(crate) fn similar(&self, title: &str, limit: usize) -> Vec<usize> {
        let names = self.order.iter().map(String::as_str).chain(self.alias_order.iter().map(|(alias, _)| alias.as_str()));
        let page = |name: usize| name.checked_sub(self.order.len()).and_then(|at| self.alias_order.get(at)).map_or(name, |(_, page)| *page);
        let mut pages = Vec::new();
        // a page may be found by its title and by its aliases
        for at in similar(title, names, limit.saturating_mul(MOST_NAMES)).into_iter().map(page) {
            if pages.len() < limit && !pages.contains(&at) {
                pages.push(at);
            }
        }
        pages
    }
}

/// A folded name without its leading article.
fn without_the(name: &str) -> &str {
    name.strip_prefix("the ").unwrap_or(name)
}

/// The positions of the (folded) candidates most like `wanted`, best first; ties keep their order.
pub(crate) fn similar<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, limit: usize) -> Vec<usize> {
    let wanted = fold(wanted);
    let pairs = bigrams(&wanted);
    let mut scored: Vec<(f64, usize)> = candidates
        .enumerate()
        .map(|(at, candidate)| (likeness(&wanted, &pairs, candidate), at))
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

    fn titles() -> Titles {
        Titles::new(["Loire", "The Hague", "São Paulo", "Mercury (planet)", "Mercury (element)", "Paris", "loire"].into_iter())
    }

    #[test]
    fn exact_comes_before_folded() {
        assert_eq!(titles().find("loire"), Some(6));
        assert_eq!(titles().find("LOIRE"), Some(0));
        assert_eq!(titles().find(" Loire "), Some(0));
    }

    #[test]
    fn folded_and_the() {
        assert_eq!(titles().find("sao  paulo"), Some(2));
        assert_eq!(titles().find("hague"), Some(1));
        assert_eq!(titles().find("the Loire"), Some(0));
        assert_eq!(titles().find("Berlin"), None);
        assert_eq!(titles().find(""), None);
    }

    #[test]
    fn an_alias_is_found_after_every_title() {
        let mut titles = titles();
        titles.add_alias("La Ville-Lumière", 5);
        titles.add_alias("Loire", 5);
        titles.add_alias("Den Haag", 1);
        titles.add_alias("Den Haag", 2);
        assert_eq!(titles.find("la ville lumiere"), Some(5));
        assert_eq!(titles.find("the Den Haag"), Some(1));
        assert_eq!(titles.find("Loire"), Some(0));
        assert_eq!(titles.similar("Den Hag", 1), [1]);
        assert_eq!(titles.similar("Paris Ville-Lumière", 3), [5]);
        assert_eq!(titles.find_alias("Paris"), None);
    }

    #[test]
    fn a_misspelt_name_means_the_only_page_like_it() {
        let mut titles = Titles::new(
            ["The Barber of Seville", "Rhône", "Rhine", "Charles Darwin", "Charles Dickens", "Lake Garda", "Apollo 11", "Apollo 12"]
                .into_iter(),
        );
        titles.add_alias("Il barbiere di Siviglia", 0);
        assert_eq!(titles.meant("Barber of Sevile"), Some(0));
        assert_eq!(titles.meant("il barbiere di Sivilgia"), Some(0));
        assert_eq!(titles.meant("Rhônne"), Some(1));
        assert_eq!(titles.meant("Charles Drawin"), Some(3));
        assert_eq!(titles.meant("LakeGarda"), Some(5));
        // as like the one as the other, another first letter, a number that is another
        for other in ["Rhane", "Phine", "Apollo 13", "Lake Guarana", "Charles", ""] {
            assert_eq!(titles.meant(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_is_found_among_words_that_name_nothing() {
        let titles = Titles::new(["Danube", "The Blue Danube", "Paris", "Canada", "Toronto", "Picasso", "K2"].into_iter());
        assert_eq!(titles.meant("Danube flow into"), Some(0));
        assert_eq!(titles.meant("composer the blue danube"), Some(1));
        assert_eq!(titles.meant("Picasso,"), Some(5));
        for other in ["Canada Toronto", "canada or toronto", "Paris Hilton", "Danube River", "K2 climbed", "paris a b c d", "paris 2024"] {
            assert_eq!(titles.meant(other), None, "{other}");
        }
    }

    #[test]
    fn similar_titles() {
        assert_eq!(titles().similar("Mercury", 3), [3, 4]);
        assert_eq!(titles().similar("Pariss", 3), [5]);
        assert_eq!(titles().similar("Paris, France", 3), [5]);
        assert_eq!(titles().similar("Loire River", 1), [0]);
        assert!(titles().similar("xyzzy", 3).is_empty());
        assert!(titles().similar("", 3).is_empty());
    }
}
