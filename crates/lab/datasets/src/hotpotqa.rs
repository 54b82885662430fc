//! HotpotQA, distractor setting. A question's corpus is its gold paragraphs and eight others.

use autoact_tools::Page;
use autoact_tools::text::one_line;
use serde::Deserialize;
use serde_json::Value;

use crate::file::Made;
use crate::record::Record;

/// The fields of a published record that are used.
#[derive(Deserialize)]
struct Published {
    #[serde(rename = "_id", alias = "id")]
    id: String,
    question: String,
    answer: String,
    /// `easy`, `medium` or `hard`.
    #[serde(default)]
    level: String,
    /// Paragraphs, each with its title and sentences.
    context: Vec<(String, Vec<String>)>,
}

pub(crate) fn record(_: Option<&str>, value: &Value) -> Made {
    let published = Published::deserialize(value).map_err(|error| error.to_string())?;
    if published.question.trim().is_empty() || published.answer.trim().is_empty() {
        return Err("`question` or `answer` is empty".to_owned());
    }
    let pages = pages(published.context);
    if pages.is_empty() {
        return Err("`context` has no paragraph with a title and text".to_owned());
    }
    let level = if published.level.is_empty() { "questions".to_owned() } else { published.level };
    Ok(Some(Record { id: published.id, question: published.question.trim().to_owned(), answer: published.answer, level, pages }))
}

/// One page per paragraph. Empty paragraphs are left out, and those with the same title are joined.
fn pages(context: Vec<(String, Vec<String>)>) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    for (title, sentences) in context {
        let title = one_line(&title);
        // published sentences begin with a space
        let sentences: Vec<&str> = sentences.iter().map(|sentence| sentence.trim()).filter(|sentence| !sentence.is_empty()).collect();
        let text = sentences.join(" ");
        if title.is_empty() || text.is_empty() {
            continue;
        }
        match pages.iter_mut().find(|page| page.title == title) {
            Some(page) if page.text.contains(&text) => {}
            Some(page) => page.text = format!("{} {text}", page.text),
            None => pages.push(Page { title, text }),
        }
    }
    pages
}
