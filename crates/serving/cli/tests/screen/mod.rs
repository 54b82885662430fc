//! What a terminal shows of what it is sent: only what `autoact` sends.

/// Lines that have scrolled away are kept: what was printed stays.
pub(crate) struct Screen {
    rows: Vec<String>,
    /// The row that the cursor is in. It stands at that row's end, or at its start after `\r`.
    at: usize,
    lines: usize,
    columns: usize,
}

impl Screen {
    pub(crate) fn new(lines: usize, columns: usize) -> Screen {
        Screen { rows: vec![String::new()], at: 0, lines, columns }
    }

    pub(crate) fn rows(&self) -> &[String] {
        &self.rows
    }

    /// # Panics
    /// A row reaches the last column, where terminals differ in what comes next, or a code is none
    /// that `autoact` sends.
    pub(crate) fn write(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                // what comes next moves up, erases or begins a row
                '\r' => {}
                '\n' => {
                    self.at += 1;
                    self.rows.truncate(self.at);
                    self.rows.push(String::new());
                }
                '\u{1b}' => {
                    let (code, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic()).unwrap() + 1);
                    rest = after;
                    self.code(code);
                }
                c => self.rows[self.at].push(c),
            }
            assert!(console::measure_text_width(&self.rows[self.at]) < self.columns, "{:?}", self.rows[self.at]);
        }
    }

    fn code(&mut self, code: &str) {
        if let Some(up) = code.strip_prefix('[').and_then(|code| code.strip_suffix('A')) {
            // the cursor stops at the screen's first line
            let first = self.rows.len().saturating_sub(self.lines);
            self.at = self.at.saturating_sub(up.parse().unwrap()).max(first);
        } else if code == "[J" {
            self.rows.truncate(self.at);
            self.rows.push(String::new());
        } else {
            assert!(code.ends_with('m'), "{code}");
        }
    }
}
