//! The passages that an answer rests on, a line for each.

use autoact_wire::v1::Citation;

use crate::text::{cut, plain_line};

/// Columns of a quote; `--json` has all of it.
const QUOTE_COLUMNS: usize = 240;

/// `[1] handbook/travel.pdf, page 3, “Hotels”: “A manager approves travel over 2,000 euros.”`, and
/// of the group's own pages `[1] Loire: “The Loire is 1,006 km long.”`
pub(crate) fn lines(citations: &[Citation]) -> impl Iterator<Item = String> {
    (1..).zip(citations).map(|(number, citation): (usize, _)| {
        let quote = cut(&plain_line(&citation.quote), QUOTE_COLUMNS);
        format!("[{number}] {}: “{quote}”", place(citation))
    })
}

fn place(citation: &Citation) -> String {
    let Citation { collection, file, title, heading, page, .. } = citation;
    // a document is known by its path, a page of the group's own by its title
    let (document, section) = match (file.as_str(), heading.as_str()) {
        ("", heading) => (title.as_str(), heading),
        (file, "") => (file, title.as_str()),
        (file, heading) => (file, heading),
    };
    let slash = if collection.is_empty() { "" } else { "/" };
    let mut place = plain_line(&format!("{collection}{slash}{document}"));
    if let Some(page) = page {
        place.push_str(&format!(", page {page}"));
    }
    if !section.is_empty() {
        place.push_str(&format!(", “{}”", plain_line(section)));
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(citation: Citation, expected: &str) {
        assert_eq!(lines(&[citation]).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_citation_names_its_document_and_its_section() {
        let hotels = Citation {
            collection: "handbook".into(),
            file: "travel.pdf".into(),
            title: "Travel: Hotels".into(),
            heading: "Hotels".into(),
            page: Some(3),
            quote: "A manager approves\ntravel over 2,000 euros.".into(),
            ..Citation::default()
        };
        check(hotels.clone(), "[1] handbook/travel.pdf, page 3, “Hotels”: “A manager approves travel over 2,000 euros.”");
        let plain = Citation { collection: String::new(), heading: String::new(), page: None, quote: "Yes.".into(), ..hotels };
        check(plain, "[1] travel.pdf, “Travel: Hotels”: “Yes.”");
        let own = Citation { title: "Loire".into(), quote: "The Loire is 1,006 km long.".into(), ..Citation::default() };
        check(own, "[1] Loire: “The Loire is 1,006 km long.”");
    }

    #[test]
    fn a_citation_is_harmless_and_short() {
        let odd = Citation { title: "a\u{1b}[2J\nb".into(), quote: "x".repeat(999), ..Citation::default() };
        let line = lines(&[odd]).next().unwrap_or_default();
        assert!(line.starts_with("[1] a\u{fffd}[2J b: “xxx") && line.ends_with("x…”") && line.chars().count() < 300, "{line}");
    }
}
