//! The pages of a knowledge base from documents.

use autoact_documents::{Document, SEGMENT_CHARS, Segment, Titles};
use autoact_tools::Page;
use autoact_tools::text::several_lines;
use serde::Serialize;

/// A line of a corpus file.
#[derive(Debug, Serialize)]
pub(super) struct PageLine {
    #[serde(flatten)]
    pub(super) page: Page,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<String>,
}

/// The pages of a document: one for each of its segments, which are small enough to be seen whole.
/// A page is also found by its heading alone.
pub(super) fn pages(titles: &mut Titles, document: &Document) -> Vec<PageLine> {
    let page = |segment: Segment| {
        let title = titles.of(document, &segment);
        // a blank line says nothing to the reader of a corpus
        let text = several_lines(&segment.text).replace("\n\n", "\n");
        let aliases = segment.heading.into_iter().filter(|heading| *heading != title).collect();
        PageLine { page: Page { title, text }, aliases }
    };
    document.segments(SEGMENT_CHARS).into_iter().map(page).filter(|line| !line.page.text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use autoact_documents::{Importer, Limits, Reader};
    use autoact_tools::Corpus;
    use proptest::prelude::*;

    use super::*;

    fn document(name: &str, text: &str) -> Document {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), text).unwrap();
        let importer = Importer::open(directory.path(), Reader::here(Limits::default())).unwrap();
        importer.read(&importer.files()[0]).unwrap()
    }

    #[test]
    fn a_section_is_a_page_and_a_long_one_several() {
        let sentence = "The Loire is a river of France that flows to the Atlantic. ";
        let text = format!("# Loire\n\nIntro.\n\nMore.\n\n## Course\n\n{}\n\n## Course\n\nAgain.\n", sentence.repeat(20));
        let lines = pages(&mut Titles::default(), &document("a.md", &text));
        let aliases: Vec<usize> = lines.iter().map(|line| line.aliases.len()).collect();
        let pages: Vec<Page> = lines.into_iter().map(|line| line.page).collect();
        let titles: Vec<&str> = pages.iter().map(|page| page.title.as_str()).collect();
        assert_eq!(titles, ["Loire", "Loire: Course", "Loire: Course (2)", "Loire: Course (3)"]);
        assert_eq!((pages[0].text.as_str(), aliases), ("Intro.\nMore.", vec![0, 1, 1, 1]));
        assert!(pages.iter().all(|page| page.text.chars().count() <= SEGMENT_CHARS && page.title != page.text));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Whatever the files say, the reader of a corpus takes the pages.
        #[test]
        fn pages_are_a_corpus(texts in prop::collection::vec("(# )?[a-cé\u{301} .()2#\n]{1,60}x", 1..6)) {
            let mut titles = Titles::default();
            let found: Vec<Page> = texts.iter().flat_map(|text| pages(&mut titles, &document("a.md", &format!("{text}\n\ny")))).map(|line| line.page).collect();
            let corpus = Corpus::from_pages(found.clone()).unwrap();
            for page in &found {
                prop_assert_eq!(&corpus.page(&page.title).unwrap().title, &page.title);
            }
        }
    }
}
