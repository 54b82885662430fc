//! Plain text: paragraphs stand between blank lines, and lines that were broken at a margin are one
//! line again.

use crate::document::{Builder, Extracted};
use crate::error::ReadError;
use crate::limits::Limits;

/// A shorter line was not broken at a margin: a verse, an address, a table.
const MIN_WRAPPED_CHARS: usize = 45;

/// A longer first line is no title.
const MAX_TITLE_CHARS: usize = 80;

pub(crate) fn read(text: &str, limits: &Limits) -> Result<Extracted, ReadError> {
    let mut builder = Builder::new(limits.text_bytes);
    let mut block: Vec<&str> = Vec::new();
    // the first block, if it may be the title of what follows
    let mut title = None;
    let mut first = true;
    for line in text.lines().map(str::trim_end).chain([""]) {
        if !line.is_empty() {
            block.push(line);
            continue;
        }
        if block.is_empty() {
            continue;
        }
        if std::mem::take(&mut first) {
            title = title_of(&block);
        } else if let Some(title) = title.take() {
            builder.title(title);
        }
        builder.lines(&unwrapped(&block))?;
        block.clear();
    }
    Ok(builder.finish())
}

/// A short line that stands alone at the beginning and does not end like a sentence.
fn title_of<'a>(block: &[&'a str]) -> Option<&'a str> {
    match block {
        [line] if line.chars().count() <= MAX_TITLE_CHARS && !line.ends_with(['.', ',', ';', ':', '!', '?', '。']) => {
            Some(line.trim_start_matches('\u{feff}'))
        }
        _ => None,
    }
}

/// The block with the line breaks that mean something.
fn unwrapped(block: &[&str]) -> String {
    let mut text = String::new();
    let mut before = "";
    for &line in block {
        if !text.is_empty() {
            text.push(if continues(before, line) { ' ' } else { '\n' });
        }
        text.push_str(line.trim_start());
        before = line;
    }
    text
}

/// Whether a line goes on with the paragraph of the line before.
fn continues(before: &str, line: &str) -> bool {
    before.chars().count() >= MIN_WRAPPED_CHARS && !is_item(line.trim_start())
}

/// `- item`, `• item`, `12. item`, `a) item`
fn is_item(line: &str) -> bool {
    let Some((mark, _)) = line.split_once(char::is_whitespace) else {
        return false;
    };
    let number = mark.trim_end_matches(['.', ')']);
    let is_label = number.len() == 1 || (number.len() <= 3 && number.chars().all(|c| c.is_ascii_digit()));
    let is_number = number.len() < mark.len() && is_label && number.chars().all(|c| c.is_ascii_alphanumeric());
    matches!(mark, "-" | "*" | "+" | "•" | "–" | "—") || is_number
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrapped_lines_are_joined_and_others_stay() {
        let text = "The Loire\r\n\r\nThe Loire is a river that rises in the south of the\nMassif Central and flows west.\n\nRoses are red,\nviolets are blue.\n\nA list of things that begins with a rather long line:\n- one\n- two\n";
        let found = read(text, &Limits::default()).unwrap();
        assert_eq!(found.title.as_deref(), Some("The Loire"));
        assert_eq!(
            found.text,
            "The Loire\n\nThe Loire is a river that rises in the south of the Massif Central and flows west.\n\nRoses are red,\nviolets are blue.\n\nA list of things that begins with a rather long line:\n- one\n- two"
        );
        assert_eq!(found.sections.len(), 1);
    }

    #[test]
    fn a_text_that_is_too_long_is_named() {
        let limits = Limits { text_bytes: 10, ..Limits::default() };
        assert!(matches!(read("more than ten bytes", &limits), Err(ReadError::TooMuchText { limit: 10 })));
    }

    proptest! {
        #[test]
        fn no_word_is_lost(text in "[a-zé.,!\n\t -]{0,200}") {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&read(&text, &Limits::default()).unwrap().text), words(&text));
        }

        #[test]
        fn any_text_is_read_without_panic(text in any::<String>()) {
            read(&text, &Limits::default()).unwrap();
        }
    }
}
