//! HTML: the text of the main content.
//!
//! Only the tokenizer of html5ever is used. There is no tree, so nesting costs no stack, and the
//! cost grows with the bytes alone. What a tree would add, such as misnested formatting, does not
//! change the text.

use std::cell::RefCell;
use std::collections::HashMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::document::{Builder, Extracted};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::markdown::CELL_SEPARATOR;

/// `<main>` and `<article>` are the main content if they have so many bytes of text; a teaser in an
/// `<article>` is not.
const MIN_MAIN_BYTES: usize = 200;

/// Or so large a share of all text.
const MIN_MAIN_SHARE: usize = 4;

pub(crate) fn read(text: &str, limits: &Limits) -> Result<Extracted, ReadError> {
    let page = blocks(text);
    let bytes = |main: bool| page.blocks.iter().filter(|block| block.main || !main).map(|block| block.text.len()).sum::<usize>();
    let (main, all) = (bytes(true), bytes(false));
    let main_only = main > 0 && (main >= MIN_MAIN_BYTES || main >= all / MIN_MAIN_SHARE);
    let mut builder = Builder::new(limits.text_bytes);
    let kept: Vec<&Block> = page.blocks.iter().filter(|block| block.main || !main_only).collect();
    builder.title(&page.title);
    if let Some(heading) = kept.iter().find(|block| block.form == Form::Heading) {
        builder.title(&heading.text);
    }
    kept.into_iter().try_for_each(|block| block.add(&mut builder))?;
    Ok(builder.finish())
}

/// Adds the text of a piece of HTML.
pub(crate) fn fragment(text: &str, builder: &mut Builder) -> Result<(), ReadError> {
    blocks(text).blocks.iter().try_for_each(|block| block.add(builder))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Heading,
    Paragraph,
    Line,
    Code,
}

#[derive(Debug)]
struct Block {
    form: Form,
    text: String,
    /// Inside `<main>` or `<article>`.
    main: bool,
}

impl Block {
    fn add(&self, builder: &mut Builder) -> Result<(), ReadError> {
        match self.form {
            Form::Heading => builder.heading(&self.text),
            Form::Paragraph => builder.paragraph(&self.text),
            Form::Line => builder.line(&self.text),
            Form::Code => builder.lines(&self.text),
        }
    }
}

fn blocks(text: &str) -> Page {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(text));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    // the sink never stops the tokenizer, so one call reads all
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut page = tokenizer.sink.page.into_inner();
    page.end_block(Form::Paragraph);
    page
}

/// The elements that hold the main content.
const MAIN: [&str; 2] = ["main", "article"];

/// A `<header>` of the main content.
const MAIN_HEADER: &str = "main header";

/// The elements whose text is no content.
const DROPPED: [&str; 13] =
    ["script", "style", "nav", "header", "footer", "aside", "noscript", "template", "svg", "select", "iframe", "form", "dialog"];

/// The name, if the element is one that is counted.
fn counted(name: &str) -> Option<&'static str> {
    MAIN.iter().chain(&DROPPED).copied().find(|known| *known == name)
}

/// How deep the tokenizer is in the elements that matter.
#[derive(Debug, Default)]
struct Page {
    title: String,
    blocks: Vec<Block>,
    /// The open elements that are dropped, and those of the main content.
    open: Vec<&'static str>,
    /// How many elements of each name are open: an end tag without its start tag costs no search.
    counts: HashMap<&'static str, usize>,
    dropped: usize,
    /// `<header>`s of the main content, whose headings are content.
    headers: usize,
    main: usize,
    in_title: bool,
    in_heading: bool,
    in_pre: bool,
    in_row: bool,
    text: String,
}

#[derive(Debug, Default)]
struct Sink {
    page: RefCell<Page>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.page.borrow_mut();
        match token {
            Token::CharacterTokens(text) => page.characters(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return page.start(&tag),
            Token::TagToken(tag) => page.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Page {
    fn characters(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(text);
        } else if self.dropped == 0 && (self.headers == 0 || self.in_heading) {
            self.text.push_str(text);
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        if let Some(name) = counted(name) {
            self.end_block(Form::Paragraph);
            if !tag.self_closing {
                self.open_element(name);
            }
        }
        match name {
            "title" => self.in_title = self.title.is_empty() && self.counts.get("svg").is_none_or(|open| *open == 0),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_block(Form::Paragraph);
                self.in_heading = true;
            }
            "pre" => {
                self.end_block(Form::Paragraph);
                self.in_pre = true;
            }
            "li" | "dt" | "dd" | "tr" => {
                self.end_block(Form::Paragraph);
                self.in_row = true;
            }
            "td" | "th" if !self.text.trim().is_empty() => self.text.push_str(CELL_SEPARATOR),
            "td" | "th" => {}
            "br" => self.text.push(if self.in_pre { '\n' } else { ' ' }),
            _ if is_block(name) => self.end_block(Form::Paragraph),
            _ => {}
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" | "noframes" | "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.end_block(Form::Heading);
                self.in_heading = false;
            }
            "pre" => {
                self.end_block(Form::Code);
                self.in_pre = false;
            }
            "li" | "dt" | "dd" | "tr" => self.end_block(Form::Line),
            _ if is_block(name) => self.end_block(Form::Paragraph),
            _ => {}
        }
        if let Some(name) = counted(name) {
            self.end_block(Form::Paragraph);
            self.close_element(name);
        }
    }

    /// Ends the block before its own end tag would: what is left of a row is one.
    fn end_block(&mut self, form: Form) {
        let form = match form {
            Form::Paragraph if self.in_pre => Form::Code,
            Form::Paragraph if self.in_heading => Form::Heading,
            Form::Paragraph if self.in_row => Form::Line,
            form => form,
        };
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            // whatever comes after a heading that is never closed is no heading
            self.in_heading &= form != Form::Heading;
            self.blocks.push(Block { form, text, main: self.main > 0 });
            self.in_row = false;
        }
    }

    fn open_element(&mut self, name: &'static str) {
        // the title of an article often stands in its `<header>`
        let name = if name == "header" && self.main > 0 { MAIN_HEADER } else { name };
        self.count(name, 1);
        self.open.push(name);
    }

    /// Closes the element, and those inside it that were never closed. An end tag without its
    /// start tag means nothing.
    fn close_element(&mut self, name: &'static str) {
        let names = [name, if name == "header" { MAIN_HEADER } else { name }];
        if names.iter().all(|name| self.counts.get(name).is_none_or(|open| *open == 0)) {
            return;
        }
        while let Some(open) = self.open.pop() {
            self.count(open, -1);
            if names.contains(&open) {
                break;
            }
        }
    }

    fn count(&mut self, name: &'static str, change: isize) {
        let group = match name {
            MAIN_HEADER => &mut self.headers,
            _ if MAIN.contains(&name) => &mut self.main,
            _ => &mut self.dropped,
        };
        *group = group.saturating_add_signed(change);
        let open = self.counts.entry(name).or_default();
        *open = open.saturating_add_signed(change);
    }
}

/// The elements that begin a new line on the screen.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "body"
            | "html"
            | "head"
            | "ul"
            | "ol"
            | "dl"
            | "table"
            | "thead"
            | "tbody"
            | "tfoot"
            | "caption"
            | "blockquote"
            | "figure"
            | "figcaption"
            | "hr"
            | "address"
            | "details"
            | "summary"
            | "fieldset"
            | "option"
            | "center"
    )
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
