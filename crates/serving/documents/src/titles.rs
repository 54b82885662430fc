//! Titles of segments: names by which a reader opens them.

use std::collections::HashMap;

use autoact_base::lines::one_line;
use autoact_base::names::{canonical, fold};

use crate::document::Document;
use crate::segment::Segment;

/// A longer title is cut: a model copies it to open the page.
const MAX_TITLE_CHARS: usize = 120;

/// Gives segments titles that name one segment each.
#[derive(Debug, Default)]
pub struct Titles {
    /// How often a title was given, by the form in which titles are compared.
    given: HashMap<String, usize>,
}

impl Titles {
    /// The title of a document's segment: the document's, and the heading above the segment. With a
    /// number from 2 on where the same was given before.
    pub fn of(&mut self, document: &Document, segment: &Segment) -> String {
        match &segment.heading {
            Some(heading) if fold(heading) != fold(&document.title) => self.unique(&format!("{}: {heading}", document.title)),
            _ => self.unique(&document.title),
        }
    }

    /// The title, with a number from 2 on if it was given before.
    fn unique(&mut self, title: &str) -> String {
        let title = short(&one_line(&canonical(title)));
        let mut number = self.given.get(&fold(&title)).copied().unwrap_or_default();
        loop {
            number += 1;
            let candidate = if number == 1 { title.clone() } else { format!("{title} ({number})") };
            let is_new = number == 1 || !self.given.contains_key(&fold(&candidate));
            if is_new {
                self.given.insert(fold(&title), number);
                if number > 1 {
                    self.given.insert(fold(&candidate), 1);
                }
                return candidate;
            }
        }
    }
}

/// The title, or its first words.
fn short(title: &str) -> String {
    let Some((end, _)) = title.char_indices().nth(MAX_TITLE_CHARS) else {
        return title.to_owned();
    };
    let cut = &title[..end];
    let words = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', ';', ':', '-', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_retrieve_would_take_for_one_have_numbers() {
        let mut titles = Titles::default();
        let given: Vec<String> = ["A b", "a B", "A b (2)", "A b!", "A b (2)"].map(|title| titles.unique(title)).into();
        let folded: std::collections::HashSet<String> = given.iter().map(|title| fold(title)).collect();
        assert_eq!((given[0].as_str(), given[1].as_str(), folded.len()), ("A b", "a B (2)", 5), "{given:?}");
        assert_eq!(titles.unique(&"word ".repeat(40)).chars().count(), MAX_TITLE_CHARS);
    }
}
