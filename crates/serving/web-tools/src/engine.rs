//! A search engine: any URL that answers with results as JSON, or a wiki's own search.

use autoact_base::lines::one_line;
use autoact_http_tools::HttpClient;
use autoact_tools::ToolError;
use autoact_trajectory::cut;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use crate::options::Raw;
use crate::web::Web;
use crate::wiki::{Hit, Wiki, plain};
use crate::{browse_wiki, options};

/// Results that are shown.
pub(crate) const RESULTS: usize = 5;
/// Bytes of a result's title, its URL and its summary.
const TITLE_BYTES: usize = 120;
const URL_BYTES: usize = 500;
const SUMMARY_BYTES: usize = 240;
/// The place of the query in a URL.
const QUERY: &str = "{query}";
/// All but what means nothing in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A search engine.
pub(crate) enum Engine {
    /// A URL with `{query}`.
    Url {
        web: Web,
        template: String,
    },
    Wiki(Wiki),
}

impl Engine {
    /// The engine of an entry, which says either `url` or `api`; `names` are what the entry calls
    /// them.
    pub(crate) fn new(
        (url, api): (Option<String>, Option<String>),
        names: (&str, &str),
        raw: Raw,
        client: &HttpClient,
        mistakes: &mut Vec<String>,
    ) -> Option<Engine> {
        match (url, api) {
            (Some(template), None) => {
                let first = options::url(names.0, &template.replace(QUERY, "x"), mistakes)?;
                let other = options::url(names.0, &template.replace(QUERY, "y"), mistakes)?;
                if !template.contains(QUERY) || first.origin() != other.origin() {
                    mistakes.push(format!("`{}` has no `{QUERY}` in its path or query; expected one such as `https://search.example.org/search?q={{query}}&format=json`", names.0));
                    return None;
                }
                let web = raw.web(&[&first], browse_wiki::ACCEPT, client, mistakes)?;
                Some(Engine::Url { web, template })
            }
            (None, Some(api)) => {
                let api = options::url(names.1, &api, mistakes)?;
                Some(Engine::Wiki(Wiki::new(raw.web(&[&api], browse_wiki::ACCEPT, client, mistakes)?, api)))
            }
            _ => {
                mistakes
                    .push(format!("expected either `{}` (a URL with `{QUERY}`) or `{}` (the URL of a wiki's api.php)", names.0, names.1));
                None
            }
        }
    }

    /// The best results for a text.
    pub(crate) async fn search(&self, text: &str) -> Result<Vec<Hit>, ToolError> {
        match self {
            Engine::Wiki(wiki) => wiki.search(text, RESULTS).await,
            Engine::Url { web, template } => {
                let filled = template.replace(QUERY, &utf8_percent_encode(text, PLAIN).to_string());
                let url = Url::parse(&filled).map_err(|error| ToolError::Params(format!("this text cannot be searched for: {error}")))?;
                let answer = web.json(&url).await?;
                results(&answer).ok_or_else(|| {
                    let host = url.host_str().unwrap_or_default();
                    let message = format!("`{host}` answered with JSON in which no results are known; expected `{{\"results\": [{{\"title\", \"url\", \"content\"}}]}}`");
                    ToolError::Failed { status: "no result".to_owned(), message }
                })
            }
        }
    }
}

/// The results in an answer: those of SearxNG and of what has the same form, or OpenSearch's
/// `[query, [titles], [summaries], [urls]]`.
fn results(answer: &Value) -> Option<Vec<Hit>> {
    let mut hits = Vec::new();
    if let Some([_, titles, summaries, urls, ..]) = answer.as_array().map(Vec::as_slice) {
        for (at, url) in urls.as_array()?.iter().enumerate() {
            hits.extend(hit(titles.get(at), Some(url), summaries.get(at)));
        }
    } else {
        let list = ["results", "items", "data"].into_iter().find_map(|key| answer.get(key)?.as_array())?;
        for one in list {
            let text = |keys: [&str; 3]| keys.into_iter().find_map(|key| one.get(key).filter(|value| value.is_string()));
            hits.extend(hit(
                text(["title", "name", "heading"]),
                text(["url", "link", "href"]),
                text(["content", "snippet", "description"]),
            ));
        }
    }
    hits.truncate(RESULTS);
    Some(hits)
}

/// A result that leads somewhere; its texts are HTML within a line.
fn hit(title: Option<&Value>, url: Option<&Value>, summary: Option<&Value>) -> Option<Hit> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(plain).unwrap_or_default();
    let url = Url::parse(url?.as_str()?).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let title = match text(title) {
        none if none.is_empty() => url.host_str().unwrap_or_default().to_owned(),
        title => title,
    };
    (url.as_str().len() <= URL_BYTES).then(|| Hit { title, url: url.into(), summary: text(summary) })
}

/// A line for each result.
pub(crate) fn lines(hits: &[Hit]) -> impl Iterator<Item = String> {
    hits.iter().zip(1..).map(|(hit, number): (_, usize)| {
        let (title, summary) = (cut(one_line(&hit.title), TITLE_BYTES).0, cut(one_line(&hit.summary), SUMMARY_BYTES).0);
        let colon = if summary.is_empty() { "" } else { ": " };
        format!("{number}. {title} <{}>{colon}{summary}", hit.url)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use serde_json::json;

    use super::*;

    #[test]
    fn results_of_usual_forms_are_known() {
        let searx = json!({"query": "x", "results": [
            {"title": "A <b>b</b>", "url": "https://a.test/", "content": "One &amp; two"},
            {"title": "no URL"}, {"title": "other", "url": "javascript:x"}, {"url": "http://c.test/x"}
        ]});
        let hits = results(&searx).unwrap();
        assert_eq!(lines(&hits).collect::<Vec<_>>(), ["1. A b <https://a.test/>: One & two", "2. c.test <http://c.test/x>"]);
        let open = json!(["lo", ["Loire", "London"], ["A river", ""], ["https://w.test/Loire", "https://w.test/London"]]);
        assert_eq!(results(&open).unwrap()[1].title, "London");
        assert_eq!(results(&json!({"results": []})).unwrap(), []);
        for wrong in [json!({"error": "x"}), json!([1]), json!("x"), json!(null), json!({"results": {}}), json!(["a", [], [], {}])] {
            assert_eq!(results(&wrong), None, "{wrong}");
        }
        let many = json!({"results": vec![json!({"title": "x", "url": "https://a.test"}); 20]});
        assert_eq!(results(&many).unwrap().len(), RESULTS);
    }
}
