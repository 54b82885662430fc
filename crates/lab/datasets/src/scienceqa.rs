//! ScienceQA: multiple choice. As in AutoAct, the question's text has the context, the options, and
//! for a picture its caption and recognised words.

use autoact_score::{label, named, options, with_options};
use autoact_tools::text::one_line;
use serde::Deserialize;
use serde_json::Value;

use crate::file::Made;
use crate::record::Record;

/// The value of captions and recognised words without a picture.
const NO_PICTURE: &str = "no img";

/// A record in the format published for tool-using models, with the text that models get.
#[derive(Deserialize)]
struct Prepared {
    /// The question with context and options.
    #[serde(rename = "Question")]
    question: String,
    choices: Vec<String>,
    #[serde(rename = "Answer")]
    answer: String,
    #[serde(default)]
    caption: String,
    /// Result of text recognition: `[([[x, y], …], 'words', confidence), …]`. The published name of
    /// the field is misspelt.
    #[serde(default, rename = "orc", alias = "ocr")]
    words: String,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    pid: String,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    grade: Option<u32>,
}

/// A problem of `problems.json`.
#[derive(Deserialize)]
struct Problem {
    question: String,
    choices: Vec<String>,
    /// Index of the right choice.
    answer: usize,
    /// The context.
    #[serde(default)]
    hint: String,
    #[serde(default)]
    caption: String,
    /// `grade7`
    #[serde(default)]
    grade: String,
    #[serde(default)]
    split: String,
}

/// The split used for evaluation.
const TEST: &str = "test";

pub(crate) fn record(id: Option<&str>, value: &Value) -> Made {
    if value.get("Question").is_some() {
        let prepared = Prepared::deserialize(value).map_err(|error| error.to_string())?;
        return prepared.record().map(Some);
    }
    let problem = Problem::deserialize(value).map_err(|error| error.to_string())?;
    if !problem.split.is_empty() && problem.split != TEST {
        return Ok(None);
    }
    problem.record(id.unwrap_or_default()).map(Some)
}

impl Prepared {
    fn record(self) -> Result<Record, String> {
        check(&self.question, &self.choices)?;
        let right = named(&self.answer, &self.choices)
            .ok_or_else(|| format!("`Answer` is `{}`, which names none of the {} choices", self.answer, self.choices.len()))?;
        let asked = self.question.trim();
        // the answer is scored by the options in the text
        let mut question = if options(asked).len() == self.choices.len() { asked.to_owned() } else { with_options(asked, &self.choices) };
        picture(&mut question, &self.caption, &self.words);
        let level = self.metadata.grade.map_or_else(|| "questions".to_owned(), |grade| level(grade).to_owned());
        Ok(Record { id: self.pid, question, answer: gold(&self.choices, right), level, pages: Vec::new() })
    }
}

impl Problem {
    fn record(self, id: &str) -> Result<Record, String> {
        check(&self.question, &self.choices)?;
        if self.answer >= self.choices.len() {
            return Err(format!("`answer` is `{}`, expected an index below `{}`", self.answer, self.choices.len()));
        }
        let mut asked = one_line(&self.question);
        let hint = one_line(&self.hint);
        if !hint.is_empty() {
            asked.push_str(&format!("\nContext: {hint}"));
        }
        let mut question = with_options(&format!("{asked}\n"), &self.choices).replace("\n Options:", "\nOptions:");
        picture(&mut question, &self.caption, "");
        let grade = self.grade.strip_prefix("grade").and_then(|grade| grade.parse().ok());
        let level = grade.map_or_else(|| "questions".to_owned(), |grade| level(grade).to_owned());
        Ok(Record { id: id.to_owned(), question, answer: gold(&self.choices, self.answer), level, pages: Vec::new() })
    }
}

fn check(question: &str, choices: &[String]) -> Result<(), String> {
    if question.trim().is_empty() {
        return Err("the question is empty".to_owned());
    }
    if choices.len() < 2 {
        return Err(format!("`choices` has `{}` entries, expected at least 2", choices.len()));
    }
    Ok(())
}

/// The answer with its letter, as in the paper: `B. Louisiana`.
fn gold(choices: &[String], right: usize) -> String {
    format!("{}. {}", label(right), choices.get(right).map(String::as_str).unwrap_or_default())
}

/// The levels of the paper.
fn level(grade: u32) -> &'static str {
    match grade {
        0..=4 => "G1-4",
        5..=8 => "G5-8",
        _ => "G9-12",
    }
}

/// What a vision tool would report about the question's picture.
fn picture(question: &mut String, caption: &str, words: &str) {
    let caption = one_line(caption);
    if !caption.is_empty() && caption != NO_PICTURE {
        question.push_str(&format!("\nCaption: {caption}"));
    }
    let words = recognised(words);
    if !words.is_empty() {
        question.push_str(&format!("\nWords in the picture: {}", words.join(" / ")));
    }
}

/// The words of a Python list of `(box, 'words', confidence)`: the quoted text after each box.
fn recognised(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("]], ") {
        rest = after;
        let Some(quote) = after.chars().next().filter(|c| matches!(c, '\'' | '"')) else { continue };
        let inner = &after[quote.len_utf8()..];
        let Some(end) = inner.find(&format!("{quote}, ")) else { break };
        let word = one_line(&inner[..end].replace("\\'", "'").replace("\\\"", "\""));
        if !word.is_empty() {
            words.push(word);
        }
        rest = &inner[end..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::recognised;

    #[test]
    fn recognised_words_are_read() {
        let list = r#"[([[57, 183], [117, 183], [117, 197], [57, 197]], 'fish bowl', 0.69), ([[1, 2], [3, 4]], "it's", 9.1e-05), ([[1, 2]], '', 0.1)]"#;
        assert_eq!(recognised(list), ["fish bowl", "it's"]);
        for odd in ["", "no img", "[([[1]], 'open", "]], ", "]], x", "[([[1]], '"] {
            assert!(recognised(odd).is_empty(), "{odd}");
        }
    }
}
