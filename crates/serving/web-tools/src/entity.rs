//! What a text is about: the page that one of its names means.
//!
//! Each run of words that is a title or an alias is a candidate. What counts is how much of the text
//! the name is, whether it is written as a name, how many other words of the text stand on the page,
//! and where it stands.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;

use autoact_tools::names::{Names, meant};
use autoact_tools::text::{fold, query_stems, stems};
use serde::Deserialize;

/// A name has at most so many words.
const NAME_WORDS: usize = 10;
/// Of a longer text the beginning is looked at.
const MOST_WORDS: usize = 80;
/// Pages of a file.
const MOST_PAGES: usize = 1_000_000;

/// A page of a file.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) title: String,
    pub(crate) text: String,
    #[serde(default)]
    aliases: Vec<String>,
    /// Where people read it.
    pub(crate) url: Option<String>,
}

/// Pages by their titles and aliases.
#[derive(Debug)]
pub(crate) struct Entities {
    pages: Vec<Entry>,
    names: HashMap<String, Vec<usize>>,
}

/// A run of words of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    /// As it is written, without punctuation around it.
    pub(crate) name: String,
    /// How many words it has, and which is its first one.
    words: usize,
    at: usize,
    /// Whether one of its words that is not the text's first begins with a capital or a digit.
    proper: bool,
}

/// The runs of words of a text that may be names, the longest first.
pub(crate) fn mentions(text: &str) -> Vec<Mention> {
    let words: Vec<&str> = text.split_whitespace().take(MOST_WORDS).collect();
    let mut all = Vec::new();
    for at in 0..words.len() {
        for end in at + 1..=words.len().min(at + NAME_WORDS) {
            let run = &words[at..end];
            let joined = run.join(" ");
            let name = joined.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '(' | ')'));
            let name = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).unwrap_or(name);
            if name.is_empty() || query_stems(name).is_empty() {
                continue;
            }
            let proper = run.iter().enumerate().any(|(index, word)| {
                let first = word.trim_start_matches(|c: char| !c.is_alphanumeric()).chars().next();
                at + index > 0 && first.is_some_and(|c| c.is_uppercase() || c.is_ascii_digit())
            });
            all.push(Mention { name: name.to_owned(), words: end - at, at, proper });
        }
    }
    all.sort_by_key(|mention| (std::cmp::Reverse(mention.words), mention.at));
    all
}

/// How much a mention counts that names a page with this text.
pub(crate) fn score(mention: &Mention, text: &str, page: &str) -> f64 {
    let name: HashSet<String> = stems(&mention.name).into_iter().collect();
    let rest: Vec<String> = query_stems(text).into_iter().filter(|stem| !name.contains(stem)).collect();
    let words: HashSet<String> = stems(page).into_iter().collect();
    let shared = rest.iter().filter(|stem| words.contains(*stem)).count();
    let context = if rest.is_empty() { 0.0 } else { small(shared) / small(rest.len()) };
    let proper = if mention.proper { 2.0 } else { 0.0 };
    small(mention.words) + proper + 2.0 * context - 0.05 * small(mention.at)
}

fn small(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

impl Entities {
    /// Reads JSON lines `{"title": …, "text": …, "aliases": […], "url": …}`.
    pub(crate) fn load(path: &Path) -> Result<Entities, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let mut pages = Vec::new();
        for (line, number) in text.lines().zip(1..=MOST_PAGES).filter(|(line, _)| !line.trim().is_empty()) {
            let expected = "expected a line such as {\"title\": \"Loire\", \"text\": \"The Loire is a river.\"}";
            let page: Entry = serde_json::from_str(line).map_err(|error| format!("{}:{number}: {error}; {expected}", path.display()))?;
            pages.push(page);
        }
        if pages.is_empty() {
            return Err(format!("`{}` has no pages", path.display()));
        }
        Ok(Entities::new(pages))
    }

    fn new(pages: Vec<Entry>) -> Entities {
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        let mut add = |name: &str, at: usize| {
            let folded = fold(name);
            if !folded.is_empty() {
                let all = names.entry(folded).or_default();
                if !all.contains(&at) {
                    all.push(at);
                }
            }
        };
        for (at, page) in pages.iter().enumerate() {
            add(&page.title, at);
            page.aliases.iter().for_each(|alias| add(alias, at));
            // `Mercury (planet)` is a Mercury
            if let Some((name, _)) = page.title.split_once(" (") {
                add(name, at);
            }
        }
        Entities { pages, names }
    }

    /// The page that a text is about.
    pub(crate) fn link(&self, text: &str) -> Option<&Entry> {
        let mut best: Option<(f64, usize)> = None;
        for mention in mentions(text) {
            let folded = fold(&mention.name);
            let forms = [folded.as_str(), folded.strip_prefix("the ").unwrap_or(&folded), &format!("the {folded}")]
                .map(|form| self.names.get(form));
            let mut found: Vec<usize> = forms.into_iter().flatten().flatten().copied().collect();
            found.sort_unstable();
            found.dedup();
            for at in found {
                let page = &self.pages[at];
                // its own title counts more than an alias
                let own = if fold(&page.title) == folded { 0.5 } else { 0.0 };
                let score = score(&mention, text, &page.text) + own;
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, at));
                }
            }
        }
        let Ok(misspelt) = meant(self, text);
        best.map(|(_, at)| at).or(misspelt).or_else(|| self.misspelt(text)).map(|at| &self.pages[at])
    }

    /// The page whose name a run of the text misspells, the longest run first.
    fn misspelt(&self, text: &str) -> Option<usize> {
        let tried = mentions(text).into_iter().filter(|mention| mention.proper).take(30);
        tried.filter_map(|mention| meant(self, &mention.name).ok().flatten()).next()
    }
}

impl Names for Entities {
    type Page = usize;
    type Error = Infallible;

    fn titled(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        Ok(self.names.get(folded).and_then(|pages| pages.first().copied()))
    }

    fn aliased(&self, _: &str) -> Result<Option<usize>, Infallible> {
        Ok(None)
    }

    fn near(&self, _: &str, each: &mut dyn FnMut(&str, usize)) -> Result<(), Infallible> {
        self.names.iter().for_each(|(name, pages)| pages.iter().for_each(|page| each(name, *page)));
        Ok(())
    }
}

#[cfg(test)]
#[path = "entity_tests.rs"]
mod tests;
