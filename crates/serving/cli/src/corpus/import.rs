//! `autoact corpus import`: the files of a directory as a knowledge base.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_base::error::chain;
use autoact_documents::{Ignored, Importer, Limits, READER_THREAD, Titles};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::pages::pages;
use crate::args::ImportOptions;
use crate::{exit, out};

/// How often the bar is drawn, so that the time moves while a large file is read.
const TICK: Duration = Duration::from_millis(500);

/// Where there is no terminal, a line says how far it is: first after so long, then as often.
const NOTE_EVERY: Duration = Duration::from_secs(2);

/// What every user may do with a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// What was read and what was written.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// The knowledge base.
    out: String,
    /// The files that were read.
    files: usize,
    /// How many of each format.
    kinds: BTreeMap<&'static str, usize>,
    /// The pages of those that have pages.
    pages: u64,
    /// The sections of all of them.
    sections: usize,
    /// The pages of the knowledge base: its lines.
    written: usize,
    /// The bytes of the knowledge base.
    bytes: u64,
    /// The files that could not be read.
    skipped: Vec<Skipped>,
    /// What was passed over.
    ignored: Passed,
}

#[derive(Debug, Serialize)]
struct Skipped {
    file: String,
    reason: &'static str,
    message: String,
}

#[derive(Debug, Default, Serialize)]
struct Passed {
    unknown: usize,
    hidden: usize,
    links: usize,
    special: usize,
    unreadable: Vec<String>,
}

pub(super) fn run(options: &ImportOptions) -> anyhow::Result<u8> {
    let limits = Limits { file_bytes: options.max_file_bytes, ..Limits::default() };
    leave_panics_to_the_summary();
    anyhow::ensure!(!options.out.is_dir(), "`{}` is a directory; fix: name a file in it with `--out`", options.out.display());
    let importer = Importer::open(&options.path, limits)?;
    let directory = directory(&options.out);
    // without a name, so that Ctrl-C leaves nothing
    let file = tempfile::tempfile_in(directory).with_context(|| format!("cannot write to `{}`", directory.display()))?;
    let mut file = BufWriter::new(file);
    let mut summary = read(&importer, &mut file).with_context(|| format!("cannot write `{}`", options.out.display()))?;
    summary.out = options.out.display().to_string();
    if summary.written > 0 {
        replace(file, directory, &options.out).with_context(|| format!("cannot write `{}`", options.out.display()))?;
    }
    if options.json {
        out::line(serde_json::to_string(&summary)?)?;
    } else {
        show(&summary)?;
    }
    if summary.written == 0 {
        out::error(format_args!("nothing to import in `{}`; expected PDF, HTML, Markdown or text files", options.path.display()));
        return Ok(exit::FAILED);
    }
    Ok(exit::OK)
}

/// A panic of a parser is an error of its file, and is named there: not on standard error as well.
fn leave_panics_to_the_summary() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(READER_THREAD) {
            before(panic);
        }
    }));
}

/// Reads all files, and writes their pages.
fn read(importer: &Importer, file: &mut BufWriter<File>) -> anyhow::Result<Summary> {
    let Ignored { unknown, hidden, links, special, unreadable } = importer.ignored().clone();
    let mut summary = Summary { ignored: Passed { unknown, hidden, links, special, unreadable }, ..Summary::default() };
    let mut titles = Titles::default();
    let mut progress = Progress::new(importer.files().len());
    for (done, entry) in importer.files().iter().enumerate() {
        progress.step(done, &entry.path);
        let document = match importer.read(entry) {
            Ok(document) => document,
            Err(error) => {
                let skipped = Skipped { file: entry.path.clone(), reason: error.reason(), message: chain(&error) };
                summary.skipped.push(skipped);
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
        summary.files += 1;
        *summary.kinds.entry(document.kind.name()).or_default() += 1;
        summary.pages += u64::from(document.pages.unwrap_or_default());
        summary.sections += document.sections.len();
    }
    progress.bar.finish_and_clear();
    Ok(summary)
}

/// The directory of a file.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Puts the whole file in the place of the one before, in one step.
fn replace(file: BufWriter<File>, directory: &Path, path: &Path) -> anyhow::Result<()> {
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.rewind()?;
    let mut named = tempfile::Builder::new();
    let mut named = named.prefix(".autoact-import-").permissions(Permissions::from_mode(NEW_FILE)).tempfile_in(directory)?;
    std::io::copy(&mut file, &mut named)?;
    named.as_file().sync_all()?;
    named.persist(path)?;
    Ok(())
}

fn show(summary: &Summary) -> anyhow::Result<()> {
    for skipped in &summary.skipped {
        out::line(format_args!("skipped {}: {}", skipped.file, skipped.message))?;
    }
    for path in &summary.ignored.unreadable {
        out::line(format_args!("skipped {path}: cannot read the directory, or it lies too deep"))?;
    }
    let Passed { unknown, hidden, links, special, .. } = summary.ignored;
    let passed = [(unknown, "of other formats"), (hidden, "hidden"), (links, "links"), (special, "no regular files")];
    let passed: Vec<String> = passed.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !passed.is_empty() {
        out::line(format_args!("passed over: {}", passed.join(", ")))?;
    }
    let kinds: Vec<String> = summary.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let Summary { files, pages, sections, skipped, .. } = summary;
    out::line(format_args!("read {files} files{kinds}: {pages} PDF pages, {sections} sections; {} skipped", skipped.len()))?;
    if summary.written > 0 {
        let Summary { out, written, bytes, .. } = summary;
        out::line(format_args!("wrote {written} pages ({}) to {out}; use: autoact up --corpus {out}", HumanBytes(*bytes)))?;
    }
    Ok(())
}

/// How far the import is, on standard error.
struct Progress {
    bar: ProgressBar,
    total: usize,
    noted: Instant,
}

impl Progress {
    fn new(total: usize) -> Progress {
        let bar = ProgressBar::new(total as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} files  {elapsed}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Progress { bar, total, noted: Instant::now() }
    }

    /// So many files are done, and this one comes next.
    fn step(&mut self, done: usize, path: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(autoact_tools::text::one_line(path));
        if self.bar.is_hidden() && self.noted.elapsed() >= NOTE_EVERY {
            self.noted = Instant::now();
            out::note(format_args!("{done}/{} files", self.total));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use std::fs;
    use std::path::PathBuf;

    use autoact_tools::Corpus;

    use super::*;

    fn options(path: &Path, out: PathBuf) -> ImportOptions {
        ImportOptions { path: path.to_owned(), out, max_file_bytes: 1000, json: true }
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
        assert_eq!(run(&options(&source, out.clone())).unwrap(), exit::OK);
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
        assert_eq!(run(&options(&source, out.clone())).unwrap(), exit::FAILED);
        assert_eq!(fs::read_to_string(&out).unwrap(), "before");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(run(&options(&directory.path().join("none"), out)).is_err());
        assert!(run(&options(&source, directory.path().to_owned())).is_err(), "a directory is no file");
    }

    #[test]
    fn the_documentation_names_every_field() {
        let docs = include_str!("../../../../../docs/cli.md");
        let skipped = vec![Skipped { file: String::new(), reason: "", message: String::new() }];
        let value = serde_json::to_value(Summary { skipped, ..Summary::default() }).unwrap();
        let inner =
            [&value, &value["skipped"][0], &value["ignored"]].map(|value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
        let missing: Vec<String> = inner.concat().into_iter().filter(|name| !docs.contains(&format!("`{name}`"))).collect();
        assert_eq!(missing, [""; 0], "not in docs/cli.md");
    }
}
