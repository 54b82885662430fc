//! The names of a corpus's pages, in memory.

use std::collections::HashMap;
use std::convert::Infallible;

use crate::names::{self, Names, similar};
use crate::text::fold;

/// How many names of one page are expected among the most similar ones.
const MOST_NAMES: usize = 4;

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
        let Ok(page) = names::find_alias(self, alias);
        page
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
        let Ok(page) = names::find_title(self, title);
        page
    }

    /// What a name means that finds no page ([`names::meant`]).
    pub(crate) fn meant(&self, written: &str) -> Option<usize> {
        let Ok(page) = names::meant(self, written);
        page
    }

    /// The pages that a text names ([`names::named`]).
    pub(crate) fn named(&self, text: &str) -> Vec<usize> {
        let Ok(pages) = names::named(self, text);
        pages
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

impl Names for Titles {
    type Page = usize;
    type Error = Infallible;

    fn titled(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        Ok(self.folded.get(folded).copied())
    }

    fn aliased(&self, folded: &str) -> Result<Option<usize>, Infallible> {
        Ok(self.aliases.get(folded).copied())
    }

    /// Calls it for all names.
    fn near(&self, _: &str, each: &mut dyn FnMut(&str, usize)) -> Result<(), Infallible> {
        let titles = self.order.iter().enumerate().map(|(at, title)| (title.as_str(), at));
        let names = titles.chain(self.alias_order.iter().map(|(alias, at)| (alias.as_str(), *at)));
        names.for_each(|(name, page)| each(name, page));
        Ok(())
    }
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
        assert_eq!(titles.meant("Between the Danube"), Some(0));
        assert_eq!(titles.meant("Picasso's biggest rival"), Some(5));
        assert_eq!(titles.meant("Strauss's The Blue Danube"), Some(1));
        assert_eq!(titles.meant("K2. K2."), Some(6));
        assert_eq!(titles.meant("The Blue Danube, the blue danube"), Some(1));
        for other in [
            "K2 K2 Toronto",
            "Canada's Toronto",
            "Canada Toronto",
            "canada or toronto",
            "Paris Hilton",
            "Danube River",
            "K2 climbed",
            "paris a b c d",
            "paris 2024",
        ] {
            assert_eq!(titles.meant(other), None, "{other}");
        }
    }

    #[test]
    fn the_pages_that_a_text_names() {
        let mut titles =
            Titles::new(["Po", "Tiber", "The Blue Danube", "Danube", "Moon", "Europa", "It", "Harvard University"].into_iter());
        titles.add_alias("Harvard", 7);
        for (text, pages) in [
            ("Of the Po and the Tiber, which is the shorter one?", vec![0, 1]),
            ("who wrote the blue danube", vec![2]),
            ("The moon Europa goes round a planet", vec![5]),
            ("does the moon go round a planet", vec![4]),
            ("How old is Harvard's library, and Harvard?", vec![7]),
            ("Is it about po? It may be.", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(titles.named(text), pages, "{text}");
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
