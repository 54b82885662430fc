//! The only writer of standard output and standard error.
//!
//! `println!` panics when its reader has gone, as `head` does. Here a closed standard output is an
//! error that ends the command quietly, with the exit code 141 that a shell shows for a program
//! that SIGPIPE ended. Standard error is for remarks: nothing depends on them, so a failure is
//! passed over.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use console::Term;

use crate::text::cut;
use crate::words::Block;

/// Standard output took no more.
#[derive(Debug)]
pub(crate) struct OutputError(io::Error);

impl OutputError {
    /// Whether the reader has gone, which is no mistake of anybody's.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write to standard output")
    }
}

impl std::error::Error for OutputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Prints a line to standard output, at once.
pub(crate) fn line(text: impl fmt::Display) -> Result<(), OutputError> {
    write(format_args!("{text}\n"))
}

/// Prints text that has its own line ends.
pub(crate) fn text(text: impl fmt::Display) -> Result<(), OutputError> {
    write(format_args!("{text}"))
}

/// Passes on what somebody else's program made.
pub(crate) fn bytes(data: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(data).and_then(|()| out.flush()).map_err(OutputError)
}

/// Text of several lines after a label of `columns` columns: the lines begin below each other.
pub(crate) fn hanging(text: &str, columns: usize) -> String {
    text.replace('\n', &format!("\n{:columns$}", ""))
}

fn write(text: fmt::Arguments<'_>) -> Result<(), OutputError> {
    // one write for the whole text: a reader sees whole lines
    let text = text.to_string();
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(OutputError)
}

/// A remark on standard error.
pub(crate) fn note(text: impl fmt::Display) {
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// What a person is asked to type, on standard error; the line stays open.
pub(crate) fn prompt(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// An error on standard error.
pub(crate) fn error(text: impl fmt::Display) {
    note(format_args!("error: {text}"));
}

/// Whether standard output is for eyes: colours make sense, unless `NO_COLOR` says otherwise.
pub(crate) fn colours() -> bool {
    io::stdout().is_terminal() && wants_colours()
}

fn wants_colours() -> bool {
    // no-color.org: set and not empty
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && !is_dumb()
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// How many columns standard output has; `None` where it is no terminal.
pub(crate) fn columns() -> Option<usize> {
    let term = Term::stdout();
    let size = term.is_term().then(|| term.size_checked()).flatten();
    size.map(|(_, columns)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// A remark that stands only while something lasts: on a terminal it is dim and taken away again.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    shown: bool,
}

impl Passing {
    /// Shows the remark, unless one stands.
    pub(crate) fn show(&mut self, text: &str) {
        if std::mem::replace(&mut self.shown, true) {
            return;
        }
        let term = Term::stderr();
        if !erasable(&term) {
            note(text);
            return;
        }
        let columns = term.size_checked().map_or(80, |(_, columns)| usize::from(columns));
        let text = cut(text, columns.saturating_sub(1));
        let text = if wants_colours() { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text };
        let _ = term.write_str(&text).and_then(|()| term.flush());
    }

    /// Takes it away.
    pub(crate) fn clear(&mut self) {
        let term = Term::stderr();
        if std::mem::take(&mut self.shown) && erasable(&term) {
            let _ = term.clear_line();
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Rows at the end of standard output that stand only while something is written: see [`Block`].
/// What is printed next comes in their place, so [`Live::clear`] comes before it.
#[derive(Debug, Default)]
pub(crate) struct Live {
    block: Block,
}

impl Live {
    /// Shows what `rows` makes of the terminal's columns.
    pub(crate) fn show(&mut self, rows: impl FnOnce(usize) -> Vec<String>) -> Result<(), OutputError> {
        let size = Term::stdout().size_checked().map(|(lines, columns)| (usize::from(lines), usize::from(columns)));
        let (lines, columns) = size.filter(|(lines, columns)| *lines > 0 && *columns > 0).unwrap_or((24, 80));
        text(self.block.draw(rows(columns), lines))
    }

    /// Takes the rows away.
    pub(crate) fn clear(&mut self) -> Result<(), OutputError> {
        match self.block.erase() {
            nothing if nothing.is_empty() => Ok(()),
            erase => text(erase),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // whoever ends the command gets a clean terminal; one that has gone needs none
        let _ = self.clear();
    }
}

/// Whether what stands on standard output can be taken away again.
pub(crate) fn is_live() -> bool {
    erasable(&Term::stdout())
}

fn erasable(term: &Term) -> bool {
    term.is_term() && !is_dumb()
}
