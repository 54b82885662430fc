//! The agents' words while they are written: which of them are current, and how they stand on a
//! terminal. It decides what to write; [`crate::out`] writes it.

use std::collections::HashSet;

use autoact_wire::v1;

use crate::text::{cut, plain};

/// The words of the call that runs now.
#[derive(Debug, Default)]
pub(crate) struct Words {
    call: String,
    /// Epoch and attempt. A higher one begins anew, and withdraws what the one before wrote.
    attempt: (u64, u32),
    text: String,
    /// Bytes of this attempt's text so far, those that were lost included.
    end: u32,
    /// Calls whose event has come. Words and events travel apart, so words can be late.
    ended: HashSet<String>,
}

impl Words {
    /// Takes in a piece. `false` if nothing changes: it is late, a repetition, or of an attempt
    /// that another one has replaced.
    pub(crate) fn add(&mut self, delta: &v1::TaskDelta) -> bool {
        let attempt = (delta.epoch, delta.attempt);
        let same_call = self.call == delta.call_id;
        let stale = if same_call { attempt < self.attempt } else { delta.epoch < self.attempt.0 };
        if stale || self.ended.contains(&delta.call_id) {
            return false;
        }
        if !same_call || attempt > self.attempt {
            self.call.clone_from(&delta.call_id);
            self.attempt = attempt;
            self.text.clear();
            self.end = 0;
        } else if delta.offset < self.end {
            return false;
        }
        if delta.offset > self.end {
            self.text.push('…');
        }
        self.text.push_str(&delta.text);
        self.end = delta.offset.saturating_add(u32::try_from(delta.text.len()).unwrap_or(u32::MAX));
        true
    }

    /// The event of this call has come; it has the whole reply.
    pub(crate) fn end(&mut self, call_id: &str) {
        if !call_id.is_empty() {
            self.ended.insert(call_id.to_owned());
        }
    }

    /// The call that writes, such as `plan-3-0`.
    pub(crate) fn call(&self) -> &str {
        &self.call
    }

    /// What it has written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The rows of `text` behind `label` on a terminal with so many columns. The label may have
/// colours.
pub(crate) fn rows(label: &str, text: &str, columns: usize) -> Vec<String> {
    // The last column stays free: terminals differ in where the cursor is after a character there.
    let width = columns.saturating_sub(1).max(2);
    let mut row = cut(label, width);
    let mut used = console::measure_text_width(&row);
    let mut rows = Vec::new();
    let text = plain(text.trim());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let taken = columns_of(c, chars.peek().copied());
        if c == '\n' || used + taken > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        if c != '\n' {
            row.push(if c == '\t' { ' ' } else { c });
            used += taken;
        }
    }
    rows.push(row);
    rows
}

/// Columns of a character, rather too many than too few: what is drawn must be erasable.
fn columns_of(c: char, next: Option<char>) -> usize {
    match c {
        '\n' => 0,
        '\t' => 1,
        // before a selector of the emoji form a character takes two columns
        _ if next == Some('\u{fe0f}') => 2,
        _ => console::measure_text_width(c.encode_utf8(&mut [0; 4])),
    }
}

/// Rows above which nothing is changed: drawn at the cursor, redrawn in place, taken away. The
/// cursor stands behind the last one.
#[derive(Debug, Default)]
pub(crate) struct Block {
    drawn: Vec<String>,
}

impl Block {
    /// What a terminal with so many lines is to be sent so that these rows stand there. Of more
    /// rows than it has lines, the last ones do.
    pub(crate) fn draw(&mut self, mut rows: Vec<String>, lines: usize) -> String {
        // a row that has left the screen at the top cannot be erased
        rows.drain(..rows.len().saturating_sub(lines.saturating_sub(1).max(1)));
        let longer = self.drawn.split_last().and_then(|(last, above)| {
            let goes_on = rows.len() > above.len() && rows.starts_with(above);
            goes_on.then(|| rows[above.len()].strip_prefix(last.as_str())).flatten()
        });
        let text = match longer {
            Some(more) => [&[more.to_owned()], &rows[self.drawn.len()..]].concat().join("\n"),
            None => self.erase() + &rows.join("\n"),
        };
        self.drawn = rows;
        text
    }

    /// What takes the rows away.
    pub(crate) fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn).len() {
            0 => String::new(),
            1 => "\r\u{1b}[J".to_owned(),
            rows => format!("\r\u{1b}[{}A\u{1b}[J", rows - 1),
        }
    }
}

#[cfg(test)]
#[path = "../tests/screen/mod.rs"]
mod screen;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::screen::Screen;
    use super::*;

    fn delta(call: &str, epoch: u64, attempt: u32, offset: u32, text: &str) -> v1::TaskDelta {
        v1::TaskDelta { call_id: call.into(), epoch, attempt, offset, text: text.into() }
    }

    #[test]
    fn pieces_join_and_a_lost_one_shows() {
        let mut words = Words::default();
        assert!(words.add(&delta("plan-1-0", 1, 1, 0, " I need")));
        assert!(words.add(&delta("plan-1-0", 1, 1, 7, " the")));
        assert!(!words.add(&delta("plan-1-0", 1, 1, 7, " the")), "a repetition");
        assert!(words.add(&delta("plan-1-0", 1, 1, 19, " Loire")));
        assert_eq!((words.call(), words.text()), ("plan-1-0", " I need the… Loire"));
    }

    #[test]
    fn a_repeated_call_withdraws_the_earlier_words() {
        let mut words = Words::default();
        words.add(&delta("plan-1-0", 1, 1, 0, "first"));
        assert!(words.add(&delta("plan-1-0", 1, 2, 0, "second")));
        assert!(!words.add(&delta("plan-1-0", 1, 1, 5, " late")));
        assert_eq!(words.text(), "second");
        // another holder of the lease begins its attempts at 1 again
        assert!(words.add(&delta("plan-1-0", 2, 1, 0, "third")));
        assert!(!words.add(&delta("tool-1-0", 1, 1, 0, "of a holder that has lost the lease")));
        assert_eq!(words.text(), "third");
    }

    #[test]
    fn words_behind_their_event_are_late() {
        let mut words = Words::default();
        words.add(&delta("plan-1-0", 1, 1, 0, "a thought"));
        words.end("plan-1-0");
        assert!(!words.add(&delta("plan-1-0", 1, 1, 9, " more")));
        assert!(words.add(&delta("tool-1-0", 1, 1, 0, "Loire")));
        assert!(!words.add(&delta("plan-1-0", 1, 2, 0, "late")));
        assert_eq!((words.call(), words.text()), ("tool-1-0", "Loire"));
    }

    #[test]
    fn rows_are_cut_where_the_terminal_would() {
        assert_eq!(rows("a ", " long line\nand two", 7), ["a long", " line", "and tw", "o"]);
        // a wide character takes two columns, and none is cut in half
        assert_eq!(rows("", "日本語の", 6), ["日本", "語の"]);
        assert_eq!(rows("", "❤\u{fe0f}❤\u{fe0f}❤\u{fe0f}", 6), ["❤\u{fe0f}❤\u{fe0f}", "❤\u{fe0f}"]);
        assert_eq!(rows("", "a\u{1b}[2Jb\tc\r", 80), ["a\u{fffd}[2Jb c"]);
        assert_eq!(rows("\u{1b}[36mthought 1\u{1b}[0m ", "", 80), ["\u{1b}[36mthought 1\u{1b}[0m "]);
    }

    #[test]
    fn a_row_that_goes_on_is_not_drawn_again() {
        let mut block = Block::default();
        assert_eq!(block.draw(vec!["one".into()], 24), "one");
        assert_eq!(block.draw(vec!["one two".into(), "three".into()], 24), " two\nthree");
        assert_eq!(block.draw(vec!["other".into()], 24), "\r\u{1b}[1A\u{1b}[Jother");
        assert_eq!(block.erase(), "\r\u{1b}[J");
        assert_eq!(block.erase(), "");
    }

    proptest! {
        /// Whatever was drawn, the rows stand there, and nothing is left of them once they are
        /// erased.
        #[test]
        fn what_is_drawn_is_erased(
            texts in prop::collection::vec("[a-c日語 \n]{0,60}", 1..12),
            whole in any::<bool>(),
            lines in 2_usize..8,
            columns in 4_usize..30,
        ) {
            let mut screen = Screen::new(lines, columns);
            screen.write("up\n");
            let (mut block, mut text) = (Block::default(), String::new());
            for piece in texts {
                if whole {
                    text.clear();
                }
                text.push_str(&piece);
                let rows = rows("> ", &text, columns);
                screen.write(&block.draw(rows.clone(), lines));
                let shown = rows.len().min(lines - 1);
                prop_assert_eq!(&screen.rows()[1..], &rows[rows.len() - shown..]);
            }
            screen.write(&block.erase());
            prop_assert_eq!(screen.rows(), ["up", ""]);
        }
    }
}
