//! From lines to paragraphs and headings.

use std::collections::HashMap;

use super::layout::Line;
use crate::document::Builder;
use crate::error::ReadError;

/// A heading's type is so much larger than that of the text.
const HEADING_SIZE: f32 = 1.12;

/// A longer line in bold type is a paragraph.
const MAX_BOLD_HEADING_CHARS: usize = 90;

/// A distance between lines that is so much larger than the usual one ends a paragraph.
const PARAGRAPH_GAP: f32 = 1.35;

/// A first line is indented by at least this part of the font's size.
const INDENT: f32 = 0.8;

/// A line that fills less of its column is the last one of its paragraph.
const FULL_LINE: f32 = 0.7;

/// A line at the edge of so many pages, and of a third of them, is a running title or a page number.
const MIN_RUNNING_PAGES: usize = 3;

/// How many lines at either edge of a page may be such.
const EDGE_LINES: usize = 2;

/// Adds the pages' text.
pub(super) fn build(mut pages: Vec<Vec<Line>>, builder: &mut Builder) -> Result<(), ReadError> {
    drop_running_lines(&mut pages);
    let usual = Usual::of(&pages);
    if let Some(title) = pages.first().and_then(|page| usual.title(page)) {
        builder.title(&title);
    }
    for (number, page) in (1..).zip(&pages) {
        builder.page(number);
        let mut block: Vec<&Line> = Vec::new();
        for line in page {
            if block.last().is_some_and(|before| usual.ends_block(before, line, block.len())) {
                usual.add(&block, builder)?;
                block.clear();
            }
            block.push(line);
        }
        usual.add(&block, builder)?;
    }
    Ok(())
}

/// Drops running titles and page numbers: lines at the edges of pages that are the same on many
/// pages, up to their figures.
fn drop_running_lines(pages: &mut [Vec<Line>]) {
    // up to its figures, and where it stands: a page number is a number at the same height
    let key = |line: &Line| {
        let text: String = line.text.trim().chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
        (text.replace("##", "#").replace("##", "#"), line.baseline.round() as i64)
    };
    let is_edge = |at: usize, length: usize| at < EDGE_LINES || at + EDGE_LINES >= length;
    let mut counts: HashMap<(String, i64), usize> = HashMap::new();
    for page in pages.iter() {
        for (_, line) in page.iter().enumerate().filter(|(at, _)| is_edge(*at, page.len())) {
            *counts.entry(key(line)).or_default() += 1;
        }
    }
    let least = MIN_RUNNING_PAGES.max(pages.len() / 3);
    for page in pages.iter_mut() {
        let length = page.len();
        let mut at = 0;
        page.retain(|line| {
            at += 1;
            !is_edge(at - 1, length) || counts.get(&key(line)).is_none_or(|count| *count < least)
        });
    }
}

/// What is usual in a document.
struct Usual {
    /// The size of most of the text.
    size: f32,
    /// The distance between lines, in sizes of the font.
    leading: f32,
    /// Most of the text is bold, so bold type says nothing.
    bold: bool,
}

impl Usual {
    fn of(pages: &[Vec<Line>]) -> Usual {
        // sizes in halves of a point, by the characters that have them
        let mut sizes: HashMap<i64, usize> = HashMap::new();
        let (mut bold, mut all) = (0, 0);
        let mut leadings = Vec::new();
        for page in pages {
            for line in page {
                *sizes.entry((line.size * 2.0).round() as i64).or_default() += line.text.len();
                all += line.text.len();
                bold += if line.bold { line.text.len() } else { 0 };
            }
            let pairs = page.windows(2).filter(|pair| pair[0].column == pair[1].column);
            leadings.extend(pairs.map(|pair| (pair[0].baseline - pair[1].baseline) / pair[1].size).filter(|leading| *leading > 0.0));
        }
        // below the middle: distances between paragraphs are in it as well
        leadings.sort_by(f32::total_cmp);
        let size =
            sizes.into_iter().max_by_key(|(size, bytes)| (*bytes, std::cmp::Reverse(*size))).map_or(1.0, |(size, _)| size as f32 / 2.0);
        Usual { size, leading: leadings.get(leadings.len() / 3).copied().unwrap_or(PARAGRAPH_GAP), bold: bold * 2 > all }
    }

    /// The lines of the largest type on the first page, if it is larger than the text.
    fn title(&self, page: &[Line]) -> Option<String> {
        let largest = page.iter().map(|line| line.size).fold(0.0, f32::max);
        let is_title = |line: &&Line| line.size >= largest - 0.1;
        let title: Vec<&str> = page.iter().skip_while(|line| !is_title(line)).take_while(is_title).map(|line| line.text.trim()).collect();
        (largest > self.size * HEADING_SIZE).then(|| title.join(" "))
    }

    fn is_large(&self, line: &Line) -> bool {
        line.size >= self.size * HEADING_SIZE
    }

    fn is_heading(&self, block: &[&Line]) -> bool {
        let is_bold = |line: &Line| line.bold && !self.bold;
        let chars: usize = block.iter().map(|line| line.text.chars().count()).sum();
        let like_sentence = block.last().is_some_and(|line| line.text.trim_end().ends_with(['.', ',', ';']));
        let has_word = block.iter().any(|line| line.text.chars().any(char::is_alphabetic));
        has_word
            && (block.iter().all(|line| self.is_large(line))
                || (block.iter().all(|line| is_bold(line)) && chars <= MAX_BOLD_HEADING_CHARS && !like_sentence))
    }

    /// Whether a paragraph ends between two lines; `length` is its lines so far.
    fn ends_block(&self, before: &Line, line: &Line, length: usize) -> bool {
        if before.cells || line.cells {
            return true;
        }
        if (before.size - line.size).abs() > before.size * (HEADING_SIZE - 1.0) || before.bold != line.bold {
            return true;
        }
        let width = (before.column.1 - before.column.0).max(1.0);
        let is_short = before.right - before.column.0 < width * FULL_LINE;
        if before.column != line.column {
            return is_short || ends_sentence(&before.text);
        }
        let distance = before.baseline - line.baseline;
        let is_far = distance < 0.0 || distance > self.leading * line.size * PARAGRAPH_GAP;
        // a hanging indent stands from the second line on, and a first line stands out
        let is_indented = line.left - before.left > INDENT * line.size && length > 1;
        let stands_out = before.left - line.left > INDENT * line.size && length > 1;
        let is_large = self.is_large(before) && self.is_large(line);
        is_far
            || (!is_large && (is_indented || stands_out || is_short || is_item(&line.text)))
            || (ends_sentence(&before.text) && line.left - before.left > INDENT * line.size)
    }

    fn add(&self, block: &[&Line], builder: &mut Builder) -> Result<(), ReadError> {
        let mut text = String::new();
        for line in block {
            append(&mut text, line.text.trim());
        }
        if self.is_heading(block) { builder.heading(&text) } else { builder.paragraph(&text) }
    }
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end().trim_end_matches(['"', '”', '’', '»', ')', ']']).ends_with(['.', '!', '?', '…', ':', '。'])
}

/// `• item`, `- item`
fn is_item(text: &str) -> bool {
    text.trim_start().starts_with(['•', '◦', '▪', '–', '-', '*']) && text.contains(' ')
}

/// Adds a line to a paragraph. A hyphen before a small letter was made by the line break.
fn append(text: &mut String, line: &str) {
    let mut end = text.chars().rev();
    let (last, before) = (end.next(), end.next());
    let first = line.chars().next();
    let is_broken = matches!(last, Some('-' | '\u{2010}' | '\u{ad}')) && before.is_some_and(char::is_alphabetic);
    if is_broken && first.is_some_and(char::is_lowercase) {
        text.pop();
    } else if last.is_some() && !(last.is_some_and(is_wide) && first.is_some_and(is_wide)) {
        text.push(' ');
    }
    text.push_str(line);
}

/// A character of a script without blanks.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}')
}
