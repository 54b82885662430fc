//! The text of a web page. Tags are read one after the other, without a tree, so nesting costs no
//! stack.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// Elements whose content is no text.
const SILENT: [&str; 8] = ["script", "style", "template", "noscript", "svg", "head", "iframe", "textarea"];
/// Elements within a line.
const INLINE: [&str; 16] = ["a", "abbr", "b", "cite", "code", "em", "i", "kbd", "mark", "q", "s", "small", "span", "strong", "sub", "sup"];

/// The text, a line for each block. The title is the first line.
pub(crate) fn text(html: &str) -> String {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.text.into_inner()
}

#[derive(Default)]
struct Sink {
    text: RefCell<String>,
    /// The element whose content is passed over, and how often it is open.
    silent: RefCell<Option<(String, usize)>>,
    title: Cell<bool>,
}

impl Sink {
    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let start = tag.kind == TagKind::StartTag;
        if name == "title" {
            self.title.set(start);
            self.text.borrow_mut().push('\n');
            return if start { TokenSinkResult::RawData(RawKind::Rcdata) } else { TokenSinkResult::Continue };
        }
        let mut silent = self.silent.borrow_mut();
        let closed = match silent.as_mut() {
            Some((within, depth)) if within == name && !tag.self_closing => {
                if start {
                    *depth += 1
                } else {
                    *depth -= 1
                };
                *depth == 0
            }
            Some(_) => false,
            None => {
                if start && SILENT.contains(&name) && !tag.self_closing {
                    *silent = Some((name.to_owned(), 1));
                } else if !INLINE.contains(&name) {
                    self.text.borrow_mut().push('\n');
                }
                false
            }
        };
        if closed {
            *silent = None;
        }
        match name {
            "script" if start => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" if start => TokenSinkResult::RawData(RawKind::Rawtext),
            "textarea" if start => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) if self.title.get() || self.silent.borrow().is_none() => {
                // line breaks of the source are blanks
                self.text.borrow_mut().extend(text.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }));
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use autoact_base::lines::several_lines;

    use super::*;

    #[test]
    fn a_page_is_its_text() {
        let page = "<!doctype html><head><title>A &amp; B</title><style>p{}</style></head><body><h1>One</h1><p>two <b>three</b>\nfour\
                    <script>if (a<b) { '<p>no</p>' }</script></p><ul><li>x<li>y</ul><svg><text>no</text></svg></body>";
        assert_eq!(several_lines(&text(page)).replace("\n\n", "\n"), "A & B\nOne\ntwo three four\nx\ny");
        let nested = "<div>".repeat(200_000) + "deep";
        assert!(text(&nested).ends_with("deep"));
    }
}
