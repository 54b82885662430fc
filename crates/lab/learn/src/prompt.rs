//! Prompts and reply formats of self-instruct and tool selection.
//!
//! A prompt is a plain list that any language model can continue. If the model has a chat template,
//! the task's name, description and answer format stand before it.

use autoact_trajectory::{TaskInfo, ToolSpec};
use regex::escape;

use crate::task::Task;

/// One entry of the list: its pages, and for an example its question and answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Pages, one per line.
    pub(crate) pages: Vec<String>,
    /// The question.
    pub(crate) question: String,
    /// The answer.
    pub(crate) answer: String,
}

/// Maximum length in characters of a generated question.
const MOST_QUESTION: usize = 300;
const MOST_ANSWER: usize = 80;

/// The grammar of a reply to [`few_shot`], as a regular expression.
pub(crate) fn reply_form() -> String {
    format!(" [^\\n]{{1,{MOST_QUESTION}}}\\nAnswer: [^\\n]{{1,{MOST_ANSWER}}}\\n")
}

/// The text before a list or a choice; empty unless `told`, for models without a chat template.
pub(crate) fn introduction(task: &Task, told: bool) -> String {
    if !told {
        return String::new();
    }
    let TaskInfo { name, description, answer_format } = &task.info;
    let answers = if answer_format.is_empty() { String::new() } else { format!("Answer format: {answer_format}\n") };
    format!("Task: {name}\n{description}\n{answers}New questions with their answers, different from each other, some easy, some hard:\n\n")
}

/// The examples, then the new pages and the cue for a question.
pub(crate) fn few_shot(introduction: &str, shots: &[Entry], pages: &[String]) -> String {
    let mut text = introduction.to_owned();
    for shot in shots {
        lines(&shot.pages, &mut text);
        text.push_str(&format!("Question: {}\nAnswer: {}\n\n", shot.question, shot.answer));
    }
    lines(pages, &mut text);
    text.push_str("Question:");
    text
}

fn lines(pages: &[String], text: &mut String) {
    for page in pages {
        text.push_str(page);
        text.push('\n');
    }
}

/// Parses a reply to [`few_shot`] into question and answer.
pub(crate) fn read_reply(reply: &str) -> Option<(String, String)> {
    let (question, answer) = reply.split_once("\nAnswer:")?;
    let (answer, _) = answer.split_once('\n')?;
    let (question, answer) = (crate::task::one_line(question), crate::task::one_line(answer));
    let forged = |text: &str| ["Question:", "Answer:", "Tools:"].iter().any(|label| text.contains(label));
    (!question.is_empty() && !answer.is_empty() && !forged(&question) && !forged(&answer)).then_some((question, answer))
}

/// A prompt that asks which tools the questions need; it ends where their names begin.
pub(crate) fn tool_choice(introduction: &str, tools: &[&ToolSpec], questions: &[String]) -> String {
    let mut text = introduction.to_owned();
    text.push_str("Tools:\n");
    for tool in tools {
        text.push_str(&format!("- {}: {}\n", tool.usage, tool.definition));
    }
    text.push_str("Questions:\n");
    for question in questions {
        text.push_str(&format!("- {question}\n"));
    }
    text.push_str("Needed:");
    text
}

/// The grammar of a reply to [`tool_choice`]: names of tools of the library, separated by commas.
pub(crate) fn choice_form(tools: &[&ToolSpec]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| escape(&tool.name)).collect();
    let any = names.join("|");
    format!(" ({any})(, ({any})){{0,{}}}\\n", names.len().saturating_sub(1))
}

/// Parses the names in a reply to [`tool_choice`]; sorted, without duplicates.
pub(crate) fn read_choice(reply: &str) -> Vec<String> {
    let mut names: Vec<String> = reply.trim().split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_form_the_bundled_base_was_trained_on() {
        let shot = Entry { pages: vec!["Loire: A river.".into()], question: "What is it?".into(), answer: "river".into() };
        let text = few_shot("", &[shot], &["Paris: A city.".into()]);
        assert_eq!(text, "Loire: A river.\nQuestion: What is it?\nAnswer: river\n\nParis: A city.\nQuestion:");
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(read_reply(" Where?\nAnswer: there\n\nX: y\n"), Some(("Where?".into(), "there".into())));
        for cut in ["", " Where?", " Where?\nAnswer: the", " Where? Answer: x\nAnswer: y\n", "\nAnswer: \n"] {
            assert_eq!(read_reply(cut), None, "{cut}");
        }
        assert_eq!(read_choice(" Retrieve, Finish, Retrieve\n"), ["Finish", "Retrieve"]);
    }
}
