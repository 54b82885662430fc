//! The pages of a knowledge base from documents.

use std::collections::HashMap;

use autoact_documents::{Document, SEGMENT_CHARS};
use autoact_tools::Page;
use autoact_tools::text::{canonical, fold, one_line, several_lines};

/// A longer title is cut: a model copies it to open the page.
const MAX_TITLE_CHARS: usize = 120;

/// Gives the pages of documents titles that name one page each.
#[derive(Debug, Default)]
pub(super) struct Titles {
    /// How often a title was given, by the form in which `Retrieve` compares titles.
    given: HashMap<String, usize>,
}

impl Titles {
    /// The pages of a document: one for each of its segments, which are small enough to be seen
    /// whole.
    pub(super) fn pages(&mut self, document: &Document) -> Vec<Page> {
        let segments = document.segments(SEGMENT_CHARS).into_iter();
        let page = |segment: autoact_documents::Segment| {
            let title = match &segment.heading {
                Some(heading) if fold(heading) != fold(&document.title) => format!("{}: {heading}", document.title),
                _ => document.title.clone(),
            };
            // a blank line says nothing to the reader of a corpus
            Page { title: self.unique(&title), text: several_lines(&segment.text).replace("\n\n", "\n") }
        };
        segments.map(page).filter(|page| !page.text.is_empty()).collect()
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
    #![allow(clippy::unwrap_used)] // tests
    use autoact_documents::{Importer, Limits};
    use autoact_tools::Corpus;
    use proptest::prelude::*;

    use super::*;

    fn document(name: &str, text: &str) -> Document {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), text).unwrap();
        let importer = Importer::open(directory.path(), Limits::default()).unwrap();
        importer.read(&importer.files()[0]).unwrap()
    }

    #[test]
    fn a_section_is_a_page_and_a_long_one_several() {
        let sentence = "The Loire is a river of France that flows to the Atlantic. ";
        let text = format!("# Loire\n\nIntro.\n\nMore.\n\n## Course\n\n{}\n\n## Course\n\nAgain.\n", sentence.repeat(20));
        let pages = Titles::default().pages(&document("a.md", &text));
        let titles: Vec<&str> = pages.iter().map(|page| page.title.as_str()).collect();
        assert_eq!(titles, ["Loire", "Loire: Course", "Loire: Course (2)", "Loire: Course (3)"]);
        assert_eq!(pages[0].text, "Intro.\nMore.");
        assert!(pages.iter().all(|page| page.text.chars().count() <= SEGMENT_CHARS && page.title != page.text));
    }

    #[test]
    fn titles_that_retrieve_would_take_for_one_have_numbers() {
        let mut titles = Titles::default();
        let given: Vec<String> = ["A b", "a B", "A b (2)", "A b!", "A b (2)"].map(|title| titles.unique(title)).into();
        let folded: std::collections::HashSet<String> = given.iter().map(|title| fold(title)).collect();
        assert_eq!((given[0].as_str(), given[1].as_str(), folded.len()), ("A b", "a B (2)", 5), "{given:?}");
        assert_eq!(titles.unique(&"word ".repeat(40)).chars().count(), MAX_TITLE_CHARS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Whatever the files say, the reader of a corpus takes the pages.
        #[test]
        fn pages_are_a_corpus(texts in prop::collection::vec("(# )?[a-cé\u{301} .()2#\n]{1,60}x", 1..6)) {
            let mut titles = Titles::default();
            let pages: Vec<Page> = texts.iter().flat_map(|text| titles.pages(&document("a.md", &format!("{text}\n\ny")))).collect();
            let corpus = Corpus::from_pages(pages.clone()).unwrap();
            for page in &pages {
                prop_assert_eq!(&corpus.page(&page.title).unwrap().title, &page.title);
            }
        }
    }
}
