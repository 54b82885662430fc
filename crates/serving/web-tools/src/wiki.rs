//! A client of MediaWiki's Action API.

use autoact_base::lines::one_line;
use autoact_documents::{Document, Kind, Reader};
use autoact_tools::ToolError;
use autoact_tools::text::{query_stems, stems};
use serde_json::Value;
use url::Url;

use crate::web::Web;
use crate::wiki_html::cleaned;

/// A wiki.
pub(crate) struct Wiki {
    pub(crate) web: Web,
    api: Url,
}

/// A page that the wiki has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WikiPage {
    /// Its title, after redirects.
    pub(crate) title: String,
    /// Where people read it.
    pub(crate) url: Url,
    /// What was asked for, where the wiki led from there to another title.
    pub(crate) redirected: Option<String>,
}

/// What a page says.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) document: Document,
    /// The headings of its sections of the first two levels.
    pub(crate) sections: Vec<String>,
    /// Whether it only lists what its title may mean.
    pub(crate) disambiguation: bool,
}

/// A page that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) summary: String,
}

impl Wiki {
    pub(crate) fn new(web: Web, api: Url) -> Wiki {
        Wiki { web, api }
    }

    /// The wiki's host, for messages.
    pub(crate) fn host(&self) -> &str {
        self.api.host_str().unwrap_or_default()
    }

    async fn call(&self, parameters: &[(&str, &str)]) -> Result<Value, ToolError> {
        let mut url = self.api.clone();
        url.query_pairs_mut().extend_pairs(parameters).extend_pairs([("format", "json"), ("formatversion", "2")]);
        let answer = self.web.json(&url).await?;
        match answer.get("error") {
            None if answer.is_object() => Ok(answer),
            error => {
                let told = |key: &str| error.and_then(|error| error.get(key)?.as_str()).map(one_line).unwrap_or_default();
                let message = match told("code") {
                    code if code.is_empty() => "the answer is none of MediaWiki's API; is `api` the URL of its api.php?".to_owned(),
                    code => format!("{code}: {}", told("info")),
                };
                Err(ToolError::Failed { status: format!("the wiki `{}` refused", self.host()), message })
            }
        }
    }

    /// The pages with these titles that the wiki has, at most 50, in no order.
    pub(crate) async fn pages(&self, titles: &[&str]) -> Result<Vec<WikiPage>, ToolError> {
        let titles = titles.join("|");
        let parameters = [("action", "query"), ("redirects", "1"), ("prop", "info"), ("inprop", "url"), ("titles", &titles)];
        let answer = self.call(&parameters).await?;
        let query = &answer["query"];
        let led = |to: &str| {
            // `a` is normalised to `A`, which is a redirect to `B`
            let back = |list: &str, to: &str| {
                let steps = query[list].as_array()?;
                steps.iter().find(|step| step["to"] == to)?["from"].as_str().map(str::to_owned)
            };
            let redirect = back("redirects", to);
            redirect.map(|from| back("normalized", &from).unwrap_or(from))
        };
        let page = |page: &Value| {
            let is = |key: &str| page.get(key).is_some_and(|value| value != &Value::Bool(false));
            if is("missing") || is("invalid") || is("special") {
                return None;
            }
            let title = page["title"].as_str()?.to_owned();
            let url = page["canonicalurl"].as_str().or(page["fullurl"].as_str())?;
            Some(WikiPage { redirected: led(&title), url: self.place(url)?, title })
        };
        Ok(query["pages"].as_array().map(|pages| pages.iter().filter_map(page).collect()).unwrap_or_default())
    }

    /// A URL that the wiki gives; it may begin with `//`.
    fn place(&self, url: &str) -> Option<Url> {
        self.api.join(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
    }

    /// The text of a page.
    pub(crate) async fn parsed(&self, page: &WikiPage, reader: Reader) -> Result<Parsed, ToolError> {
        let parameters = [
            ("action", "parse"),
            ("page", page.title.as_str()),
            ("prop", "text|sections|properties|templates"),
            ("disableeditsection", "1"),
            ("disabletoc", "1"),
            ("disablelimitreport", "1"),
        ];
        let mut answer = self.call(&parameters).await?;
        let text = answer.get_mut("parse").and_then(|parse| parse.get_mut("text")).map(Value::take);
        let Some(Value::String(html)) = text else {
            let status = format!("the wiki `{}` refused", self.host());
            return Err(ToolError::Failed { status, message: format!("it gave no text of `{}`", page.title) });
        };
        let title = page.title.clone();
        let read = tokio::task::spawn_blocking(move || {
            let html = cleaned(&title, &html);
            reader.read(&title, Kind::Html, [b"\xef\xbb\xbf", html.as_bytes()].concat())
        });
        let document = match read.await {
            Ok(Ok(document)) => document,
            Ok(Err(error)) => {
                return Err(ToolError::Failed { status: "no result".to_owned(), message: format!("the page cannot be read: {error}") });
            }
            Err(error) => return Err(ToolError::Internal(error.to_string())),
        };
        let parse = &answer["parse"];
        let upper = |section: &&Value| section["toclevel"].as_u64().is_some_and(|level| level <= 2);
        let line = |section: &Value| section["line"].as_str().map(plain);
        let sections = parse["sections"].as_array().map(|all| all.iter().filter(upper).filter_map(line).collect()).unwrap_or_default();
        let says = |template: &Value| template["title"].as_str().is_some_and(|title| title.to_lowercase().contains("disambig"));
        let disambiguation = parse["properties"].get("disambiguation").is_some()
            || parse["templates"].as_array().is_some_and(|all| all.iter().any(says))
            || page.title.ends_with("(disambiguation)");
        Ok(Parsed { document, sections, disambiguation })
    }

    /// The pages that a search finds, best first: those with all words in their text, else with those
    /// words that mean something, else those that the wiki finds by itself. MediaWiki's own search
    /// wants every word of a question, and looks at titles alone if it is not told.
    pub(crate) async fn search(&self, text: &str, limit: usize) -> Result<Vec<Hit>, ToolError> {
        let telling = content_words(text);
        let texts = [("srwhat", "text"), ("gsrwhat", "text")];
        for (words, what) in [(text, &texts[..]), (&telling, &texts[..]), (&telling, &[])] {
            if words.is_empty() {
                continue;
            }
            let hits = self.hits(words, limit, what).await?;
            if !hits.is_empty() {
                return Ok(hits);
            }
        }
        Ok(Vec::new())
    }

    async fn hits(&self, text: &str, limit: usize, more: &[(&str, &str)]) -> Result<Vec<Hit>, ToolError> {
        let limit = limit.to_string();
        let parameters = [
            ("action", "query"),
            ("list", "search"),
            ("srsearch", text),
            ("srlimit", &limit),
            ("srprop", "snippet"),
            ("generator", "search"),
            ("gsrsearch", text),
            ("gsrlimit", &limit),
            ("prop", "info"),
            ("inprop", "url"),
        ];
        let answer = self.call(&[&parameters[..], more].concat()).await?;
        let query = &answer["query"];
        let none = Vec::new();
        let urls = query["pages"].as_array().unwrap_or(&none);
        let hit = |hit: &Value| {
            let title = hit["title"].as_str()?;
            let page = urls.iter().find(|page| page["title"] == title);
            let url = page.and_then(|page| page["canonicalurl"].as_str().or(page["fullurl"].as_str()))?;
            let summary = without_marks(&plain(hit["snippet"].as_str().unwrap_or_default()));
            Some(Hit { title: one_line(title), url: self.place(url)?.into(), summary })
        };
        Ok(query["search"].as_array().map(|hits| hits.iter().filter_map(hit).collect()).unwrap_or_default())
    }
}

/// The words of a text but those that say nothing, such as `which` and `the`.
fn content_words(text: &str) -> String {
    let telling = query_stems(text);
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| stems(word).iter().any(|stem| telling.contains(stem))).collect::<Vec<_>>().join(" ")
}

/// A snippet is a piece of the page's source: without the marks of links, bold text and tables.
fn without_marks(snippet: &str) -> String {
    let marks = ["'''", "''", "[[", "]]", "{|", "|}", "|-", "=="];
    one_line(&marks.iter().fold(snippet.to_owned(), |text, mark| text.replace(mark, " ")))
}

/// A piece of HTML within a line as text.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        match after.split_once('>') {
            Some((tag, later)) if tag.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!') => rest = later,
            _ => {
                text.push('<');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#039;", "'"), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
    one_line(&entities.iter().fold(text, |text, (entity, is)| text.replace(entity, is)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_words_that_say_nothing() {
        assert_eq!(content_words("Which mountain is the highest in Georgia?"), "mountain highest Georgia");
        assert_eq!(content_words("?"), "");
    }

    #[test]
    fn a_snippet_is_text() {
        assert_eq!(plain("The <span class=\"searchmatch\">Loire</span> &amp; 1 < 2 &#039;x&#039;<br/> a<"), "The Loire & 1 < 2 'x' a<");
    }
}
