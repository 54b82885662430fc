//! Tests of importing.
#![allow(clippy::unwrap_used)] // tests

use std::fs;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::reader::guarded;
use crate::{Kind, SEGMENT_CHARS};

/// Reads a file of this name and content.
fn import(name: &str, content: &[u8], limits: Limits) -> Result<Document, ReadError> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(name), content).unwrap();
    let importer = Importer::open(directory.path(), Reader::here(limits)).unwrap();
    importer.read(&importer.files()[0])
}

#[test]
fn bytes_are_read_as_files_are() {
    let html = b"<title>Loire</title><main><p>The Loire is a river.".to_vec();
    let document = Reader::here(Limits::default()).read("loire.html", Kind::Html, html.clone()).unwrap();
    assert_eq!(document, import("loire.html", &html, Limits::default()).unwrap());
    let limits = Limits { file_bytes: 3, ..Limits::default() };
    assert_eq!(Reader::here(limits).read("x", Kind::Text, html).unwrap_err().reason(), "too_large");
    assert_eq!(Reader::here(limits).read("x", Kind::Text, Vec::new()).unwrap_err().reason(), "empty");
}

fn reason(name: &str, content: &[u8], limits: Limits) -> &'static str {
    import(name, content, limits).unwrap_err().reason()
}

#[test]
fn a_document_has_sections_and_segments() {
    let document = import("rivers_of_france.md", b"Intro.\n\n# Loire\n\nIt is long. It is wide.", Limits::default()).unwrap();
    assert_eq!((document.title.as_str(), document.kind, document.pages), ("Loire", Kind::Markdown, None));
    let segments = document.segments(SEGMENT_CHARS);
    assert_eq!(segments.len(), 2);
    assert_eq!(segments[1].text, "It is long. It is wide.");
    assert_eq!((segments[1].file.as_str(), segments[1].heading.as_deref()), ("rivers_of_france.md", Some("Loire")));
    assert_eq!(&document.text[segments[1].span.clone()], segments[1].text);
    assert_eq!(import("rivers_of_france.txt", b"one. two", Limits::default()).unwrap().title, "rivers of france");
}

#[test]
fn hostile_files_are_named() {
    let limits = Limits { file_bytes: 100, ..Limits::default() };
    assert_eq!(reason("a.txt", b"", limits), "empty");
    assert_eq!(reason("a.txt", b" \n\t", limits), "no_text");
    assert_eq!(reason("a.txt", &[b'a'; 101], limits), "too_large");
    assert_eq!(reason("a.txt", b"caf\xe9", limits), "encoding");
    assert_eq!(reason("a.pdf", b"not a PDF", limits), "broken");
    assert_eq!(reason("a.pdf", b"%PDF-1.7\n", limits), "broken");
}

#[test]
fn a_sparse_file_larger_than_memory_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    fs::File::create(directory.path().join("a.txt")).unwrap().set_len(1 << 40).unwrap();
    let importer = Importer::open(directory.path(), Reader::here(Limits::default())).unwrap();
    assert!(matches!(importer.read(&importer.files()[0]), Err(ReadError::TooLarge { .. })));
}

#[test]
fn a_panic_and_a_parser_that_does_not_end_are_errors() {
    let panicked = guarded::<()>(Limits::default(), || panic!("index {}", 1)).unwrap_err();
    assert!(matches!(&panicked, ReadError::Panicked { message } if message == "index 1"), "{panicked}");
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    // ends once the test has seen that it was not waited for
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let late = guarded(limits, move || {
        let _ = ended.recv();
        Ok(())
    });
    assert!(matches!(late, Err(ReadError::Time { .. })));
    drop(end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The whole way, for every format: segments are exact parts of the document's text, in order.
    #[test]
    fn any_bytes_are_a_document_or_an_error(
        content in prop_oneof![any::<Vec<u8>>(), "[ -~é。\n]{0,200}".prop_map(String::into_bytes)],
        extension in prop_oneof![Just("txt"), Just("md"), Just("html"), Just("pdf")],
        max_chars in 1_usize..60,
    ) {
        let Ok(document) = import(&format!("a.{extension}"), &content, Limits::default()) else { return Ok(()) };
        let mut end = 0;
        for section in &document.sections {
            prop_assert!(section.span.start >= end && document.text[end..section.span.start].trim().is_empty());
            end = section.span.end;
        }
        prop_assert_eq!(end, document.text.len());
        let strip = |text: &str| text.split_whitespace().collect::<String>();
        let segments = document.segments(max_chars);
        prop_assert_eq!(strip(&segments.iter().map(|segment| segment.text.as_str()).collect::<String>()), strip(&document.text));
        for segment in &segments {
            prop_assert_eq!(&document.text[segment.span.clone()], segment.text.as_str());
            prop_assert!(segment.text.chars().count() <= max_chars);
        }
    }
}
