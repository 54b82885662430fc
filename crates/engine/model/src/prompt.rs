//! Prompts that distinguish template parts from text parts.

use std::fmt;
use std::ops::{Deref, Range};

use crate::template::Message;

/// A prompt: a sequence of text parts and template parts.
///
/// Text is what users, tools and models wrote. It may spell a control token (`<|eot_id|>`, `</s>`),
/// and is tokenised as ordinary characters. Control tokens are recognised only in template parts.
///
/// A string converts to a prompt of text only. The prompt dereferences to its whole text. Tokenise
/// the prompt itself, because its text alone does not say which parts are the template's.
///
/// A server that applies its model's chat template itself takes messages instead
/// ([`Backend::takes_messages`](crate::Backend::takes_messages)). The text is then the beginning of
/// the reply to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// What comes before the text, for the server to render.
    messages: Vec<Message>,
    text: String,
    /// The template parts: in order, not empty, not adjacent.
    template: Vec<Range<usize>>,
}

/// A borrowed [`Prompt`], or a string, which is text only.
#[derive(Debug, Clone, Copy)]
pub struct PromptRef<'a> {
    pub(crate) text: &'a str,
    pub(crate) template: &'a [Range<usize>],
}

impl Prompt {
    /// A prompt of text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The reply to `messages`, of which nothing is written yet.
    pub fn reply_to(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// A prompt that is one template part, so that control tokens are recognised everywhere. Only
    /// for strings that a chat template wrote.
    pub fn template(text: impl Into<String>) -> Self {
        let text = text.into();
        let template = if text.is_empty() { Vec::new() } else { std::iter::once(0..text.len()).collect() };
        Self { text, template, ..Self::default() }
    }

    /// The messages before the text; none where the text is the whole prompt.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Appends text.
    pub fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a template part.
    pub fn push_template(&mut self, text: &str) {
        let from = self.text.len();
        self.text.push_str(text);
        let to = self.text.len();
        match self.template.last_mut() {
            Some(last) if last.end == from => last.end = to,
            _ if from < to => self.template.push(from..to),
            _ => {}
        }
    }

    /// Appends text, character by character.
    pub(crate) fn extend_text(&mut self, text: impl Iterator<Item = char>) {
        self.text.extend(text);
    }

    /// The whole text, for logs and for readers that do not tokenise.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The byte ranges of the template parts, in order; adjacent ones are joined.
    pub fn template_ranges(&self) -> &[Range<usize>] {
        &self.template
    }

    /// The template part that contains byte `at`; `None` if that byte is text.
    pub fn template_at(&self, at: usize) -> Option<&Range<usize>> {
        let part = self.template.get(self.template.partition_point(|part| part.end <= at))?;
        part.contains(&at).then_some(part)
    }
}

impl Deref for Prompt {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        Self::text(text.as_str())
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl PartialEq<str> for Prompt {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Prompt {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl<'a> From<&'a Prompt> for PromptRef<'a> {
    fn from(prompt: &'a Prompt) -> Self {
        Self { text: &prompt.text, template: &prompt.template }
    }
}

impl<'a> From<&'a str> for PromptRef<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, template: &[] }
    }
}

impl<'a> From<&'a String> for PromptRef<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_template_parts_are_one() {
        let mut prompt = Prompt::default();
        for part in ["", "<s>", "[INST] "] {
            prompt.push_template(part);
        }
        prompt.push_text("Hi");
        prompt.push_text("");
        prompt.push_template("");
        prompt.push_template(" [/INST]");
        assert_eq!(prompt, "<s>[INST] Hi [/INST]");
        assert_eq!(prompt.template_ranges(), [0..10, 12..20]);
        let template: Vec<usize> = (0..22).filter(|at| prompt.template_at(*at).is_some()).collect();
        assert_eq!(template, (0..10).chain(12..20).collect::<Vec<usize>>());
    }

    #[test]
    fn strings_are_text() {
        assert!(Prompt::from("<s>").template_ranges().is_empty());
        assert_eq!(Prompt::template("<s>").template_at(1), Some(&(0..3)));
        assert_eq!(Prompt::template(""), Prompt::text(""));
        assert_eq!(Prompt::text("<s>").template_at(0), None);
    }
}
