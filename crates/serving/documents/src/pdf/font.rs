//! Fonts: what a string of codes says, and how wide it is.

use std::collections::{BTreeMap, HashMap};

use lopdf::{DecompressError, Dictionary, Document, Encoding, Error, Object};

use super::{failure, number};
use crate::error::ReadError;
use crate::limits::Limits;

/// Widths are in thousandths of the font's size.
const UNITS: f32 = 1000.0;

/// The standard's width of a CID without one.
const DEFAULT_CID_WIDTH: f32 = 1000.0;

/// What is shown for one code.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) text: String,
    /// In parts of the font's size.
    pub(super) width: f32,
    /// A single byte 32, which word spacing widens.
    pub(super) is_space: bool,
}

/// One font of a document.
pub(super) struct Font<'a> {
    to_unicode: Option<Encoding<'static>>,
    encoding: Option<Encoding<'a>>,
    /// Codes have two bytes.
    composite: bool,
    widths: Widths,
    pub(super) bold: bool,
    shown: HashMap<u16, Shown>,
}

enum Widths {
    /// From the first code on; and the width of what is missing.
    Simple { first: i64, widths: Vec<f32>, missing: Option<f32>, unit: f32, fixed: bool },
    /// Ranges by their first CID: last CID and width.
    Composite { ranges: BTreeMap<u16, (u16, f32)>, default: f32 },
}

impl<'a> Font<'a> {
    pub(super) fn new(document: &'a Document, font: &'a Dictionary, limits: &Limits) -> Result<Font<'a>, ReadError> {
        let composite = name(document, font, b"Subtype") == b"Type0";
        let base_name = String::from_utf8_lossy(name(document, font, b"BaseFont")).to_lowercase();
        let encoding_name = name(document, font, b"Encoding");
        // without a map to Unicode, the codes of a composite font say nothing, but for these encodings
        let readable = !composite || encoding_name.starts_with(b"UniGB-U");
        let encoding =
            if readable { lenient(font.get_font_encoding_with_limit(document, limits.decompressed_bytes), limits)? } else { None };
        let widths = if composite { composite_widths(document, font) } else { simple_widths(document, font, &base_name) };
        let bold = ["bold", "black", "heavy", "semibold", "-bx", "cmbx"].iter().any(|word| base_name.contains(word));
        Ok(Font { to_unicode: to_unicode(document, font, limits)?, encoding, composite, widths, bold, shown: HashMap::new() })
    }

    /// What a string shows, code by code.
    pub(super) fn shown(&mut self, bytes: &[u8]) -> Vec<Shown> {
        let size = if self.composite { 2 } else { 1 };
        bytes.chunks(size).map(|code| self.one(code)).collect()
    }

    fn one(&mut self, bytes: &[u8]) -> Shown {
        let code = bytes.iter().fold(0_u16, |code, byte| (code << 8) | u16::from(*byte));
        if let Some(shown) = self.shown.get(&code) {
            return shown.clone();
        }
        let decode = |encoding: Option<&Encoding<'_>>| {
            let text = encoding.and_then(|encoding| encoding.bytes_to_string(bytes).ok()).unwrap_or_default();
            readable(&text)
        };
        let mut text = decode(self.to_unicode.as_ref());
        if text.is_empty() {
            text = decode(self.encoding.as_ref());
        }
        let shown = Shown { width: self.widths.of(code, &text), is_space: !self.composite && code == u16::from(b' '), text };
        self.shown.insert(code, shown.clone());
        shown
    }
}

/// Text without what has no meaning in it; ligatures as letters.
fn readable(text: &str) -> String {
    let mut readable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{fb00}' => readable.push_str("ff"),
            '\u{fb01}' => readable.push_str("fi"),
            '\u{fb02}' => readable.push_str("fl"),
            '\u{fb03}' => readable.push_str("ffi"),
            '\u{fb04}' => readable.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => readable.push_str("st"),
            '\u{a0}' | '\t' => readable.push(' '),
            char::REPLACEMENT_CHARACTER | '\u{feff}' | '\u{e000}'..='\u{f8ff}' => {}
            c if c.is_control() => {}
            c => readable.push(c),
        }
    }
    readable
}

/// The map to Unicode alone: lopdf prefers `Encoding`, which often says less.
fn to_unicode(document: &Document, font: &Dictionary, limits: &Limits) -> Result<Option<Encoding<'static>>, ReadError> {
    let Ok(map) = font.get(b"ToUnicode") else {
        return Ok(None);
    };
    let mut only_map = Dictionary::new();
    only_map.set("Type", Object::Name(b"Font".to_vec()));
    only_map.set("ToUnicode", map.clone());
    Ok(match lenient(only_map.get_font_encoding_with_limit(document, limits.decompressed_bytes), limits)? {
        Some(Encoding::UnicodeMapEncoding(map)) => Some(Encoding::UnicodeMapEncoding(map)),
        _ => None,
    })
}

/// A font that cannot be read costs its own text; a decompression bomb costs the file.
fn lenient<T>(result: Result<T, Error>, limits: &Limits) -> Result<Option<T>, ReadError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error @ Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => Err(failure(&error, limits)),
        Err(_) => Ok(None),
    }
}

/// The name under a key, or nothing.
fn name<'a>(document: &'a Document, dictionary: &'a Dictionary, key: &[u8]) -> &'a [u8] {
    dictionary.get_deref(key, document).and_then(Object::as_name).unwrap_or_default()
}

fn numbers(document: &Document, array: &[Object]) -> Vec<f32> {
    let one = |object| document.dereference(object).ok().and_then(|(_, object)| number(object)).unwrap_or_default();
    array.iter().map(one).collect()
}

fn simple_widths(document: &Document, font: &Dictionary, base_name: &str) -> Widths {
    let get = |key: &[u8]| font.get_deref(key, document).ok();
    let first = get(b"FirstChar").and_then(number).unwrap_or_default() as i64;
    let widths = get(b"Widths").and_then(|widths| widths.as_array().ok()).map(|array| numbers(document, array)).unwrap_or_default();
    let descriptor = get(b"FontDescriptor").and_then(|descriptor| descriptor.as_dict().ok());
    let missing = descriptor.and_then(|descriptor| descriptor.get_deref(b"MissingWidth", document).ok()).and_then(number);
    // the glyphs of a Type 3 font have units of their own
    let matrix = get(b"FontMatrix").and_then(|matrix| matrix.as_array().ok()).and_then(|matrix| number(matrix.first()?));
    let unit = matrix.filter(|_| name(document, font, b"Subtype") == b"Type3").unwrap_or(1.0 / UNITS).abs();
    Widths::Simple { first, widths, missing, unit, fixed: base_name.contains("courier") || base_name.contains("mono") }
}

fn composite_widths(document: &Document, font: &Dictionary) -> Widths {
    let descendants = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
    let descendant = descendants
        .and_then(|fonts| fonts.first())
        .and_then(|font| document.dereference(font).ok())
        .and_then(|(_, font)| font.as_dict().ok());
    let get = |key: &[u8]| descendant.and_then(|font| font.get_deref(key, document).ok());
    let default = get(b"DW").and_then(number).unwrap_or(DEFAULT_CID_WIDTH) / UNITS;
    let mut ranges = BTreeMap::new();
    let array = get(b"W").and_then(|widths| widths.as_array().ok()).map(Vec::as_slice).unwrap_or_default();
    let mut rest = array;
    // `first [width width …]` or `first last width`
    while let [first, second, after @ ..] = rest {
        let Some(first) = number(first).map(|first| first as u16) else { break };
        match document.dereference(second).map(|(_, second)| second) {
            Ok(Object::Array(widths)) => {
                for (cid, width) in (first..=u16::MAX).zip(numbers(document, widths)) {
                    ranges.insert(cid, (cid, width / UNITS));
                }
                rest = after;
            }
            Ok(last) => {
                let (Some(last), Some(width)) = (number(last), after.first().and_then(number)) else { break };
                ranges.insert(first, (last as u16, width / UNITS));
                rest = &after[1..];
            }
            Err(_) => break,
        }
    }
    Widths::Composite { ranges, default }
}

impl Widths {
    /// The width of a code, in parts of the font's size.
    fn of(&self, code: u16, text: &str) -> f32 {
        match self {
            Widths::Simple { first, widths, missing, unit, fixed } => {
                let at = usize::try_from(i64::from(code) - first).ok();
                let width = at.and_then(|at| widths.get(at)).copied().filter(|width| *width > 0.0);
                width.or(missing.filter(|width| *width > 0.0)).map_or_else(|| usual_width(text, *fixed), |width| width * unit)
            }
            Widths::Composite { ranges, default } => {
                let range = ranges.range(..=code).next_back().filter(|(_, (last, _))| code <= *last);
                range.map_or(*default, |(_, (_, width))| *width)
            }
        }
    }
}

/// About the width of a character in Helvetica or Times, in parts of the font's size: files leave
/// out the widths of these standard fonts.
fn usual_width(text: &str, fixed: bool) -> f32 {
    const FIXED: f32 = 0.6;
    if fixed {
        return FIXED;
    }
    match text.chars().next() {
        None => 0.0,
        Some(' ' | 'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '!' | '\'' | '|' | '(' | ')' | '[' | ']' | '-') => {
            0.28
        }
        Some('m' | 'w' | 'M' | 'W' | '@' | '%') => 0.83,
        Some(c) if c.is_uppercase() => 0.68,
        Some(_) => 0.52,
    }
}
