//! Takes off what chat models put around a reply: what they think before it, fences, a repeated
//! label, line breaks within a thought, marks around a name. What is left is checked against the
//! grammar, so this only ever makes a reply fit that says the same.

use std::fmt;

use autoact_model::Grammar;

/// The last label of a prompt, after which the reply begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cue(String);

impl Cue {
    /// The label of the prompt's last line: `Thought:` of `Thought: So`. Empty if there is none.
    pub(crate) fn at_the_end(prompt: &str) -> Cue {
        let last = prompt.lines().last().unwrap_or_default();
        let label = last.find(':').map(|at| &last[..=at]).filter(|label| is_label(label));
        Cue(label.unwrap_or_default().to_owned())
    }
}

impl fmt::Display for Cue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the prompt") } else { write!(f, "`{}`", self.0) }
    }
}

/// `Action:`
fn is_label(text: &str) -> bool {
    text.strip_suffix(':').is_some_and(|word| !word.is_empty() && word.chars().all(char::is_alphabetic))
}

/// The reply as the grammar may have it.
pub(crate) fn tidy(reply: &str, grammar: &Grammar, cue: &Cue) -> String {
    let reply = unfenced(after_thinking(reply).trim());
    let reply = after_label(reply, &cue.0).unwrap_or(reply).trim();
    match grammar {
        Grammar::JsonSchema(_) | Grammar::JsonLine(_) => {
            let object = reply.find('{').map_or(reply, |at| &reply[at..]);
            object.strip_suffix("```").unwrap_or(object).to_owned()
        }
        Grammar::Choice(_) | Grammar::Lark(_) => reply.to_owned(),
        Grammar::Regex(regex) => in_lines(reply, regex),
    }
}

/// Lines as the regular expression has them: a text of one line, then a labelled line, if it has
/// one, and further lines as they are.
fn in_lines(reply: &str, regex: &str) -> String {
    let Some(label) = label_of(regex) else {
        // the first line says it
        return format!(" {}\n", reply.lines().next().unwrap_or_default().trim());
    };
    let mut before = Vec::new();
    let mut lines = reply.lines();
    let mut value = None;
    for line in lines.by_ref() {
        value = after_label(line.trim(), label);
        if value.is_some() {
            break;
        }
        before.push(line);
    }
    let only_label = regex.starts_with("\\n");
    let value = match value {
        Some(value) => value,
        None if only_label => reply,
        None => return format!(" {}", one_line(&before)),
    };
    let value = value.trim().trim_matches(['`', '*', '"', '\'']).trim_end_matches('.').trim_matches(['`', '*', '"', '\'']);
    let rest: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    let thought = if only_label { String::new() } else { format!(" {}", clipped(&one_line(&before), most_characters(regex))) };
    format!("{thought}\n{label} {value}\n{rest}")
}

/// The label after the first line break of a regular expression: `Action:` of `…\nAction: (a|b)`.
fn label_of(regex: &str) -> Option<&str> {
    regex.match_indices("\\n").find_map(|(at, line_break)| {
        let after = &regex[at + line_break.len()..];
        let label = &after[..=after.find(':')?];
        is_label(label).then_some(label)
    })
}

/// The bound of a regular expression's first repetition: 600 of `[^\n]{1,600}`.
fn most_characters(regex: &str) -> usize {
    let bound = regex.split_once("{1,").and_then(|(_, rest)| rest.split_once('}')).and_then(|(bound, _)| bound.parse().ok());
    bound.unwrap_or(usize::MAX)
}

fn one_line(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// The text up to the last sentence, or else word, that ends within so many characters.
fn clipped(text: &str, most: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    let within = &text[..end];
    match within.rfind(". ").or_else(|| within.rfind(' ')) {
        Some(at) => text[..=at].trim_end(),
        None => within,
    }
}

/// What follows a label, which may stand in bold: `**Action:** x`.
fn after_label<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    if label.is_empty() {
        return None;
    }
    let text = text.trim_start_matches(['*', '#', '-', ' ']);
    let head = text.get(..label.len())?;
    head.eq_ignore_ascii_case(label).then(|| text[label.len()..].trim_start_matches('*'))
}

/// What follows a thought in the tags of reasoning models.
fn after_thinking(reply: &str) -> &str {
    reply.rsplit_once("</think>").map_or(reply, |(_, rest)| rest)
}

/// What stands within a fence that begins the reply.
fn unfenced(reply: &str) -> &str {
    let Some(fenced) = reply.strip_prefix("```") else { return reply };
    let Some((_, body)) = fenced.split_once('\n') else { return reply };
    body.split_once("```").map_or(body, |(body, _)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cue_is_the_last_lines_label() {
        for (prompt, cue) in [("Question: x\nThought:", "Thought:"), ("Thought: So it is: yes", "Thought:"), ("", ""), ("no label", "")] {
            assert_eq!(Cue::at_the_end(prompt).0, cue, "{prompt}");
        }
    }

    #[test]
    fn labels_and_bounds_of_regular_expressions() {
        let regex = r" [^\n]{1,600}\nAction: (a|b)\n";
        assert_eq!((label_of(regex), most_characters(regex)), (Some("Action:"), 600));
        assert_eq!((label_of(r" [^\n]{1,10}\n"), label_of("a+"), most_characters("a+")), (None, None, usize::MAX));
        assert_eq!(clipped("One. Two words", 8), "One.");
        assert_eq!(clipped("wordwordword", 8), "wordword");
        assert_eq!(clipped("éé éé", 4), "éé");
    }

    #[test]
    fn an_empty_reply_stays_one() {
        let regex = Grammar::Regex(r" [^\n]{1,600}\nAction: (a|b)\n".into());
        assert_eq!(tidy("", &regex, &Cue::at_the_end("Thought:")), " ");
        assert_eq!(tidy("<think>long", &Grammar::Choice(vec![]), &Cue::at_the_end("")), "<think>long");
    }
}
