//! The HTML of a wiki's page without what is no content, and its infobox.

use std::cell::RefCell;

use autoact_base::lines::one_line;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// The heading that the rows of infoboxes stand under.
pub(crate) const INFOBOX: &str = "Infobox";
/// Rows that are kept.
const MOST_ROWS: usize = 200;
/// Classes of elements that are no content: marks of notes and of editing, boxes that lead elsewhere.
const DROPPED: [&str; 14] = [
    "reference",
    "mw-editsection",
    "navbox",
    "noprint",
    "toc",
    "metadata",
    "ambox",
    "reflist",
    "references",
    "mw-references-wrap",
    "hatnote",
    "sistersitebox",
    "mw-empty-elt",
    "mw-jump-link",
];
/// Elements without an end tag.
const VOID: [&str; 8] = ["br", "hr", "img", "wbr", "input", "link", "meta", "col"];

/// The page as HTML of its content alone. The infobox comes last, a list item `key: value` for each
/// of its rows, under the heading [`INFOBOX`].
pub(crate) fn cleaned(title: &str, html: &str) -> String {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let Filter { out, rows, .. } = tokenizer.sink.filter.into_inner();
    let mut page = format!("<title>{}</title><main>{out}", escaped(title));
    if !rows.is_empty() {
        page.push_str(&format!("<h2>{INFOBOX}</h2><ul>"));
        for row in rows {
            page.push_str(&format!("<li>{}</li>", escaped(&row)));
        }
        page.push_str("</ul>");
    }
    page + "</main>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[derive(Default)]
struct Sink {
    filter: RefCell<Filter>,
}

#[derive(Default)]
struct Filter {
    out: String,
    rows: Vec<String>,
    /// The element whose content is passed over, and how often it is open.
    dropped: Option<(String, usize)>,
    /// How many tables are open, the infobox the first of them; 0: none.
    infobox: usize,
    row: Row,
}

#[derive(Default)]
struct Row {
    key: String,
    value: String,
    place: Place,
}

#[derive(Default, PartialEq)]
enum Place {
    #[default]
    Outside,
    Key,
    Value,
}

impl Filter {
    fn tag(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        let start = tag.kind == TagKind::StartTag;
        let void = VOID.contains(&name) || tag.self_closing;
        if let Some((within, depth)) = &mut self.dropped {
            if within == name && !void {
                *depth = if start { *depth + 1 } else { *depth - 1 };
                if *depth == 0 {
                    self.dropped = None;
                }
            }
            return;
        }
        let classes = tag.attrs.iter().find(|one| &*one.name.local == "class").map(|one| one.value.to_string()).unwrap_or_default();
        let has = |wanted: &dyn Fn(&str) -> bool| classes.split_ascii_whitespace().any(wanted);
        if start && !void && (matches!(name, "style" | "script") || has(&|class| DROPPED.contains(&class))) {
            self.dropped = Some((name.to_owned(), 1));
            return;
        }
        if self.infobox > 0 {
            self.infobox_tag(name, start);
        } else if start && name == "table" && has(&|class| class.starts_with("infobox")) {
            self.infobox = 1;
        } else {
            let slash = if start { "" } else { "/" };
            self.out.push_str(&format!("<{slash}{name}>"));
        }
    }

    fn infobox_tag(&mut self, name: &str, start: bool) {
        match (name, start) {
            ("table", true) => self.infobox += 1,
            ("table", false) => {
                self.infobox -= 1;
                if self.infobox == 0 {
                    self.end_row();
                }
            }
            _ if self.infobox > 1 => {}
            ("tr", _) => self.end_row(),
            ("th", true) => self.row.place = Place::Key,
            ("td", true) => {
                self.row.place = Place::Value;
                if !self.row.value.is_empty() {
                    self.row.value.push_str("; ");
                }
            }
            ("th" | "td", false) => self.row.place = Place::Outside,
            ("br" | "li" | "div" | "p", _) => self.characters(" "),
            _ => {}
        }
    }

    fn characters(&mut self, text: &str) {
        if self.dropped.is_some() {
            return;
        }
        match self.row.place {
            _ if self.infobox == 0 => self.out.push_str(&escaped(text)),
            Place::Key => self.row.key.push_str(text),
            Place::Value => self.row.value.push_str(text),
            Place::Outside => {}
        }
    }

    fn end_row(&mut self) {
        let Row { key, value, .. } = std::mem::take(&mut self.row);
        let (key, value) = (one_line(&key), one_line(&value));
        // a row without a key is a picture or a heading
        if !key.is_empty() && !value.is_empty() && self.rows.len() < MOST_ROWS {
            self.rows.push(format!("{key}: {value}"));
        }
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut filter = self.filter.borrow_mut();
        match token {
            Token::CharacterTokens(text) => filter.characters(&text),
            Token::TagToken(tag) => filter.tag(&tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_loses_its_marks_and_its_infobox_comes_last() {
        let html = "<div class=\"mw-parser-output\"><style>x{}</style><table class=\"infobox vcard\"><tr><th colspan=2>Georgia</th></tr>\
                    <tr><th>Capital</th><td><a href=x>Tbilisi</a><sup class=\"reference\">[1]</sup></td></tr>\
                    <tr><th>Currency</th><td>lari<br>(GEL)<table><tr><td>inner</td></tr></table></td></tr></table>\
                    <p>Georgia &lt;3 is a country.<sup class=reference><a>[2]</a></sup> It is old.</p>\
                    <h2><span class=mw-headline>History</span><span class=\"mw-editsection\">[<a>edit</a>]</span></h2><p>Long.\
                    <div class=\"navbox x\"><div>more</div></div>";
        let expected = "<title>A&amp;B</title><main><div><p>Georgia &lt;3 is a country. It is old.</p><h2><span>History</span></h2><p>Long.\
                        <h2>Infobox</h2><ul><li>Capital: Tbilisi</li><li>Currency: lari (GEL)inner</li></ul></main>";
        assert_eq!(cleaned("A&B", html), expected);
        assert_eq!(cleaned("", "<p>x"), "<title></title><main><p>x</main>");
    }

    proptest! {
        #[test]
        fn any_html_is_cleaned(html in "(</?(table|tr|th|td|sup|p|br)( class=(infobox|reference))?/?>|[a-z&<]{0,3}){0,60}") {
            let _ = cleaned("t", &html);
        }
    }
}
