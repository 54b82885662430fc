//! Segments: groups of whole sentences up to a bounded length.

use std::ops::Range;

use autoact_base::sentences::sentence_spans;

use crate::document::Document;

/// The usual bound of a segment, in characters: about a paragraph. `Retrieve` of the atlas's tool
/// library shows 1,200 bytes of a page, so a segment is seen whole.
pub const SEGMENT_CHARS: usize = 800;

/// A part of a section that can be found and cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Whole sentences, as they stand in the document's text.
    pub text: String,
    /// The file, relative to the imported directory.
    pub file: String,
    /// The page, from 1, if the format has pages.
    pub page: Option<u32>,
    /// The heading above it.
    pub heading: Option<String>,
    /// Its bytes in the document's text.
    pub span: Range<usize>,
}

impl Document {
    /// The document's segments, in order: as many whole sentences of one section as fit into
    /// `max_chars` characters (at least 1). A longer sentence is cut at words.
    pub fn segments(&self, max_chars: usize) -> Vec<Segment> {
        let mut segments = Vec::new();
        for section in &self.sections {
            for span in segment_spans(self.section_text(section), max_chars) {
                let span = section.span.start + span.start..section.span.start + span.end;
                segments.push(Segment {
                    text: self.text[span.clone()].to_owned(),
                    file: self.path.clone(),
                    page: section.page,
                    heading: section.heading.clone(),
                    span,
                });
            }
        }
        segments
    }
}

/// Where the segments of a text stand in it. They cover all of it but white space.
fn segment_spans(text: &str, max_chars: usize) -> Vec<Range<usize>> {
    let max_chars = max_chars.max(1);
    let mut spans: Vec<Range<usize>> = Vec::new();
    // characters of the last span, while it may grow
    let mut open: Option<usize> = None;
    for sentence in sentence_spans(text) {
        let chars = text[sentence.clone()].chars().count();
        if chars > max_chars {
            cut_at_words(text, sentence, max_chars, &mut spans);
            open = None;
            continue;
        }
        if let (Some(length), Some(last)) = (open, spans.last_mut()) {
            let grown = length + text[last.end..sentence.start].chars().count() + chars;
            if grown <= max_chars {
                last.end = sentence.end;
                open = Some(grown);
                continue;
            }
        }
        spans.push(sentence);
        open = Some(chars);
    }
    spans
}

/// Cuts a sentence into pieces of at most `max_chars`: after a blank, else after a mark between
/// clauses, else before a character that stands alone, else anywhere.
fn cut_at_words(text: &str, sentence: Range<usize>, max_chars: usize, spans: &mut Vec<Range<usize>>) {
    let mut start = sentence.start;
    while start < sentence.end {
        let rest = &text[start..sentence.end];
        let Some((limit, next)) = rest.char_indices().nth(max_chars) else {
            spans.push(start..sentence.end);
            return;
        };
        let piece = &rest[..limit];
        let cut = if next.is_whitespace() {
            limit
        } else {
            let after = |found: Option<(usize, &str)>| found.map(|(at, mark)| at + mark.len());
            after(piece.rmatch_indices(char::is_whitespace).next())
                .or_else(|| after(piece.rmatch_indices(is_clause_mark).next()))
                .or_else(|| rest[..limit + next.len_utf8()].char_indices().rev().map(|(at, _)| at).find(|at| stands_alone(rest, *at)))
                .filter(|cut| *cut > 0)
                .unwrap_or(limit)
        };
        let length = rest[..cut].trim_end().len();
        spans.push(start..start + length);
        start += cut;
        start += text[start..sentence.end].len() - text[start..sentence.end].trim_start().len();
    }
}

/// A mark between clauses in scripts without blanks.
fn is_clause_mark(c: char) -> bool {
    matches!(c, '，' | '、' | '；' | '：' | '。' | '！' | '？' | '،' | '」' | '』' | '）')
}

/// Whether a piece may begin at a byte: what stands there does not join the character before it.
fn stands_alone(text: &str, at: usize) -> bool {
    let joins =
        |c: char| matches!(c, '\u{300}'..='\u{36f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    let before_joins = text[..at].chars().next_back().is_some_and(|c| c == '\u{200d}');
    !before_joins && !text[at..].chars().next().is_some_and(joins)
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
