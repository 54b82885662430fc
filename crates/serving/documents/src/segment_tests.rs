//! Tests of segments.
#![allow(clippy::unwrap_used)] // tests

use proptest::prelude::*;

use super::*;

fn pieces(text: &str, max_chars: usize) -> Vec<&str> {
    segment_spans(text, max_chars).into_iter().map(|span| &text[span]).collect()
}

#[test]
fn whole_sentences_fill_a_segment() {
    let text = "Dr. Roe has 3.5 km, e.g. today. \"It is far!\" he said… Yes.\n\nNo more.";
    assert_eq!(pieces(text, 800), [text]);
    assert_eq!(pieces(text, 45), ["Dr. Roe has 3.5 km, e.g. today.", "\"It is far!\" he said… Yes.\n\nNo more."]);
}

#[test]
fn a_long_sentence_is_cut_at_words() {
    assert_eq!(pieces("one two three four. Five.", 9), ["one two", "three", "four.", "Five."]);
    assert_eq!(pieces("one two", 3), ["one", "two"]);
    assert_eq!(pieces("abcdefgh", 3), ["abc", "def", "gh"]);
}

#[test]
fn scripts_without_blanks_are_cut_at_marks_and_never_inside_a_character() {
    assert_eq!(pieces("東京は首都で、人口は多い", 8), ["東京は首都で、", "人口は多い"]);
    assert_eq!(pieces("東京は首都です。人口は多い。", 9), ["東京は首都です。", "人口は多い。"]);
    assert_eq!(pieces("ae\u{301}ae\u{301}", 2), ["a", "e\u{301}", "a", "e\u{301}"]);
}

proptest! {
    /// Also for text that was never made by a parser.
    #[test]
    fn segments_cover_all_text_in_order(
        text in prop_oneof![any::<String>(), "([A-Za-z0-9]{1,9}|[ .!?\n\"…,、。東京é\u{301}\u{200d}]){0,120}"],
        max_chars in 0_usize..40,
    ) {
        let spans = segment_spans(&text, max_chars);
        let mut end = 0;
        for span in &spans {
            prop_assert!(span.start >= end && span.end > span.start);
            prop_assert!(text[end..span.start].trim().is_empty());
            let piece = &text[span.clone()];
            prop_assert!(piece.chars().count() <= max_chars.max(1));
            prop_assert_eq!(piece.trim(), piece);
            end = span.end;
        }
        prop_assert!(text[end..].trim().is_empty());
    }
}
