//! What the meta-agent is asked in self-instruct and tool selection, and how its replies are read.
//!
//! The form is a plain list that any language model can go on with. A model with a chat template is also told the task's name and
//! description, which a model that only continues text has no use for.

use autoact_trajectory::ToolSpec;

use crate::task::Task;

/// One entry of the list: the pages it is about, and if it is an example, its question and answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Pages, a line each.
    pub(crate) pages: Vec<String>,
    /// The question.
    pub(crate) question: String,
    /// The answer.
    pub(crate) answer: String,
}

/// The longest question and answer, in characters, that a generation may write.
const MOST_QUESTION: usize = 300;
const MOST_ANSWER: usize = 80;

/// What a reply to [`few_shot`] looks like.
pub(crate) fn reply_form() -> String {
    format!(" [^\\n]{{1,{MOST_QUESTION}}}\\nAnswer: [^\\n]{{1,{MOST_ANSWER}}}\\n")
}

/// What stands before a list or a choice, for models that are told what to do.
pub(crate) fn introduction(task: &Task, told: bool) -> String {
    if !told {
        return String::new();
    }
    format!(
        "Task: {}\n{}\nNew questions with their answers, different from each other, some easy, some hard:\n\n",
        task.name, task.description
    )
}

/// Examples, then new pages, up to where a question has to follow.
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

/// (question, answer) of a reply to [`few_shot`].
pub(crate) fn read_reply(reply: &str) -> Option<(String, String)> {
    let (question, answer) = reply.split_once("\nAnswer:")?;
    let (answer, _) = answer.split_once('\n')?;
    let (question, answer) = (crate::task::one_line(question), crate::task::one_line(answer));
    let forged = |text: &str| ["Question:", "Answer:", "Tools:"].iter().any(|label| text.contains(label));
    (!question.is_empty() && !answer.is_empty() && !forged(&question) && !forged(&answer)).then_some((question, answer))
}

/// Which tools do these questions need? Up to where their names have to follow.
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

/// What a reply to [`tool_choice`] looks like: names of tools that exist, each at most once in their order.
pub(crate) fn choice_form(tools: &[&ToolSpec]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| escape(&tool.name)).collect();
    let any = names.join("|");
    format!(" ({any})(, ({any})){{0,{}}}\\n", names.len().saturating_sub(1))
}

/// The names in a reply to [`tool_choice`].
pub(crate) fn read_choice(reply: &str) -> Vec<String> {
    let mut names: Vec<String> = reply.trim().split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

fn escape(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_alphanumeric() || c == '_' { vec![c] } else { vec!['\\', c] }).collect()
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
