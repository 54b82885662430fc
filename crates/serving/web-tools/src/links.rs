//! The links of a page.

use std::cell::RefCell;
use std::collections::HashSet;

use autoact_base::lines::one_line;
use autoact_tools::text::{query_stems, stems};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use percent_encoding::percent_decode_str;
use url::Url;

/// Links that are shown.
const SHOWN: usize = 5;
/// Links that are looked at.
const MOST: usize = 4000;
/// Of a link's text so many bytes count.
const TEXT_BYTES: usize = 200;
/// A longer URL is not shown: it would take the room of a passage.
const URL_BYTES: usize = 300;

/// A link and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) url: Url,
}

/// The links that have words of the question in their text or path, those with the most first. Each
/// place is named once, and none that is not `open`. Words of the page's own title count little.
pub(crate) fn fitting(html: &str, page: &Url, title: &str, question: &str, open: impl Fn(&Url) -> bool) -> Vec<Link> {
    let wanted = query_stems(question);
    let own: HashSet<String> = stems(title).into_iter().collect();
    let mut seen = HashSet::from([without_fragment(page.clone())]);
    let mut scored = Vec::new();
    for link in all(html, page) {
        if !matches!(link.url.scheme(), "http" | "https") || link.url.as_str().len() > URL_BYTES || !seen.insert(link.url.clone()) {
            continue;
        }
        let path = percent_decode_str(link.url.path()).decode_utf8_lossy().replace('_', " ");
        let words: HashSet<String> = stems(&format!("{} {path}", link.text)).into_iter().collect();
        let worth = |stem: &&String| if own.contains(*stem) { 1 } else { 4 };
        let score: usize = wanted.iter().filter(|stem| words.contains(*stem)).map(|stem| worth(&stem)).sum();
        if score > 0 && open(&link.url) {
            scored.push((score, link));
        }
    }
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(SHOWN).map(|(_, link)| link).collect()
}

fn without_fragment(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}

/// The texts of the links: what a menu is made of.
pub(crate) fn texts(html: &str) -> HashSet<String> {
    read(html).links.into_iter().map(|(_, text)| one_line(&text)).collect()
}

/// All links, in the order of the page.
fn all(html: &str, page: &Url) -> Vec<Link> {
    let state = read(html);
    let base = state.base.and_then(|base| page.join(&base).ok()).unwrap_or_else(|| page.clone());
    let resolved = |(href, text): (String, String)| {
        let url = without_fragment(base.join(href.trim()).ok()?);
        let text = one_line(&text);
        let plain = url.username().is_empty() && url.password().is_none();
        (!text.is_empty() && plain).then_some(Link { text, url })
    };
    state.links.into_iter().filter_map(resolved).collect()
}

fn read(html: &str) -> State {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut state = tokenizer.sink.state.into_inner();
    state.end();
    state
}

#[derive(Default)]
struct Sink {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    base: Option<String>,
    links: Vec<(String, String)>,
    open: Option<(String, String)>,
}

impl State {
    fn end(&mut self) {
        if let Some(link) = self.open.take()
            && self.links.len() < MOST
        {
            self.links.push(link);
        }
    }

    fn start(&mut self, tag: &Tag) {
        let attribute = |name: &str| tag.attrs.iter().find(|one| &*one.name.local == name).map(|one| one.value.to_string());
        match &*tag.name {
            "base" if self.base.is_none() => self.base = attribute("href"),
            "a" => {
                self.end();
                self.open = attribute("href").map(|href| (href, String::new()));
            }
            // a picture that is a link
            "img" => {
                if let Some((_, text)) = &mut self.open
                    && let Some(alt) = attribute("alt")
                {
                    push(text, &alt);
                }
            }
            _ => {}
        }
    }
}

fn push(text: &mut String, more: &str) {
    if text.len() < TEXT_BYTES {
        text.push_str(&more[..more.floor_char_boundary(TEXT_BYTES)]);
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.state.borrow_mut();
        match token {
            Token::CharacterTokens(more) => {
                if let Some((_, text)) = &mut state.open {
                    push(text, &more);
                }
            }
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                state.start(&tag);
                return match &*tag.name {
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "iframe" | "noframes" | "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
                    "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => TokenSinkResult::Continue,
                };
            }
            Token::TagToken(tag) if &*tag.name == "a" => state.end(),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn links_that_fit_the_question_are_found() {
        let page = Url::parse("https://example.org/rivers/loire").unwrap();
        let html = "<base href='/rivers/'><a href=loire#top>Length</a><a href='danube'>The <b>Danube</b></a><a href=mailto:x@y>length</a>\
                    <a href='https://a.test/x'>Nothing</a><a href='list_of_lengths'>all</a><a href='danube#b'>Danube again</a>\
                    <a href=/img><img alt='map of lengths'></a><a href='//u:p@b.test/length'>length</a><script>'<a href=no>length</a>'</script>\
                    <a href=loire-2>Loire</a><a href=far>length";
        let found = fitting(html, &page, "Loire", "What is the length of the Loire and the Danube?", |url| url.path() != "/rivers/far");
        let found: Vec<(&str, &str)> = found.iter().map(|link| (link.text.as_str(), link.url.as_str())).collect();
        let expected = [
            ("The Danube", "https://example.org/rivers/danube"),
            ("all", "https://example.org/rivers/list_of_lengths"),
            ("map of lengths", "https://example.org/img"),
            ("Loire", "https://example.org/rivers/loire-2"),
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn any_page_has_bounded_links(html in "(<a href=['\"]?[a-z/:#.%é]{0,9}['\"]?>|</a>|<base href=x>|[a-zé ]{0,5}){0,40}") {
            let page = Url::parse("https://example.org/").unwrap();
            prop_assert!(fitting(&html, &page, "", "a b c", |_| true).len() <= SHOWN);
        }
    }
}
