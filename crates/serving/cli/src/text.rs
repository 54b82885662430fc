//! Text that others wrote, made fit for a terminal.

/// One line of at most `columns` columns; the rest becomes `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// Text that others wrote, for a terminal: line ends stay, other control characters become `�`, so
/// that a page cannot move the cursor or change the window's title.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(harmless).collect()
}

/// The same on one line.
pub(crate) fn plain_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    plain(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(plain("a\u{1b}]0;title\u{7}b\tc\nd"), "a\u{fffd}]0;title\u{fffd}b\tc\nd");
        assert_eq!(plain("Emajõgi 日本 🦀"), "Emajõgi 日本 🦀");
        assert_eq!(plain_line("  two\n\tlines \u{9b}2J "), "two lines \u{fffd}2J");
    }

    #[test]
    fn lines_are_cut_by_columns() {
        assert_eq!(cut("a long line", 6), "a lon…");
        assert_eq!(cut("short", 6), "short");
        // a wide character takes two columns
        assert_eq!(cut("日本語の長い文", 7), "日本語…");
        assert_eq!(cut("any", 1), "…");
    }
}
