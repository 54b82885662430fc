//! Text that others wrote, on one line or on several, without control characters.

/// One line of text: line breaks, control characters and runs of blanks become single spaces, the
/// ends are trimmed.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Lines of text, so that tables and code keep their form: every kind of line break becomes `\n`,
/// other control characters but tabs become spaces, blanks at the end of a line are dropped. Blank
/// lines are dropped at both ends, and at most one of them stays in a row.
pub fn several_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut blank = false;
    for line in text.replace("\r\n", "\n").split(is_line_break) {
        let line = line.trim_end_matches(|c: char| c.is_whitespace() || c.is_control());
        if line.is_empty() {
            blank = true;
            continue;
        }
        if !lines.is_empty() {
            lines.push_str(if blank { "\n\n" } else { "\n" });
        }
        blank = false;
        lines.extend(line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }));
    }
    lines
}

/// The line breaks of Unicode, and what terminals take for one.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_keep_their_form() {
        assert_eq!(several_lines("  a\tb  \n\n\n c\u{7}d\u{2028}e\u{85}f\n\n"), "  a\tb\n\n c d\ne\nf");
        assert_eq!(several_lines(" \n\t\n"), "");
        assert_eq!(one_line("  a\tb  \r\n c "), "a b c");
    }

    #[test]
    fn a_carriage_return_and_a_line_feed_are_one_line_break() {
        assert_eq!(several_lines("a\r\nb\rc"), "a\nb\nc");
    }

    proptest! {
        #[test]
        fn both_forms_are_stable(text in "(\\PC|[\r\n\t \u{b}\u{85}\u{2028}]){0,40}") {
            for form in [one_line, several_lines] {
                let once = form(&text);
                prop_assert_eq!(&form(&once), &once);
                prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            }
            prop_assert!(!one_line(&text).contains('\n'));
        }
    }
}
