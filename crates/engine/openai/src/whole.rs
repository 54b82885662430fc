//! Replies of a chat that the server does not continue: each is read whole, brought into its form
//! ([`tidy`]), and asked for again if it cannot be.

use autoact_http_client::said::clip;
use autoact_model::{GenerateError, Grammar, Prompt};

use crate::follow::{Fit, Grammars};
use crate::tidy::{Cue, tidy};
use crate::wire::Said;

/// Maximum number of characters that an error shows before and after a mistake.
const SHOWN: usize = 60;

/// A reply that is read whole.
#[derive(Debug)]
pub(crate) struct Whole {
    grammar: Grammar,
    cue: Cue,
    /// What the server has said in this round.
    pub(crate) reply: String,
    /// Earlier replies, and what was wrong with each.
    rejected: Vec<(String, String)>,
}

/// A reply that has no required form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// Its beginning, which matches the grammar.
    pub(crate) begins: String,
    /// Where it leaves the grammar.
    pub(crate) reason: String,
}

impl Whole {
    pub(crate) fn new(grammar: Grammar, prompt: &Prompt) -> Whole {
        Whole { grammar, cue: Cue::at_the_end(prompt), reply: String::new(), rejected: Vec::new() }
    }

    /// The reply in the form of its grammar.
    pub(crate) fn fitted(&self, grammars: &Grammars) -> Result<Result<String, Unfit>, GenerateError> {
        let text = tidy(&self.reply, &self.grammar, &self.cue);
        let mut follow = grammars.start(&self.grammar)?;
        let at = match follow.take(&text)? {
            Fit::Complete(at) => return Ok(Ok(text[..at].to_owned())),
            Fit::Broken(at) => at,
            Fit::Open => text.len(),
        };
        let begins = text[..at].to_owned();
        if follow.accepts()? {
            return Ok(Ok(begins));
        }
        // the last line break belongs to the form alone; the rest of a name would be guessed
        let forced = follow.forced()?;
        if !forced.is_empty() && forced.trim().is_empty() && matches!(follow.take("")?, Fit::Complete(_)) {
            return Ok(Ok(begins + &forced));
        }
        // a name is shown whole, wherever in it the mistake is
        let word = text[..at].rfind(char::is_whitespace).map_or(at, |space| space + 1);
        let (before, rest) = text.split_at(if at < text.len() { word } else { at });
        let shown_from = before.char_indices().rev().nth(SHOWN).map_or(0, |(from, _)| from);
        let after = clip(&before[shown_from..]);
        let reason = match rest.char_indices().nth(SHOWN).map_or(rest, |(end, _)| &rest[..end]) {
            "" => format!("it ended after {after}"),
            rest => format!("after {after} came {}", clip(rest)),
        };
        Ok(Err(Unfit { begins, reason }))
    }

    /// The reply is asked for again.
    pub(crate) fn reject(&mut self, reason: &str) {
        let form = match &self.grammar {
            Grammar::Regex(regex) => format!("match the regular expression `{regex}`"),
            Grammar::Choice(choices) => format!("be one of: `{}`", choices.join("`, `")),
            Grammar::Lark(lark) => format!("be derived from this grammar (Lark):\n{lark}"),
            Grammar::JsonSchema(schema) | Grammar::JsonLine(schema) => format!("be one JSON object of this schema: {schema}"),
        };
        let cue = &self.cue;
        let said = format!(
            "This reply does not have the form that is needed: {reason}. Write it again, and nothing else. \
             What follows {cue} has to {form}."
        );
        self.rejected.push((std::mem::take(&mut self.reply), said));
    }

    /// Adds earlier replies, and what was wrong with them, to the messages of a request.
    pub(crate) fn remind<'a>(&'a self, messages: &mut Vec<Said<'a>>) {
        for (reply, reason) in &self.rejected {
            messages.push(Said::by_model(if reply.trim().is_empty() { "…" } else { reply.as_str() }));
            messages.push(Said::by_user(reason.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAN: &str = r" [^\n]{1,600}\nAction: (Retrieve|Finish)\n";

    fn whole(grammar: Grammar, cue: &str, reply: &str) -> Whole {
        let mut whole = Whole::new(grammar, &Prompt::from(cue));
        whole.reply = reply.to_owned();
        whole
    }

    fn fitted(grammar: Grammar, cue: &str, reply: &str) -> Result<String, Unfit> {
        whole(grammar, cue, reply).fitted(&Grammars::new().unwrap()).unwrap()
    }

    #[test]
    fn what_chat_models_say_is_brought_into_its_form() {
        let plan = |reply: &str| fitted(Grammar::Regex(PLAN.into()), "Thought:", reply).unwrap();
        for reply in [
            " I need the page.\nAction: Retrieve\n",
            "I need the page.\nAction: Retrieve",
            "Thought: I need the page.\n\nAction: Retrieve[Loire]\nObservation: it is long",
            "**Thought:** I need\nthe page.\n**Action:** `Retrieve`.",
            "<think>\nHm. Action: Finish\n</think>\n\nThought: I need the page.\nAction: Retrieve",
            "```\nThought: I need the page.\nAction: Retrieve\n```",
        ] {
            assert_eq!(plan(reply), " I need the page.\nAction: Retrieve\n", "{reply}");
        }
        let input = |reply: &str| fitted(Grammar::Regex(r" [^\n]{1,1000}\n".into()), "Input:", reply).unwrap();
        for reply in ["Loire", "Input: Loire\nObservation: x", "\n Loire \n"] {
            assert_eq!(input(reply), " Loire\n", "{reply}");
        }
        let closing = |reply: &str| fitted(Grammar::Regex(r"\nAction: (Retrieve|Finish)\n".into()), "Thought: So", reply).unwrap();
        for reply in ["Finish", "Action: Finish", "\nAction: Finish\n", "So.\nAction: Finish"] {
            assert_eq!(closing(reply), "\nAction: Finish\n", "{reply}");
        }
        let schema =
            json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
        let object = |reply: &str| fitted(Grammar::JsonLine(schema.clone()), "Input:", reply);
        for reply in ["{\"n\":1}", "Input: {\"n\":1}", "```json\n{\"n\":1}\n```\nThat is it."] {
            assert_eq!(object(reply).unwrap().trim(), "{\"n\":1}", "{reply}");
        }
        assert!(object("n is 1").is_err());
    }

    #[test]
    fn a_thought_that_is_too_long_ends_with_a_sentence() {
        let long = "It is a river. ".repeat(60);
        let reply = fitted(Grammar::Regex(PLAN.into()), "Thought:", &format!("{long}\nAction: Finish")).unwrap();
        let thought = reply.strip_suffix("\nAction: Finish\n").unwrap();
        assert!(thought.ends_with("river.") && thought.chars().count() <= 601 && thought.len() > 560, "{thought}");
    }

    #[test]
    fn what_has_no_form_is_said_to_the_model() {
        let mut whole = whole(Grammar::Regex(PLAN.into()), "Thought:", "The answer is Paris.");
        let grammars = Grammars::new().unwrap();
        let unfit = whole.fitted(&grammars).unwrap().unwrap_err();
        assert_eq!(unfit.begins, " The answer is Paris.");
        assert!(unfit.reason.contains("ended after `The answer is Paris.`"), "{}", unfit.reason);
        whole.reject(&unfit.reason);
        let mut messages = vec![Said::by_user("Question")];
        whole.remind(&mut messages);
        let sent = serde_json::to_value(&messages).unwrap();
        assert_eq!((sent.as_array().unwrap().len(), &sent[1]["role"]), (3, &json!("assistant")));
        let said = sent[2]["content"].as_str().unwrap();
        assert!(said.contains("`Thought:`") && said.contains("(Retrieve|Finish)"), "{said}");
        let unfit = fitted(Grammar::Regex(PLAN.into()), "Thought:", "So.\nAction: Fly").unwrap_err();
        assert!(unfit.reason.contains("Fly"), "{}", unfit.reason);
    }
}
