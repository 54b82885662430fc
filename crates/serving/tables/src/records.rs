//! Rows of separated values, read strictly.

/// How a file separates its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Commas, with quotes as RFC 4180 has them.
    Csv,
    /// Tabs. There are no quotes: a cell holds neither a tab nor a line break. Cells that are empty
    /// at the end of a row may be left out.
    Tsv,
}

/// What is wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Mistake {
    /// The line in which the row begins, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub reason: String,
}

impl Mistake {
    pub(crate) fn new(line: usize, reason: impl Into<String>) -> Mistake {
        Mistake { line, reason: reason.into() }
    }
}

/// A row and where it begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

/// The rows of a text but for blank lines. Blanks around a cell that is not quoted are no part of it.
///
/// # Errors
/// A quote that is not closed, or that stands where none may be. What follows it cannot be told
/// apart, so reading ends there.
pub(crate) fn records(text: &str, format: Format) -> Result<Vec<Record>, Mistake> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Tsv => Ok(tabs(text)),
        Format::Csv => commas(text),
    }
}

fn tabs(text: &str) -> Vec<Record> {
    let cells = |line: &str| line.split('\t').map(|cell| cell.trim().to_owned()).collect();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| Record { line: at + 1, cells: cells(line) }).collect()
}

fn commas(text: &str) -> Result<Vec<Record>, Mistake> {
    let mut rest = Rest { chars: text.chars().peekable(), line: 1 };
    let mut all = Vec::new();
    while rest.chars.peek().is_some() {
        let line = rest.line;
        let mut cells = Vec::new();
        let mut quoted = false;
        loop {
            let (cell, last) = if rest.chars.peek() == Some(&'"') {
                quoted = true;
                rest.quoted(line)?
            } else {
                rest.plain(line)?
            };
            cells.push(cell);
            if last {
                break;
            }
        }
        if quoted || cells.len() > 1 || !cells[0].is_empty() {
            all.push(Record { line, cells });
        }
    }
    Ok(all)
}

/// What is still to be read.
struct Rest<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Rest<'_> {
    /// A cell without quotes, and whether it is the last of its row.
    fn plain(&mut self, row: usize) -> Result<(String, bool), Mistake> {
        let mut cell = String::new();
        loop {
            match self.chars.next() {
                None => return Ok((cell.trim().to_owned(), true)),
                Some(',') => return Ok((cell.trim().to_owned(), false)),
                Some('\n') => {
                    self.line += 1;
                    return Ok((cell.trim().to_owned(), true));
                }
                // blanks before a quote are allowed, as spreadsheets write them
                Some('"') if cell.trim().is_empty() => return self.opened(row),
                Some('"') => {
                    return Err(Mistake::new(row, "a quote stands within a cell; put the whole cell in quotes and write the quote twice"));
                }
                Some(c) => cell.push(c),
            }
        }
    }

    /// A cell in quotes, which begins here.
    fn quoted(&mut self, row: usize) -> Result<(String, bool), Mistake> {
        self.chars.next();
        self.opened(row)
    }

    /// The same after its first quote.
    fn opened(&mut self, row: usize) -> Result<(String, bool), Mistake> {
        let mut cell = String::new();
        loop {
            match self.chars.next() {
                Some('"') if self.chars.peek() == Some(&'"') => {
                    self.chars.next();
                    cell.push('"');
                }
                Some('"') => break,
                Some(c) => {
                    self.line += usize::from(c == '\n');
                    cell.push(c);
                }
                None => return Err(Mistake::new(row, "a quoted cell is not closed; expected a `\"` at its end")),
            }
        }
        loop {
            match self.chars.next() {
                None => return Ok((cell, true)),
                Some(',') => return Ok((cell, false)),
                Some('\n') => {
                    self.line += 1;
                    return Ok((cell, true));
                }
                Some(' ' | '\r') => {}
                Some(_) => {
                    return Err(Mistake::new(row, "text follows the closing quote of a cell; expected a comma or the row's end"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, format: Format) -> Vec<(usize, Vec<String>)> {
        records(text, format).unwrap().into_iter().map(|record| (record.line, record.cells)).collect()
    }

    fn row(line: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (line, cells.iter().map(|&cell| cell.to_owned()).collect())
    }

    #[test]
    fn quotes_are_those_of_rfc_4180() {
        let text = "\u{feff}name,note\r\n\r\n\"a, b\",\"he said \"\"no\"\"\r\nand left\" \r\nc, \"\" \nd,";
        let expected = [row(1, &["name", "note"]), row(3, &["a, b", "he said \"no\"\r\nand left"]), row(5, &["c", ""]), row(6, &["d", ""])];
        assert_eq!(rows(text, Format::Csv), expected);
        assert_eq!(rows("a\tb \"x\n\n c\t\n", Format::Tsv), [row(1, &["a", "b \"x"]), row(3, &["c", ""])]);
        assert!(rows("", Format::Csv).is_empty() && rows("\n \n", Format::Csv).is_empty());
    }

    #[test]
    fn a_broken_quote_names_its_row() {
        for (text, line) in [("a\nb,\"c\nd", 2), ("a\"b", 1), ("x\n\"a\"b,c", 2)] {
            assert_eq!(records(text, Format::Csv).unwrap_err().line, line, "{text}");
        }
    }
}
