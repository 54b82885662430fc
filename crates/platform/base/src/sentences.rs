//! Where a sentence ends.

use std::ops::Range;

use crate::lines::one_line;

/// Words that end in a full stop without ending a sentence.
const ABBREVIATIONS: [&str; 46] = [
    "st", "ste", "mt", "mts", "ft", "mr", "mrs", "ms", "dr", "prof", "gen", "lt", "col", "maj", "sgt", "capt", "cmdr", "adm", "rev", "hon",
    "gov", "sen", "rep", "pres", "jr", "sr", "inc", "ltd", "co", "corp", "bros", "vs", "etc", "vol", "fig", "ca", "approx", "e.g", "i.e",
    "cf", "al", "ed", "eds", "dept", "univ", "op",
];

/// Words that begin a new sentence even after an abbreviation or an initial:
/// `It belongs to Apple Inc. The company …`.
const STARTERS: [&str; 40] = [
    "It", "Its", "The", "A", "An", "He", "She", "They", "His", "Her", "Their", "This", "These", "That", "Those", "In", "On", "At", "As",
    "By", "For", "From", "After", "Before", "Since", "When", "While", "With", "Today", "There", "One", "Some", "Most", "Many", "Both",
    "Each", "All", "Until", "During", "However",
];

/// The sentences of a text, in order, without the blanks around them. A line break ends a sentence.
pub fn sentences(text: &str) -> Vec<&str> {
    sentence_spans(text).into_iter().map(|span| &text[span]).collect()
}

/// Where the sentences of a text stand in it, in bytes: see [`sentences`].
pub fn sentence_spans(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        split_line(line, start, &mut found);
        start += line.len();
    }
    found
}

/// A text on one line, as somebody reads it aloud: where a line of its own ends without a mark, as in
/// `Length: 191 metres`, stands a full stop. A line that goes on in small letters is a wrapped one.
pub fn running_text(text: &str) -> String {
    let mut running = String::with_capacity(text.len());
    for line in text.lines().map(one_line).filter(|line| !line.is_empty()) {
        if !running.is_empty() {
            close(&mut running, &line);
            running.push(' ');
        }
        running.push_str(&line);
    }
    close(&mut running, "");
    running
}

/// Ends a line that another follows with a full stop, if it ends a sentence without one.
fn close(line: &mut String, following: &str) {
    let open = line.chars().next_back().is_some_and(|last| last.is_alphanumeric() || matches!(last, ')' | ']' | '%'));
    if open && !following.starts_with(char::is_lowercase) {
        line.push('.');
    }
}

/// The sentences of a line that begins at the byte `offset` of its text.
fn split_line(line: &str, offset: usize, found: &mut Vec<Range<usize>>) {
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_terminator(c) {
            continue;
        }
        // `?!`, `."` and `.)` end together
        let mut end = at + c.len_utf8();
        while let Some((next, closer)) = chars.next_if(|(_, next)| is_terminator(*next) || is_closer(*next)) {
            end = next + closer.len_utf8();
        }
        let rest = &line[end..];
        let following = rest.trim_start();
        let stands_apart = rest.len() != following.len() || is_wide_terminator(c);
        if following.is_empty() || !stands_apart {
            continue; // the end of the line, or `3.14`
        }
        if ends(&line[start..at], c, following) {
            push(line, start..end, offset, found);
            start = end;
        }
    }
    push(line, start..line.len(), offset, found);
}

/// Adds a part of a line without the blanks around it, unless there is nothing else.
fn push(line: &str, part: Range<usize>, offset: usize, found: &mut Vec<Range<usize>>) {
    let sentence = &line[part.clone()];
    let start = offset + part.start + (sentence.len() - sentence.trim_start().len());
    let length = sentence.trim().len();
    if length > 0 {
        found.push(start..start + length);
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '؟' | '۔' | '।' | '॥' | '។') || is_wide_terminator(c)
}

/// Ends a sentence of a script that puts no blank after it.
fn is_wide_terminator(c: char) -> bool {
    matches!(c, '。' | '｡' | '！' | '？')
}

fn is_closer(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』' | '）')
}

/// Whether the terminator after `before` ends a sentence that `following` comes after.
fn ends(before: &str, terminator: char, following: &str) -> bool {
    if following.chars().next().is_some_and(char::is_lowercase) {
        return false;
    }
    if terminator != '.' {
        return true;
    }
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let digit_follows = following.starts_with(|c: char| c.is_ascii_digit());
    if matches!(word, "No" | "Nos" | "no" | "c" | "p" | "pp") && digit_follows {
        return false;
    }
    let lower = word.to_lowercase();
    if is_initials(word) || ABBREVIATIONS.contains(&lower.as_str()) {
        let first = following.split(char::is_whitespace).next().unwrap_or_default();
        return STARTERS.contains(&first.trim_end_matches(','));
    }
    true
}

/// `J`, `J.R.R`, `U.S`
fn is_initials(word: &str) -> bool {
    !word.is_empty() && word.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(sentences(text), expected);
    }

    #[test]
    fn plain_sentences() {
        check("It is a river. It is long! Is it? Yes.", &["It is a river.", "It is long!", "Is it?", "Yes."]);
        check("  One line \n another\n\n", &["One line", "another"]);
        check("", &[]);
        check("no end", &["no end"]);
    }

    #[test]
    fn abbreviations_and_initials() {
        check("St. Louis is a city. It lies in Missouri.", &["St. Louis is a city.", "It lies in Missouri."]);
        check("J. R. R. Tolkien wrote it. He was J.R.R. Tolkien.", &["J. R. R. Tolkien wrote it.", "He was J.R.R. Tolkien."]);
        check("Carbon has the symbol C. Its number is 6.", &["Carbon has the symbol C.", "Its number is 6."]);
        check("Mt. Fuji is by Dr. No. 5 of it.", &["Mt. Fuji is by Dr. No. 5 of it."]);
        check("It is made by Apple Inc. The firm is old.", &["It is made by Apple Inc.", "The firm is old."]);
        check("He lived in the U.S. In 1950 he left.", &["He lived in the U.S.", "In 1950 he left."]);
        check("It was founded c. 1500. Later it grew.", &["It was founded c. 1500.", "Later it grew."]);
        check("It rained, e.g. Monday. Or not.", &["It rained, e.g. Monday.", "Or not."]);
    }

    #[test]
    fn decimals_quotes_and_brackets() {
        check("It is 3.14 km. 5 are not.", &["It is 3.14 km.", "5 are not."]);
        check("He said \"no.\" Then he left (late.) Done.", &["He said \"no.\"", "Then he left (late.)", "Done."]);
        check("What?! Really… Yes.", &["What?!", "Really…", "Yes."]);
        check("Élan is a word. Über is too.", &["Élan is a word.", "Über is too."]);
    }

    #[test]
    fn scripts_without_blanks() {
        check("東京は首都です。人口は多い。", &["東京は首都です。", "人口は多い。"]);
        check("「本当？」と彼は言った！そうだ。", &["「本当？」", "と彼は言った！", "そうだ。"]);
        check("यह एक नदी है। वह लंबी है।", &["यह एक नदी है।", "वह लंबी है।"]);
    }

    #[test]
    fn spans_name_the_bytes_of_their_sentences() {
        assert_eq!(sentence_spans(" Élan.  Two.\r\n\nthree"), [1..7, 9..13, 16..21]);
    }

    #[test]
    fn lines_without_a_mark_get_one_where_they_are_read_as_one() {
        assert_eq!(running_text("Built: 1843\n Floors: 2 (low)\n\nWalls: flint.\n"), "Built: 1843. Floors: 2 (low). Walls: flint.");
        assert_eq!(running_text("A river in the\nnorth of France, and\nof Alsace"), "A river in the north of France, and of Alsace.");
        assert_eq!(running_text("Is it?\nhttps://example.org/\n東京は首都です。"), "Is it? https://example.org/ 東京は首都です。");
        assert_eq!(running_text(" \n"), "");
    }

    proptest! {
        #[test]
        fn a_text_of_sentences_stays_as_it_is(text in "([A-Z][a-z]{0,5}( [a-z]{1,5}){0,3}[.!?] ?){0,5}") {
            prop_assert_eq!(running_text(&text), one_line(&text));
        }

        #[test]
        fn nothing_is_lost(text in "[A-Za-z .!?\"()\\n0-9éß…]{0,120}") {
            let strip = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(strip(&sentences(&text).concat()), strip(&text));
        }

        #[test]
        fn any_text_is_split_without_panic(text in any::<String>()) {
            sentences(&text);
        }
    }
}
