//! Files as a knowledge base in one file, for `autoact up --corpus`.

use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use autoact_documents::{Importer, Titles};
use indicatif::HumanBytes;
use serde::Serialize;

use super::progress::Progress;
use super::summary::Reading;
use crate::args::ImportOptions;
use crate::corpus::pages::pages;
use crate::out;
use crate::replace::{directory, replace};

/// What was read and what was written.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// The knowledge base.
    out: String,
    #[serde(flatten)]
    reading: Reading,
    /// The pages of the knowledge base: its lines.
    written: usize,
    /// The bytes of the knowledge base.
    bytes: u64,
}

/// Writes the knowledge base; whether there was nothing to write.
pub(super) fn run(options: &ImportOptions, path: &Path, importer: &Importer) -> anyhow::Result<bool> {
    anyhow::ensure!(!path.is_dir(), "`{}` is a directory; fix: name a file in it with `--out`", path.display());
    let directory = directory(path);
    // without a name, so that Ctrl-C leaves nothing
    let file = tempfile::tempfile_in(directory).with_context(|| format!("cannot write to `{}`", directory.display()))?;
    let mut file = BufWriter::new(file);
    let mut summary = read(importer, &mut file).with_context(|| format!("cannot write `{}`", path.display()))?;
    summary.out = path.display().to_string();
    if summary.written > 0 {
        let written = file.into_inner().map_err(std::io::IntoInnerError::into_error);
        let replaced = written.and_then(|mut file| {
            file.rewind()?;
            replace(path, file)
        });
        replaced.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if options.json {
        out::line(serde_json::to_string(&summary)?)?;
    } else {
        show(&summary)?;
    }
    Ok(summary.written == 0)
}

/// Reads all files, and writes their pages.
fn read(importer: &Importer, file: &mut BufWriter<File>) -> anyhow::Result<Summary> {
    let mut summary = Summary { reading: Reading::new(importer.ignored()), ..Summary::default() };
    let mut titles = Titles::default();
    let mut progress = Progress::new(importer.files().len());
    for (done, entry) in importer.files().iter().enumerate() {
        progress.step(done, &entry.path);
        let document = match importer.read(entry) {
            Ok(document) => document,
            Err(error) => {
                summary.reading.skip(entry, &error);
                continue;
            }
        };
        for page in pages(&mut titles, &document) {
            let mut line = serde_json::to_vec(&page)?;
            line.push(b'\n');
            file.write_all(&line)?;
            summary.written += 1;
            summary.bytes += line.len() as u64;
        }
        summary.reading.read(&document);
    }
    progress.end();
    Ok(summary)
}

fn show(summary: &Summary) -> anyhow::Result<()> {
    let Summary { out, reading, written, bytes } = summary;
    reading.show()?;
    if *written > 0 {
        out::line(format_args!("wrote {written} pages ({}) to {out}; use: autoact up --corpus {out}", HumanBytes(*bytes)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use std::fs;

    use autoact_tools::Corpus;
    use clap::Parser as _;

    use autoact_documents::{Limits, Reader};

    use super::*;
    use crate::args::{Args, Command, CorpusCommand};

    /// Imports with a bound on files; whether there was nothing.
    fn import(path: &Path, out: &Path) -> anyhow::Result<bool> {
        let options = Args::try_parse_from(["autoact", "corpus", "import", &path.display().to_string(), "--json"])?;
        let Command::Corpus(CorpusCommand::Import(options)) = options.command else { unreachable!("an import") };
        let limits = Limits { file_bytes: 1000, ..Limits::default() };
        run(&options, out, &Importer::open(&options.path, Reader::here(limits))?)
    }

    #[test]
    fn a_directory_becomes_a_corpus_and_bad_files_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("in");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("a.md"), "# Loire\n\nA river.\n\nIn France.").unwrap();
        fs::write(source.join("b.html"), "<title>Seine</title><p>It flows.").unwrap();
        fs::write(source.join("c.pdf"), "no PDF").unwrap();
        fs::write(source.join("d.txt"), [b'x'; 1001]).unwrap();
        fs::write(source.join("e.jpg"), "photo").unwrap();
        let out = directory.path().join("own.jsonl");
        assert!(!import(&source, &out).unwrap());
        let corpus = Corpus::load(&out).unwrap();
        let pages: Vec<(&str, &str)> = corpus.pages().iter().map(|page| (page.title.as_str(), page.text.as_str())).collect();
        assert_eq!(pages, [("Loire", "A river.\nIn France."), ("Seine", "It flows.")]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn without_documents_the_file_before_stays() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("in");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("c.pdf"), "no PDF").unwrap();
        let out = directory.path().join("own.jsonl");
        fs::write(&out, "before").unwrap();
        assert!(import(&source, &out).unwrap());
        assert_eq!(fs::read_to_string(&out).unwrap(), "before");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(import(&directory.path().join("none"), &out).is_err());
        assert!(import(&source, directory.path()).is_err(), "a directory is no file");
    }

    #[test]
    fn the_documentation_names_every_field() {
        let docs = include_str!("../../../../../../docs/cli.md");
        let value = serde_json::to_value(Summary { reading: Reading::example(), ..Summary::default() }).unwrap();
        let inner =
            [&value, &value["skipped"][0], &value["ignored"]].map(|value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
        let missing: Vec<String> = inner.concat().into_iter().filter(|name| !docs.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0], "not in docs/cli.md");
    }
}
