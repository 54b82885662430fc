//! Documents that are read in confined processes, in each tier that this machine has.
#![allow(clippy::unwrap_used)] // tests

use std::path::{Path, PathBuf};

use autoact_documents::{Document, Kind, Limits, ReadError, Reader};
use autoact_sandbox::{Sandbox, Tier, Tiers};

fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_documents-test-reader"))
}

/// Readers with these limits in each tier that is there.
fn readers(limits: Limits) -> Vec<Reader> {
    let tiers = Tiers::of(&launcher());
    let found = [(Tier::Namespaces, &tiers.namespaces), (Tier::Landlock, &tiers.landlock)];
    let reader = |(tier, available): (Tier, &Result<(), String>)| match available {
        Ok(()) => Some(Reader::within(limits, Sandbox { tier, launcher: Some(launcher()), ..Sandbox::default() })),
        Err(reason) => {
            println!("skipped: {tier}: {reason}");
            None
        }
    };
    found.into_iter().filter_map(reader).collect()
}

fn read(reader: &Reader, kind: Kind, bytes: &[u8]) -> Result<Document, ReadError> {
    reader.read("a", kind, bytes.to_vec())
}

#[test]
fn a_confined_process_reads_what_this_one_reads() {
    let files: [(Kind, &[u8]); 6] = [
        (Kind::Html, b"<title>Loire</title><main><h1>The Loire</h1><p>It is a \"river\".</main>"),
        (Kind::Markdown, "# Loire\n\nIt is long – very long.\n\n## Towns\n\n- Tours\n".as_bytes()),
        (Kind::Text, b"one.\n\ntwo"),
        (Kind::Text, b"caf\xe9"),
        (Kind::Pdf, b"%PDF-1.7\n"),
        (Kind::Text, b" \n"),
    ];
    let limits = Limits::default();
    for reader in readers(limits) {
        for (kind, bytes) in files {
            match (read(&reader, kind, bytes), read(&Reader::here(limits), kind, bytes)) {
                (Ok(confined), Ok(here)) => assert_eq!(confined, here),
                (Err(confined), Err(here)) => assert_eq!((confined.reason(), confined.to_string()), (here.reason(), here.to_string())),
                (confined, here) => panic!("{confined:?} is not {here:?}"),
            }
        }
    }
}

#[test]
fn a_document_that_takes_too_much_memory_is_named() {
    let text = "word ".repeat(12 << 20);
    for reader in readers(Limits { memory_bytes: 96 << 20, ..Limits::default() }) {
        let error = read(&reader, Kind::Text, text.as_bytes()).unwrap_err();
        assert!(matches!(error, ReadError::Memory { limit } if limit == 96 << 20), "{error}");
        // the next one is read
        assert_eq!(read(&reader, Kind::Text, b"one").unwrap().text, "one");
    }
}

#[test]
fn a_process_that_cannot_start_is_an_error_of_the_document() {
    let launcher = Some(Path::new("/nowhere").to_owned());
    let reader = Reader::within(Limits::default(), Sandbox { launcher, ..Sandbox::default() });
    assert!(matches!(read(&reader, Kind::Text, b"one"), Err(ReadError::Process { .. })));
}
